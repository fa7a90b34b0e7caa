"""Efficient-FedRec live: six devices over HTTP, a union of articles, gradients in a secure sum, a trained news model.

Oracle: torch's autograd, in float64, through news model and user model end to end, on all samples in one place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file

from backend.embedding.embedder import HEAD_FILE
from backend.federation.bounded_mean import Aggregate
from backend.federation.optimizers import Memory
from backend.federation.split.news_model_files import StoredEncoder
from backend.federation.strategies.news_head import NewsHead
from backend.federation.strategies.news_model_release import divided
from backend.federation.strategies.news_split import NewsSplit, read_ids
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.releases.publish import publish_rankers, roll_back
from device_app.device import Device
from device_app.fleet.fleet import Member
from device_app.privacy.protections.secure_sum import contribute
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import PrivacySettings
from device_app.training.samples import ReaderSamples, RowSamples
from exporters.graph_cache import GraphCache
from protocol.ids import release_number
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from protocol.union import UnionMarks
from tests.doubles.learning_world import (
    WITHIN_SEC,
    manifest_of,
    pooled,
    pooled_by_head,
    report_of,
    row_of,
    spent_on_reports,
    stepped_in_this_process,
    sync,
)
from tests.doubles.long_form import by_length
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld, WordEmbedder, warm_up_to_train
from tests.doubles.words_encoder import keep_words_encoder

DEVICES = 6
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=3)
HEAD_FORM, UNION, SPLIT = "news_head/exact/mean", "news_union", "news_rows/exact/mean"
FLOAT32 = 2e-8
"""Rounding of the devices' float32 gradients, the largest of which is about .03; five times what is seen at f = 40."""


@pytest.fixture(scope="module")
def learning_world(idle_world: SmallWorld) -> Iterator[SmallWorld]:
    """The small world with an encoder that trains, NRMS in its release, and six readers who have read."""
    idle_world.leave_steps_to_the_test()
    with idle_world.backend() as world:
        assert world.services is not None
        titles = [row.title for row in world.services.pool.live(world.services.updater._clock())]
        keep_words_encoder(world.settings, titles)
        publish_rankers(world.services.releases, ("nrms",), cache=GraphCache(world.settings.graphs_dir))
        for number in range(DEVICES):
            device = world.device(f"reader-{number}", privacy=ALLOWS)
            warm_up_to_train(Member(device, np.random.default_rng(number)))
        yield world


@pytest.fixture
def devices(learning_world: SmallWorld) -> list[Device]:
    return learning_world.devices[:DEVICES]


@pytest.fixture
def recorded_draws(monkeypatch: pytest.MonkeyPatch) -> list[RowSamples]:
    """Return the samples that the devices draw, recorded."""
    found: list[RowSamples] = []
    draw = ReaderSamples.draw_rows

    def recording(self: ReaderSamples, **how: object) -> RowSamples:
        found.append(draw(self, **how))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(ReaderSamples, "draw_rows", recording)
    return found


@pytest.fixture
def stepped_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with stepped_in_this_process(monkeypatch):
        yield


def set_up(world: SmallWorld, monkeypatch: pytest.MonkeyPatch, *, owners_minimum: int, **protection: object) -> None:
    """Configure the systems for six devices."""
    assert world.services is not None
    systems: dict[str, SystemSpec] = world.services.coordinator._systems  # type: ignore[assignment]
    union, split = COMPOSED[UNION], COMPOSED[SPLIT]
    exact = SecureSum(**{"clip": 50.0, "weight_limit": 32, "cohort_limit": DEVICES, **protection})  # type: ignore[arg-type]
    monkeypatch.setitem(systems, UNION, replace(union, protection=UnionMarks(owners_minimum=owners_minimum)))
    monkeypatch.setitem(systems, SPLIT, replace(split, protection=exact))


def run(world: SmallWorld, devices: list[Device]) -> tuple[RoundStatus, RoundStatus]:
    """Run both rounds, as an operator opens them."""
    assert world.services is not None
    coordinator = world.services.coordinator
    # Devices get a release only once the catalogue has its encoder, and a round is for the newest release.
    newest, until = world.services.releases.require_current().release, time.monotonic() + WITHIN_SEC
    while not all(sync(device) == newest for device in devices) and time.monotonic() < until:
        world.services.updater.step()
    union = coordinator.open_round(SPLIT, cohort=DEVICES, cohort_minimum=3, seconds=900.0)
    assert union.system == UNION
    split = None
    said: list[object] = []
    until = time.monotonic() + WITHIN_SEC
    while time.monotonic() < until:
        said = [device.train_step() for device in devices]
        coordinator.step()
        split = next((one for one in coordinator.history() if one.follows == union.round), None)
        if split is not None and split.state in ("applied", "failed"):
            break
        if coordinator.status(union.round).state == "failed":
            break
        time.sleep(0.05)  # the server's own clock may be at the step, which is a process
    union = coordinator.status(union.round)
    assert union.state == "applied", (union.reason, said)
    assert split is not None
    assert split.state == "applied", (split.reason, said)
    return union, split


@pytest.mark.long_form
@pytest.mark.usefixtures("stepped_here")
@pytest.mark.parametrize(("bits", "fraction_bits"), [*by_length([], long=[(32, 10), (64, 24)]), (64, 40)])
def test_live_round_computes_the_pooled_gradient_within_half_a_rounding_step(
    learning_world: SmallWorld,
    devices: list[Device],
    recorded_draws: list[RowSamples],
    monkeypatch: pytest.MonkeyPatch,
    bits: int,
    fraction_bits: int,
) -> None:
    world = learning_world
    assert world.services is not None
    set_up(world, monkeypatch, owners_minimum=1, bits=bits, fraction_bits=fraction_bits)
    pool = world.services.pool
    means: list[dict[str, np.ndarray]] = []
    conclude = NewsSplit.conclude

    def recording(self: NewsSplit, spec: object, total: Aggregate, *rest: object) -> object:
        means.append(total.mean())
        stored = pool.counts()
        result = conclude(self, spec, total, *rest)  # type: ignore[arg-type]
        assert pool.counts() == stored, "what a conclusion comes to is written with the round's end, not before"
        return result

    monkeypatch.setattr(NewsSplit, "conclude", recording)
    # A fresh memory, so that the first moment shows the gradient.
    monkeypatch.setattr("backend.federation.rounds.finalize.RoundContextLoader._memory", lambda self, system: Memory())
    before = world.services.releases.require_current()
    union, split = run(world, devices)
    assert union.published is None
    assert split.published == f"r{release_number(before.release) + 1}"
    assert len(recorded_draws) == DEVICES == split.survivors

    of_news, of_user, of_rows = pooled(world, before.release, recorded_draws)
    half_step, float32 = 2.0 ** -(fraction_bits + 1), FLOAT32
    (mean,) = means
    manifest = manifest_of(world, split)
    ids = read_ids(world.services.releases.read_blob(manifest.materials["news"].sha256))
    assert set(of_rows) <= set(ids), "with marks every news that somebody holds is opened"
    for row, news_id in enumerate(ids):
        wanted = of_rows.get(news_id, np.zeros(256))
        assert np.abs(mean["g.news"][row] - wanted).max() <= half_step + float32, news_id
    for name, wanted in of_user.items():
        assert np.abs(mean[f"g.{name}"] - wanted).max() <= half_step + float32, name

    kept = Memory.from_bytes(row_of(world, split).memory or b"")
    _, memory = divided(kept)
    # The encoder's own gradient is a sum over some 150 rows, through a derivative of about a tenth a number.
    slack = 60 * (half_step + float32)  # 1.2e-6 at f = 40
    for name, wanted in of_news.items():
        assert np.abs(memory.tensors[f"m.{name}"] / 0.1 - wanted).max() <= slack, name
    assert fraction_bits < 20 or np.abs(of_news["head.weight"]).max() > 2 * slack, "another gradient would show"


@pytest.mark.long_form
def test_round_updates_article_vectors_in_the_pool_and_on_the_devices(
    learning_world: SmallWorld,
    devices: list[Device],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The short form steps the news model in this process, the long form in one of its own, as a server does."""
    if by_length(True, long=False):
        request.getfixturevalue("stepped_here")
    world = learning_world
    assert world.services is not None
    set_up(world, monkeypatch, owners_minimum=2, fraction_bits=16)
    pool, releases = world.services.pool, world.services.releases
    first = releases.manifest("r1")
    before = releases.require_current()
    ids, old = pool.vectors(before.encoder)
    for device in devices:
        assert new_page(device).items
    paid = [spent_on_reports(device) for device in devices]
    sent = [report_of(device) for device in devices]
    assert all(paid)
    union, split = run(world, devices)
    after = releases.require_current()
    assert after.encoder != before.encoder
    found, new = pool.vectors(after.encoder)
    assert found == ids
    cosines = (old * new).sum(axis=1)
    assert cosines.min() > 0.9, "one step of Adam turns no vector far"
    assert cosines.min() < 1 - 1e-7, "and turns some"
    assert set(pool.counts().vectors) == {before.encoder, after.encoder}, "the last one's, for a release taken back"
    assert first.encoder == WordEmbedder.digest

    facts = row_of(world, union).facts or {}
    assert facts["owners_minimum"] == 2
    assert 0 < facts["opened_news"] < facts["held_news"] < facts["listed"] == len(ids)
    reported = row_of(world, split).facts or {}
    assert reported["numbers_moved"] == 2 * (256 * facts["opened_news"] + 248_977)
    assert reported["states_made"] == 0

    world.services.updater.step()
    for device in devices:
        assert sync(device) == after.release
        assert new_page(device).items
    assert [report_of(device) for device in devices] == sent, "a report says the same under the codebook carried over"
    assert [spent_on_reports(device) for device in devices] == paid, "and need not be paid for again"
    old_book, new_book = (release.recall.codebooks[0] for release in (before, after))
    assert (new_book.origin, new_book.prototypes == old_book.prototypes) == (old_book.origin, False)
    assert world.services.served.current.codebooks[16].prototypes.shape == (16, 256), "and recall serves by it"

    store = devices[0].parts.stores.news
    clicked = [click.news_id for click in devices[0].parts.stores.clicks.recent(5)]
    present, vectors = store.vectors(clicked, after.encoder)
    assert present.all(), "clicked news have vectors by the new encoder"
    place = {news_id: row for row, news_id in enumerate(found)}
    for row, news_id in enumerate(clicked):
        assert vectors[row] == pytest.approx(new[place[news_id]], abs=2e-3), "int8 codes"

    back = roll_back(releases, before.release)
    assert back.encoder == before.encoder
    world.services.updater.step()
    catalogue = world.services.live.current
    assert (catalogue.encoder, len(catalogue)) == (before.encoder, len(ids)), "the last encoder's vectors are all here"
    for device in devices:
        assert sync(device) == back.release
        assert new_page(device).items
    assert [spent_on_reports(device) for device in devices] == paid
    assert StoredEncoder.find(world.settings.encoder_dir, after.encoder).folder.is_dir(), "and the way forward is open"


@pytest.mark.usefixtures("stepped_here")
def test_round_with_an_oversized_contribution_is_retried_on_the_same_union(
    learning_world: SmallWorld, devices: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member adds far more than a clipped gradient; the retry uses the union's list of articles from the first
    round."""
    world = learning_world
    assert world.services is not None
    set_up(world, monkeypatch, owners_minimum=1, fraction_bits=16)
    coordinator = world.services.coordinator
    reported: list[int] = []

    def forge_once(*args: object, **rest: object) -> Contribution:
        honest = contribute(*args, **rest)  # type: ignore[arg-type]
        if reported:
            return honest
        vector = honest.vector.copy()
        vector[0] = 2**30
        reported.append(vector.size)
        return replace(honest, vector=vector)

    monkeypatch.setattr("device_app.privacy.protections.registry.contribute", forge_once)
    for device in devices:
        sync(device)
    before = world.services.releases.require_current()
    union = coordinator.open_round(SPLIT, cohort=DEVICES, cohort_minimum=3, seconds=900.0)
    until = time.monotonic() + WITHIN_SEC
    while time.monotonic() < until:
        for device in devices:
            device.train_step()
        coordinator.step()
        # Between two rounds none is under way, if the server's own clock is at the step: only an ended third will do.
        newest, following = [*coordinator.history(), union][:2]
        if following.follows == union.round and newest.state in ("applied", "failed"):
            break
        if newest.round == union.round and newest.state == "failed":
            break
        time.sleep(0.05)  # as in `run`
    retried, spoiled, opened, *_ = coordinator.history()
    assert (opened.round, opened.system, opened.state) == (union.round, UNION, "applied"), opened.reason
    assert (spoiled.system, spoiled.state, spoiled.published) == (SPLIT, "failed", None), spoiled.reason
    assert (spoiled.follows, spoiled.followed_by) == (opened.round, retried.round)
    assert "opened again once" in (spoiled.summary or "")
    assert (retried.system, retried.state, retried.follows) == (SPLIT, "applied", spoiled.round), retried.reason
    assert retried.published == f"r{release_number(before.release) + 1}"
    first, again = (manifest_of(world, one) for one in (spoiled, retried))
    assert first.materials == again.materials, "the same articles"
    assert (len(reported), retried.survivors) == (1, DEVICES)


@pytest.mark.usefixtures("stepped_here")
def test_head_round_computes_the_pooled_gradient_without_naming_articles(
    learning_world: SmallWorld, devices: list[Device], recorded_draws: list[RowSamples], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = learning_world
    assert world.services is not None
    releases, coordinator, pool = world.services.releases, world.services.coordinator, world.services.pool
    systems: dict[str, SystemSpec] = coordinator._systems  # type: ignore[assignment]
    exact = SecureSum(clip=50.0, weight_limit=32, cohort_limit=DEVICES, bits=64, fraction_bits=40)
    monkeypatch.setitem(systems, HEAD_FORM, replace(COMPOSED[HEAD_FORM], protection=exact))
    means: list[dict[str, np.ndarray]] = []
    conclude = NewsHead.conclude

    def recording(self: NewsHead, spec: object, total: Aggregate, *rest: object) -> object:
        means.append(total.mean())
        stored = pool.counts()
        result = conclude(self, spec, total, *rest)  # type: ignore[arg-type]
        assert pool.counts() == stored, "what a conclusion comes to is written with the round's end, not before"
        return result

    monkeypatch.setattr(NewsHead, "conclude", recording)
    world.services.updater.step()
    for device in devices:
        sync(device)
    before = releases.require_current()
    received = len(world.requests())
    opened = coordinator.open_round(HEAD_FORM, cohort=DEVICES, cohort_minimum=3, seconds=900.0)
    until = time.monotonic() + WITHIN_SEC
    while (status := coordinator.status(opened.round)).state not in ("applied", "failed"):
        assert time.monotonic() < until, status
        for device in devices:
            device.train_step()
        coordinator.step()
        time.sleep(0.05)  # as in `run`
    assert (status.system, status.state, status.follows, status.survivors) == (HEAD_FORM, "applied", None, DEVICES)

    manifest = manifest_of(world, status)
    wanted, public = pooled_by_head(world, manifest, recorded_draws)
    assert len(recorded_draws) == DEVICES
    assert {news_id for one in recorded_draws for news_id in one.ids} <= public, "every contribution is kept"
    (mean,) = means
    assert mean.keys() == wanted.keys(), "the user model's gradient and the head's, and nothing of single news"
    for name, each in wanted.items():
        assert np.abs(mean[name] - each).max() <= 1e-6, name
    assert np.abs(wanted["g.news.head.weight"]).max() > 1e-5, "another gradient would show"

    asked = [one.path for one in world.requests()[received:]]
    for ref in manifest.materials.values():
        assert asked.count(f"/v1/blobs/{ref.sha256}") == DEVICES, "each device takes each shard, once"
    assert not any(one.id in path for one in pool.live(world.services.updater._clock()) for path in asked)

    after = releases.require_current()
    assert after.encoder != before.encoder
    assert status.published == after.release
    first, second = (
        load_file(StoredEncoder.find(world.settings.encoder_dir, one.encoder).folder / HEAD_FILE)
        for one in (before, after)
    )
    assert {name for name in first if (first[name] != second[name]).any()} == {"head.weight", "head.bias"}
    ids, vectors = pool.vectors(after.encoder)
    assert set(ids) == public
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(ids)), abs=1e-5)
    world.services.updater.step()
    assert {sync(device) for device in devices} == {after.release}

    again = manifest_of(world, coordinator.open_round(HEAD_FORM, cohort=DEVICES, cohort_minimum=3, seconds=0.01))
    assert {name for name, ref in again.materials.items() if ref != manifest.materials[name]} == {"head"}, (
        "states stay as they are under a new head, so that devices have them by their hash"
    )
    while coordinator.status(again.round).state != "failed":
        coordinator.step()

"""FedNewsRec and NAML with their news models, live.

Five devices over HTTP train user model and news model. NAML's news model also uses abstracts and categories. The pool
is embedded again, then the gate runs; in the same world FINDING's groups of NRMS are found. NRMS replaces the user
model, because its graphs export faster; the systems differ in that name alone. Oracles: torch's autograd in float64
through both models, on all samples in one place; for gate and groups torch's NRMS and formulas by hand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load

from backend.embedding.embedder import OnnxEmbedder, encoder_folder
from backend.embedding.word_model import FEDNEWSREC, NAML, WordModel, keep_word_model
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.news_words import NewsWords
from backend.federation.strategies.release_gate import ReleaseGate
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.releases.codebooks import pool_categories, read_centroids
from backend.releases.publish import publish_rankers, roll_back
from device_app.device import Device
from device_app.fleet.fleet import Member
from device_app.settings import PrivacySettings
from device_app.training.samples import ReaderSamples, RowSamples, Samples, StoredSamples
from exporters.graph_cache import GraphCache
from exporters.news_encoder import with_table
from exporters.package import export_word_model
from models.builders.news import fednewsrec_words, naml_words
from models.builders.rankers import nrms_user
from models.user.papers import NrmsUser
from protocol.pooled_states import HEAD, unpack_head
from protocol.protections import SecureSum
from protocol.ring import GAIN_LIMIT
from protocol.rounds import RoundManifest, RoundStatus
from protocol.words_of_titles import (
    ABSTRACT_WORDS_LIMIT,
    ABSTRACTS,
    CATEGORIES,
    MODEL,
    TABLE,
    TITLES,
    joined_categories,
    joined_table,
    joined_texts,
)
from tests.doubles.learning_world import WITHIN_SEC, gradients_of_both, manifest_of, row_of, sync
from tests.doubles.long_form import by_length
from tests.doubles.new_page import new_page
from tests.doubles.small_world import DIMENSIONS, SmallWorld, warm_up_to_train
from tests.doubles.words_encoder import keep_words_encoder, words_of

DEVICES = 5
PRESET = "fednewsrec"
WHOLE, EXACT, NAML_EXACT = "fednewsrec_whole/local/mean", "fednewsrec_whole/exact/mean", "naml_whole/exact/mean"
NUMBERS = 248_977 + 1_200 * DIMENSIONS + 359_201
"""Of NRMS, and of the news model on word vectors of 256 numbers."""
GATE, PROTOTYPES = "release_gate", "prototypes_nrms"
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=3)
HELD_OUT = 0.5
BAR = 1e-5
ARCHITECTURES = by_length((FEDNEWSREC,), long=(FEDNEWSREC, NAML))
"""Of the news models; only the long form has a round of NAML's."""


@pytest.fixture(scope="module")
def world_of_words(idle_world: SmallWorld) -> Iterator[SmallWorld]:
    """The small world with an encoder, NRMS in its release, a word model, and readers who have read."""
    idle_world.leave_steps_to_the_test()
    with idle_world.backend() as world:
        assert world.services is not None
        live = world.services.pool.live(world.services.updater._clock())
        keep_words_encoder(world.settings, titles := [row.title for row in live])
        cache = GraphCache(world.settings.graphs_dir)
        words, categories = words_of(titles), pool_categories((row.section, row.topic) for row in live)
        for architecture in ARCHITECTURES:
            made = export_word_model(DIMENSIONS, DIMENSIONS, cache, architecture=architecture)
            keep_word_model(
                world.settings.encoder_dir,
                "of the small world",
                words,
                {name: each.shape for name, each in made.weights.items()},
                gradient=made.graphs["gradient"],
                encoder=with_table(made.graphs["news"], words.table),
                architecture=architecture,
                categories=categories.pack(),
            )
        publish_rankers(world.services.releases, ("nrms", "finding_nrms"), cache=cache)
        for number in range(DEVICES):
            device = world.device(f"reader-{number}", privacy=ALLOWS)
            warm_up_to_train(Member(device, np.random.default_rng(number)))
        yield world


@pytest.fixture
def devices(world_of_words: SmallWorld, monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """Return devices on the newest release; the systems train NRMS."""
    assert world_of_words.services is not None
    systems: dict[str, SystemSpec] = world_of_words.services.coordinator._systems  # type: ignore[assignment]
    exact = SecureSum(clip=50.0, weight_limit=32, cohort_limit=DEVICES, bits=64, fraction_bits=40)
    exactly = {name: replace(COMPOSED[name], protection=exact) for name in (EXACT, NAML_EXACT)}
    for name, spec in {WHOLE: COMPOSED[WHOLE], PRESET: COMPOSED[PRESET], **exactly}.items():
        monkeypatch.setitem(systems, name, replace(spec, model="ranker.nrms", architecture="nrms"))
    for name in (GATE, PROTOTYPES):
        clip = secure_sum_of(COMPOSED[name].protection).clip
        small = SecureSum(clip=clip, bits=64, fraction_bits=40, cohort_limit=DEVICES)
        monkeypatch.setitem(systems, name, replace(systems[name], protection=small))
    # Only a gain for all of them would stay: which few clicks five devices hold out is drawn by lot.
    monkeypatch.setitem(systems, GATE, replace(systems[GATE], strategy=ReleaseGate(tolerance=-1.0, confidence=1e-9)))
    found = world_of_words.devices[:DEVICES]
    newest, until = world_of_words.services.releases.require_current().release, time.monotonic() + WITHIN_SEC
    while any(sync(device) != newest for device in found):
        assert time.monotonic() < until
        world_of_words.services.updater.step()
    return found


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> tuple[list[RowSamples], list[dict[str, np.ndarray]]]:
    """Return the devices' samples, and the means by which the server steps."""
    drawn: list[RowSamples] = []
    means: list[dict[str, np.ndarray]] = []
    draw, conclude = ReaderSamples.draw_rows, NewsWords.conclude

    def recording_draw(self: ReaderSamples, **how: object) -> RowSamples:
        drawn.append(draw(self, **how))  # type: ignore[arg-type]
        return drawn[-1]

    def recording(self: NewsWords, spec: object, total: Aggregate, *rest: object) -> object:
        means.append(total.mean())
        return conclude(self, spec, total, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ReaderSamples, "draw_rows", recording_draw)
    monkeypatch.setattr(NewsWords, "conclude", recording)
    return drawn, means


def run(world: SmallWorld, devices: list[Device], system: str) -> tuple[RoundStatus, RoundManifest]:
    """Run a round to its end."""
    assert world.services is not None
    coordinator = world.services.coordinator
    opened = coordinator.open_round(system, cohort=DEVICES, cohort_minimum=3, seconds=900.0)
    return run_to_its_end(world, devices, opened)


def run_to_its_end(world: SmallWorld, devices: list[Device], opened: RoundStatus) -> tuple[RoundStatus, RoundManifest]:
    """Run an open round to its end."""
    assert world.services is not None
    coordinator = world.services.coordinator
    until = time.monotonic() + WITHIN_SEC
    said: list[object] = []
    while (status := coordinator.status(opened.round)).state not in ("applied", "failed"):
        assert time.monotonic() < until, (status, said)
        said = [device.train_step() for device in devices]
        coordinator.step()
        time.sleep(0.05)  # the server's own clock may be at the step
    assert (status.system, status.state) == (opened.system, "applied"), (status.reason, said)
    return status, manifest_of(world, status)


def follower(world: SmallWorld, status: RoundStatus) -> str:
    """Return the round that this one ordered, once the server has opened it."""
    assert world.services is not None
    coordinator = world.services.coordinator
    until = time.monotonic() + WITHIN_SEC
    while (followed := coordinator.status(status.round).followed_by) is None:
        assert time.monotonic() < until, coordinator.status(status.round)
        coordinator.step()
        time.sleep(0.05)  # the server's own clock may be at the step
    return followed


def pooled(world: SmallWorld, manifest: RoundManifest, drawn: list[RowSamples]) -> dict[str, np.ndarray]:
    """Return end-to-end gradients in float64, by name in an update, from a round's public materials."""
    assert world.services is not None
    releases = world.services.releases

    def material(name: str) -> bytes:
        return releases.read_blob(manifest.materials[name].sha256)

    def parts(prefix: str) -> list[bytes]:
        return [material(name) for name in sorted(manifest.materials) if name.startswith(prefix)]

    table = joined_table(parts(TABLE), DIMENSIONS)
    rows_of_news, words = joined_texts(parts(TITLES), len(table))
    texts, ids = [words], []
    if abstracts := parts(ABSTRACTS):
        texts.append(joined_texts(abstracts, len(table), length=ABSTRACT_WORDS_LIMIT)[1])
        ids = [torch.from_numpy(column).long() for column in joined_categories(parts(CATEGORIES))[1].T.copy()]
    build = naml_words if abstracts else fednewsrec_words
    news, user = build(DIMENSIONS).double(), nrms_user().double()
    trained = releases.weights(releases.manifest(manifest.release), "ranker.nrms")
    for model, weights in ((news, load(material(MODEL))), (user, trained)):
        model.load_state_dict({name: torch.from_numpy(value).double() for name, value in weights.items()})
    read = [torch.from_numpy(each) for text in texts for each in (table[text].astype(float), (text != 0) * 1.0)]
    vectors = news(*read, *ids)
    return gradients_of_both(news, user, vectors, rows_of_news, drawn)


def nrms_of(weights: Mapping[str, np.ndarray]) -> NrmsUser:
    """Return NRMS in float64."""
    model = nrms_user().double()
    model.load_state_dict({name: torch.from_numpy(value).double() for name, value in weights.items()})
    return model


def test_finding_clusters_readers_by_k_means_of_their_user_vectors(
    world_of_words: SmallWorld, devices: list[Device]
) -> None:
    """Oracle: Lloyd's algorithm on all readers' vectors in one place, from the same start until convergence."""
    world, model = world_of_words, "ranker.finding_nrms"
    assert world.services is not None
    releases = world.services.releases
    before = releases.require_current()
    groups = before.models[model].groups
    assert groups is not None
    size, user = groups.size, nrms_of(releases.weights(before, model))
    now, centroids = (read_centroids(releases, ref, size) for ref in (groups.centroids, groups.next_centroids))
    vectors = []
    for device in devices:
        stores = device.parts.stores
        reading = StoredSamples(stores.clicks, stores.impressions, stores.news, half_life_hours=48.0)
        clicks = torch.from_numpy(reading.clicked(before.encoder)).double()[None]
        vector = user.user_vector(clicks, torch.ones(clicks.shape[:2]).double())[0].detach().numpy()
        vectors.append(vector / np.linalg.norm(vector))
    rounds = 0
    while True:
        chosen = np.argmax(np.stack(vectors) @ centroids.T, axis=1)
        sums = np.stack(
            [
                sum((v for v, c in zip(vectors, chosen, strict=True) if c == k), np.zeros(DIMENSIONS))
                for k in range(size)
            ]
        )
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        means = np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), centroids)
        rounds += 1
        if np.abs(means - centroids).max() < 1e-3:
            break
        centroids = means
    moves = np.zeros((size, size), int)
    np.add.at(moves, (np.argmax(np.stack(vectors) @ now.T, axis=1), chosen), 1)

    status, _ = run(world, devices, PROTOTYPES)
    for _ in range(rounds - 1):
        assert status.orders == PROTOTYPES
        assert "moves" not in (row_of(world, status).facts or {}), "readers move at the end only"
        followed = follower(world, status)
        for device in devices:
            device.sync()
        status, _ = run_to_its_end(world, devices, world.services.coordinator.status(followed))
    assert (status.orders, status.survivors) == (None, DEVICES)
    assert rounds > 1, "or nothing was repeated"
    assert (row_of(world, status).facts or {})["moves"] == moves.tolist()
    found = releases.require_current().models[model].groups
    assert found is not None
    np.testing.assert_allclose(read_centroids(releases, found.centroids, size), centroids, atol=1e-5)


def test_round_without_noise_applies_the_papers_step_to_both_models(
    world_of_words: SmallWorld, devices: list[Device], recorded: tuple[list[RowSamples], list[dict[str, np.ndarray]]]
) -> None:
    world = world_of_words
    assert world.services is not None
    releases, pool = world.services.releases, world.services.pool
    drawn, means = recorded
    before = releases.require_current()
    received = len(world.requests())
    status, manifest = run(world, devices, EXACT)

    wanted = pooled(world, manifest, drawn)
    (mean,) = means
    assert len(drawn) == DEVICES == status.survivors
    assert len({len(one) for one in drawn}) > 1, "readers differ in n_u, by which they are weighed"
    assert mean.keys() == wanted.keys(), "of both models, and nothing of single news"
    for name, each in wanted.items():
        assert np.abs(mean[name] - each).max() <= BAR, name
    assert np.abs(wanted["g.news.title.layers.0.window.weight"]).max() > 20 * BAR, "another gradient would show"

    after = releases.require_current()
    model = WordModel(world.settings.encoder_dir)
    stepped = model.trained(after.encoder)
    assert (status.published, model.trained(before.encoder)) == (after.release, None)
    assert stepped is not None
    first = load(releases.read_blob(manifest.materials[MODEL].sha256))
    users = [releases.weights(release, "ranker.nrms") for release in (before, after)]
    for name, slope in wanted.items():
        old, new = (first, stepped) if name.startswith("g.news.") else users
        own = name.removeprefix("g.").removeprefix("news.")
        assert np.abs(new[own] - (old[own] - 0.5 * slope)).max() <= BAR, name

    asked = [one.path for one in world.requests()[received:]]
    for ref in manifest.materials.values():
        assert asked.count(f"/v1/blobs/{ref.sha256}") == DEVICES, "each device takes each shard, once"
    assert not any(one.id in path for one in pool.live(world.services.updater._clock()) for path in asked)


@pytest.mark.long_form
@pytest.mark.parametrize("system", by_length([], long=[NAML_EXACT]))
def test_naml_round_trains_its_views_and_reembeds_the_pool(
    world_of_words: SmallWorld,
    devices: list[Device],
    recorded: tuple[list[RowSamples], list[dict[str, np.ndarray]]],
    system: str,
) -> None:
    """In the long form alone: test_whole_news_models compares NAML's gradients, and the round above is the same."""
    world = world_of_words
    assert world.services is not None
    releases, pool = world.services.releases, world.services.pool
    drawn, means = recorded
    before = releases.require_current()
    status, manifest = run(world, devices, system)

    wanted = pooled(world, manifest, drawn)
    (mean,) = means
    assert mean.keys() == wanted.keys()
    for name, each in wanted.items():
        assert np.abs(mean[name] - each).max() <= BAR, name
    for view in ("abstract.layers.0.window.weight", "category.dense.weight", "subcategory.elements.weight"):
        assert np.abs(wanted[f"g.news.{view}"]).max() > 2 * BAR, f"{view}: another gradient would show"

    after = releases.require_current()
    assert (status.published, after.encoder != before.encoder) == (after.release, True)
    encoder = OnnxEmbedder(encoder_folder(world.settings.encoder_dir, after.encoder), threads=1)
    rows, vectors = pool.live(world.services.updater._clock()), pool.vectors(after.encoder)[1]
    assert encoder.encode_news(rows) == pytest.approx(vectors, abs=1e-5), "both in the order of arrival"
    assert encoder.encode([rows[0].title])[0] @ vectors[0] < 0.9999, "what a title alone tells is another vector"
    roll_back(releases, before.release)


def test_gate_scores_user_models_on_the_new_vectors_and_detects_a_worse_model(
    world_of_words: SmallWorld, devices: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of_words
    assert world.services is not None
    releases, pool, coordinator = world.services.releases, world.services.pool, world.services.coordinator
    monkeypatch.setattr(coordinator._loader, "held_out", HELD_OUT)
    forward = Aggregate.mean
    # The user model goes uphill, so that it must fall; the news model takes the paper's step.
    monkeypatch.setattr(
        Aggregate,
        "mean",
        lambda self: {name: each if ".news." in name else -40 * each for name, each in forward(self).items()},
    )
    before = releases.require_current()
    status, _ = run(world, devices, EXACT)
    monkeypatch.setattr(Aggregate, "mean", forward)
    fallen = releases.require_current()
    assert (status.published, fallen.encoder != before.encoder) == (fallen.release, True)
    until = time.monotonic() + WITHIN_SEC
    while (gate := coordinator.status(status.round).followed_by) is None:  # it opens by itself
        assert time.monotonic() < until
        coordinator.step()
    world.services.updater.step()
    while any(sync(device) != fallen.release for device in devices):
        assert time.monotonic() < until
        world.services.updater.step()

    drawn: list[Samples] = []
    draw = ReaderSamples.draw

    def recording_draw(self: ReaderSamples, **how: object) -> Samples:
        drawn.append(draw(self, **how))  # type: ignore[arg-type]
        return drawn[-1]

    monkeypatch.setattr(ReaderSamples, "draw", recording_draw)
    verdict, manifest = run_to_its_end(world, devices, coordinator.status(gate))
    assert (verdict.system, manifest.model, manifest.release) == (GATE, "ranker.nrms", fallen.release)
    served = pool.vectors(fallen.encoder)[1]
    models = [nrms_of(releases.weights(release, "ranker.nrms")) for release in (fallen, before)]
    gains = []
    for one in drawn:
        assert (one.candidates.reshape(-1, DIMENSIONS) @ served.T).max(axis=1).min() > 0.99, "by the new news model"
        inputs = [torch.from_numpy(each).double() for each in (one.clicks, one.click_mask, one.candidates)]
        scores = [model(*inputs).detach().numpy() for model in models]
        new, old = (((each[:, :1] > each[:, 1:]) + 0.5 * (each[:, :1] == each[:, 1:])).mean() for each in scores)
        gains.append(max(-GAIN_LIMIT, min(GAIN_LIMIT, float(new - old))))
    reported = (row_of(world, verdict).facts or {})["gate"]
    assert reported["devices"] == DEVICES
    assert reported["gain"] == pytest.approx(sum(gains) / DEVICES, abs=1e-6), (
        "a device without held-out clicks gives zero"
    )
    assert reported["falls"]
    back = releases.require_current()
    assert (verdict.published, back.encoder) == (back.release, before.encoder)
    assert back.models["ranker.nrms"].weights == before.models["ranker.nrms"].weights


def spent_on_training(device: Device) -> float:
    return sum(day.epsilon for day in device.parts.stores.ledger_entries.days() if day.channel == "training")


def test_preset_weights_noisy_updates_by_the_number_of_samples_each_device_reveals(
    world_of_words: SmallWorld, devices: list[Device], recorded: tuple[list[RowSamples], list[dict[str, np.ndarray]]]
) -> None:
    world = world_of_words
    assert world.services is not None
    drawn, _ = recorded
    before = world.services.releases.require_current()
    status, _ = run(world, devices, PRESET)
    facts = row_of(world, status).facts or {}
    assert (facts["updates"], facts["weight"]) == (DEVICES, sum(len(one) for one in drawn))
    assert facts["weight"] > DEVICES
    roll_back(world.services.releases, before.release)


def test_local_noise_round_publishes_an_encoder_for_the_next_round(
    world_of_words: SmallWorld, devices: list[Device]
) -> None:
    world = world_of_words
    assert world.services is not None
    releases, pool, coordinator = world.services.releases, world.services.pool, world.services.coordinator
    before = releases.require_current()
    spent_before = [spent_on_training(device) for device in devices]
    status, manifest = run(world, devices, WHOLE)
    after = releases.require_current()
    assert (status.published, after.encoder != before.encoder) == (after.release, True)
    ids, vectors = pool.vectors(after.encoder)
    assert len(ids) == len(pool.live(world.services.updater._clock()))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(ids)), abs=1e-5)
    facts = row_of(world, status).facts or {}
    assert facts["numbers_up"] == NUMBERS
    for device in devices:
        spent = spent_on_training(device) - spent_before.pop(0)
        assert spent == pytest.approx(NUMBERS * 2 * 0.005 / 0.015, rel=1e-6), "the true price of the whole upload"

    world.services.updater.step()
    for device in devices:
        assert sync(device) == after.release
        assert new_page(device).items, "feeds are made by the new encoder"
    again = manifest_of(world, coordinator.open_round(WHOLE, cohort=DEVICES, cohort_minimum=3, seconds=0.01))
    assert {name for name, ref in again.materials.items() if ref != manifest.materials[name]} == {MODEL}, (
        "titles and words stay as they are, so that devices have them by their hash"
    )
    model = WordModel(world.settings.encoder_dir).trained(after.encoder)
    assert model is not None
    sent = load(releases.read_blob(again.materials[MODEL].sha256))
    assert all((sent[name] == each).all() for name, each in model.items()), "from where the release stands"
    while coordinator.status(again.round).state != "failed":
        coordinator.step()

    with pytest.raises(RoundImpossible, match="reads words"):
        coordinator.open_round("news_union", cohort=DEVICES, cohort_minimum=3, seconds=900.0)
    head = manifest_of(world, coordinator.open_round("news_head/exact/mean", cohort=5, cohort_minimum=3, seconds=0.01))
    started = unpack_head(releases.read_blob(head.materials[HEAD].sha256), DIMENSIONS)
    assert (started["head.weight"] == np.eye(DIMENSIONS)).all(), "and goes on with the last encoder on BERT"
    while coordinator.status(head.round).state != "failed":
        coordinator.step()
    earlier = next(each for each in releases.kept() if each.encoder == "words-of-titles")
    assert roll_back(releases, earlier.release).encoder == "words-of-titles", "and the way back is open"

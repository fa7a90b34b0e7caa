"""Uni-FedRec as published, end to end over HTTP, against the paper's formulas in NumPy.

From clicks to the list that the server returns, and one round of training. Noise is drawn from a stream that the test
keeps.
"""

from __future__ import annotations

import html
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from backend.db.engine import open_engine
from backend.news.pool import NewsPool
from backend.operations.admin_client import Operator
from backend.releases.publish import RecallTerms, publish_changes, publish_rankers, publish_recall
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings
from protocol.recall import RecallAnswer
from protocol.rounds import RoundStatus
from protocol.tensors import TensorSpec, unpack
from tests.doubles.graphs import shared_graphs
from tests.doubles.new_page import new_page
from tests.doubles.nrms_paper import nrms_gradient
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter
from tests.doubles.small_world import SmallWorld, WordEmbedder, small_world
from tests.doubles.uni_fedrec_paper import (
    GRID,
    Floats,
    PaperFigures,
    PaperModel,
    protected,
    protected_gradient,
    read,
    recalled,
    sample_gradient,
)

SYSTEM, RANKING, RANKER = "uni_fedrec", "uni_fedrec_ranking", "ranker.nrms"
FIGURES = PaperFigures()
DROPOUT, NEGATIVES, SAMPLES = 0.2, 4, 32
SAMPLING = 17
"""Seed of the draws of samples and of what dropout leaves."""
CLICKED = (
    *("rowing-03", "rowing-07", "rowing-11", "rowing-15", "opera-02", "opera-05", "opera-09", "sleep-01", "sleep-04"),
    *("energy-06", "energy-08", "energy-12"),
)
PARTS = {
    "queries": "attention.query.weight",
    "keys": "attention.key.weight",
    "values": "attention.value.weight",
    "hidden": "cluster_attention.hidden.weight",
    "bias": "cluster_attention.hidden.bias",
    "query": "cluster_attention.query.weight",
    "basis_keys": "basis_keys",
    "basis_values": "basis_values",
}
UNUSED = "cluster_attention.query.bias"
"""Adds the same to every attention score, so that it changes nothing."""


def shaken(weights: Mapping[str, NDArray[np.float32]], seed: int = 3) -> dict[str, NDArray[np.float32]]:
    """Add a little noise to the model, so that no parameter stays at a special start."""
    draw = np.random.default_rng(seed)
    return {
        name: value + 0.02 * draw.normal(size=value.shape).astype(np.float32) for name, value in sorted(weights.items())
    }


def further(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Move the model away from its start, where attention is uniform and these readers have one channel."""
    moved = shaken(weights)
    moved[PARTS["values"]] *= np.float32(1.7)
    moved[PARTS["query"]] *= np.float32(20)
    return moved


@dataclass
class KeptNoise:
    """A simulated stream of noise that records its draws."""

    stream: SeededNoise = field(default_factory=lambda: SeededNoise("as printed"))
    given: list[bytes] = field(default_factory=list)

    def uniform_bits(self, n: int) -> bytes:
        self.given.append(self.stream.uniform_bits(n))
        return self.given[-1]


@pytest.fixture(scope="module")
def printed(first_backend: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    """A backend that runs the paper's system, on a release made for it."""
    with small_world(first_backend, tmp_path_factory.mktemp("printed")) as world:
        world.settings = BackendSettings(
            data_dir=world.settings.data_dir,
            as_published="uni_fedrec",
            rounds_every_minutes=60,
            round_tick_sec=0.05,
            pool_poll_sec=0.2,
            unbounded_addresses=("127.0.0.0/8",),
        )
        engine = open_engine(world.settings.database_url)
        _, vectors = NewsPool(engine).vectors(WordEmbedder.digest)
        store = ReleaseStore.open(engine, world.settings)
        publish_recall(store, np.asarray(vectors), RecallTerms.of(world.settings))
        made = publish_rankers(store, world.settings.rankers, cache=shared_graphs())
        changes = {"recall": further(store.weights(made, "recall")), RANKER: shaken(store.weights(made, RANKER))}
        publish_changes(store, made, changes, "as if trained for long")
        engine.dispose()
        with world.backend():
            yield world


@dataclass
class PrintedReader:
    """A device of the paper's system and the noise that it drew."""

    device: Device
    noise: KeptNoise


@pytest.fixture(scope="module")
def reader(printed: SmallWorld) -> PrintedReader:
    """A reader who has read eleven stories of one feed and more of another, and may train."""
    settings = DeviceSettings(
        profile="printed",
        data_dir=printed.folder,
        backend_url=printed.url,
        as_published="uni_fedrec",
        privacy={"training": True, "epsilon_per_day_training": 1e9},  # type: ignore[arg-type]
        performance={"training_send_sec": 0, "bodies_wait_sec": 0.2},  # type: ignore[arg-type]
    )
    noise = KeptNoise()
    device = build_device(settings, noise=noise, draw=lambda _: np.random.default_rng(SAMPLING))
    printed.devices.append(device)
    device.sync()
    feed = new_page(device)
    for news_id in CLICKED:
        device.reading.open(news_id, feed.feed_id)
    return PrintedReader(device, noise)


def model_of(printed: SmallWorld) -> PaperModel:
    """Return the release's parameters under the paper's names."""
    assert printed.services is not None
    releases = printed.services.releases
    weights = releases.weights(releases.require_current(), "recall")
    assert set(weights) == {*PARTS.values(), UNUSED}
    found = {part: weights[name].astype(np.float64) for part, name in PARTS.items()}
    return PaperModel(**{**found, "query": found["query"][0]})


def clicked_vectors(device: Device) -> Floats:
    """Return h_1, ..., h_H as the device has them, oldest first."""
    reading = device.parts.serving.feed_context.user_preferences.reading(WordEmbedder.digest)
    assert [click.card.id for click in reading.active] == list(CLICKED)
    return np.stack([click.vector for click in reading.active]).astype(np.float64)


def ended(operator: Operator, number: str) -> RoundStatus:
    """Return the round's status once it was applied and the round that it orders is open."""
    until = time.monotonic() + 60
    while (status := operator.status(number)).state not in ("applied", "failed") or (
        status.orders and not status.followed_by
    ):
        assert time.monotonic() < until, "the round did not end"
        time.sleep(0.05)
    assert status.state == "applied", status.reason
    return status


def assert_sent(body: bytes, expected: Mapping[str, Floats]) -> None:
    """Check that the upload holds exactly these protected gradients, in float32."""
    specs = {f"g.{name}": TensorSpec("float32", value.shape) for name, value in expected.items()}
    update = unpack(body, specs, limit_bytes=10**8)
    for name, value in expected.items():
        np.testing.assert_allclose(update[f"g.{name}"], value, rtol=0, atol=2e-7, err_msg=name)


def test_recall_follows_the_paper_from_clicks_to_the_merged_list(printed: SmallWorld, reader: PrintedReader) -> None:
    device, model = reader.device, model_of(printed)
    before, drawn = len(printed.requests()), len(reader.noise.given)
    feed = new_page(device)
    assert feed.mode == "personal", feed.notice
    (asked,) = [one for one in printed.requests()[before:] if one.path == "/v1/recall"]
    (words,) = reader.noise.given[drawn:]

    mine = read(model, clicked_vectors(device), FIGURES)
    assert len(mine.counts) > 2, "with one channel there is nothing to merge"
    assert (np.abs(mine.scores) > FIGURES.clip).any()
    scores = protected(mine.scores, words, FIGURES)
    sent = json.loads(asked.body)["report"]
    assert (sent["kind"], sent["counts"]) == ("basis_laplace", mine.counts)
    np.testing.assert_allclose(sent["scores"], scores, rtol=0, atol=1.01 * GRID)  # a float32 may round the other way

    assert printed.services is not None
    ids, pool = printed.services.pool.vectors(WordEmbedder.digest)
    rows, closest = recalled(model, scores, mine.counts, pool.astype(np.float64), FIGURES)
    assert closest > 5e-6, "news too near to one another for float32 to tell their order"
    answer = RecallAnswer.model_validate_json(asked.answer)
    assert len(rows) == FIGURES.recalled < len(ids)
    assert [card.id for card in answer.candidates] == [ids[row] for row in rows]
    assert rows != np.argsort(-(pool @ pool.mean(axis=0)))[: len(rows)].tolist(), "not everybody's list"


def test_report_as_published_is_shown_and_charged_at_its_true_price(reader: PrintedReader) -> None:
    device = reader.device
    new_page(device)
    reported = device.privacy.overview()
    price = 2 * FIGURES.clip * 30 * FIGURES.channels_limit / FIGURES.noise
    assert reported.mechanism is not None
    assert reported.mechanism.costs[0][1] == pytest.approx(2 * FIGURES.clip / FIGURES.noise), "what the paper prints"
    assert reported.mechanism.epsilon_per_report == pytest.approx(price) == pytest.approx(50)
    (reports,) = [budget for budget in reported.budgets if budget.channel == "reports"]
    assert reports.spent_today == pytest.approx(2 * price), "one before there were clicks; the same again costs nothing"
    assert {"mode", "epsilon_per_day_reports", "epsilon_lifetime_reports"} <= reported.given
    shown = device.status()
    assert (shown.shield, shown.as_published) == ("weak", "uni_fedrec"), "every page has the shield"
    assert "costs epsilon 50, too much to protect you. Up to 18 reports left today" in shown.shield_words
    app = create_app(device=device)
    home = f"http://127.0.0.1:{device.settings.port}"
    client = enter(TestClient(app, base_url=home, headers=FOLLOWS_A_LINK), app.state.page_key)
    for page in ("/", "/you", "/privacy", "/settings", "/training"):
        assert "costs epsilon 50, too much to protect you" in client.get(page).text, page
    privacy = client.get("/privacy").text
    assert "as_published = uni_fedrec" in privacy
    assert "this bound is too weak to protect you" in html.unescape(privacy)


def test_training_round_follows_the_paper_from_samples_to_model(printed: SmallWorld, reader: PrintedReader) -> None:
    device, model = reader.device, model_of(printed)
    feed = new_page(device)
    for item in feed.items[:4]:
        device.reading.open(item.card.id, feed.feed_id)
    operator = Operator(printed.url, printed.settings.admin_token_file)
    opened = operator.open_round(SYSTEM, seconds=120)
    assert opened.cohort == 1, "2 % of the devices that wait, one at least"
    before, drawn = len(printed.requests()), len(reader.noise.given)
    source = device.parts.trainer._computations.reading.samples(WordEmbedder.digest, None).with_all_negatives()
    assert device.train_step().state == "uploaded"
    (upload,) = [one for one in printed.requests()[before:] if "/updates/" in one.path]

    assert printed.services is not None
    weights = printed.services.releases.weights(printed.services.releases.manifest(opened.release), "recall")
    release = device.release()
    assert release is not None
    outputs = onnxruntime.InferenceSession(release.graph("recall", "gradient")).get_outputs()
    order = [each.name.removeprefix("g.") for each in outputs if each.name.startswith("g.")]  # as the device has them
    draw = np.random.default_rng(SAMPLING)
    samples = source.draw(negatives=NEGATIVES, limit=SAMPLES, rng=draw)
    thinned = [
        np.where(draw.random(each.shape) >= DROPOUT, each.astype(np.float64) / (1 - DROPOUT), 0.0)
        for each in (samples.clicks, samples.candidates)
    ]
    totals: dict[str, Floats] = {}
    for clicks, mask, clicks_kept, candidates in zip(samples.clicks, samples.click_mask, *thinned, strict=True):
        real = mask > 0
        groups = read(model, clicks[real].astype(np.float64), FIGURES).groups
        _, gradient = sample_gradient(model, clicks_kept[real], groups, candidates, FIGURES)
        for part, name in PARTS.items():
            value = getattr(gradient, part).reshape(weights[name].shape) / len(samples)
            totals[name] = totals[name] + value if name in totals else value
    totals[UNUSED] = np.zeros(1)
    assert len(samples) >= 4
    stores = device.parts.stores
    skipped = stores.impressions.seen(datetime(1970, 1, 1, tzinfo=UTC)) - {
        click.news_id for click in stores.clicks.recent(500)
    }
    _, displayed = stores.news.vectors(sorted(skipped), WordEmbedder.digest)
    negatives = {row.tobytes() for each in samples.candidates for row in each[1:]}
    assert negatives <= {row.tobytes() for row in displayed}, "displayed to but not clicked by this user"
    _, same_feed = stores.news.vectors([item.card.id for item in feed.items], WordEmbedder.digest)
    assert negatives - {row.tobytes() for row in same_feed}, "not of the same feed only"

    words = dict(zip(order, reader.noise.given[drawn:], strict=True))
    expected = protected_gradient(totals, words, FIGURES)
    assert_sent(upload.body, expected)
    status = ended(operator, opened.round)
    stepped = model_of(printed)
    for part, name in PARTS.items():
        moved = getattr(model, part) - FIGURES.rate * expected[name].reshape(getattr(model, part).shape)
        np.testing.assert_allclose(getattr(stepped, part), moved, rtol=0, atol=1e-6, err_msg=name)
    charged = {entry.mechanism: entry.epsilon for entry in device.parts.stores.ledger_entries.entries().rows}
    coordinates = sum(value.size for value in totals.values())
    price = 2 * FIGURES.gradient_clip / FIGURES.gradient_noise * coordinates
    assert charged["local_laplace"] == pytest.approx(price) == pytest.approx(4_899_860)
    assert status.orders == RANKING, "recall and ranking alternate"
    assert status.followed_by is not None
    ranking_follows_the_paper(printed, reader, operator, status.followed_by)


def ranking_follows_the_paper(printed: SmallWorld, reader: PrintedReader, operator: Operator, opened: str) -> None:
    """Stage two: NRMS's gradient under the same protection, and the server's step."""
    device = reader.device
    device.sync()
    before, drawn = len(printed.requests()), len(reader.noise.given)
    assert device.train_step().state == "uploaded"
    (upload,) = [one for one in printed.requests()[before:] if "/updates/" in one.path]
    release = device.release()
    assert release is not None
    weights = {name: value.astype(np.float64) for name, value in release.weights(RANKER).items()}
    outputs = onnxruntime.InferenceSession(release.graph(RANKER, "gradient")).get_outputs()
    order = [each.name.removeprefix("g.") for each in outputs if each.name.startswith("g.")]
    source = device.parts.trainer._computations.reading.samples(WordEmbedder.digest)
    samples = source.draw(negatives=NEGATIVES, limit=SAMPLES, rng=np.random.default_rng(SAMPLING))
    totals = {name: np.zeros(value.shape) for name, value in weights.items()}
    for clicks, mask, candidates in zip(samples.clicks, samples.click_mask, samples.candidates, strict=True):
        _, gradient, _, _ = nrms_gradient(weights, clicks[mask > 0].astype(np.float64), candidates.astype(np.float64))
        for name, value in gradient.items():
            totals[name] += value / len(samples)
    expected = protected_gradient(totals, dict(zip(order, reader.noise.given[drawn:], strict=True)), FIGURES)
    assert max(float(np.abs(value).max()) for value in totals.values()) > 1e-3, "there is something to learn"
    assert_sent(upload.body, expected)
    ended(operator, opened)
    assert printed.services is not None
    releases = printed.services.releases
    stepped = releases.weights(releases.require_current(), RANKER)
    for name, value in weights.items():
        np.testing.assert_allclose(
            stepped[name], value - FIGURES.rate * expected[name], rtol=0, atol=1e-6, err_msg=name
        )

"""The preset `fednewsrec` from samples to the steps of user model and news model.

Oracle: the paper's equations 2 to 7 in float64 (`tests.doubles.fednewsrec_paper`), L_u as a mean over samples, with the
Laplace noise that the devices drew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import UpdateRefused
from backend.federation.optimizers import Memory
from backend.federation.protections.registry import resolve as on_server
from backend.federation.strategies.news_words import NewsWords
from backend.federation.systems import COMPOSED
from device_app.errors import ProtectionTooWeak
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.protections.registry import resolve as on_device
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.news_gradient import NewsGradientTask
from device_app.training.tasks.word_gradient import WordModelInputs
from exporters.graphs import ranker_graphs, word_model_graphs
from models.builders.news import fednewsrec_view
from models.builders.user import fednewsrec
from models.news.words import WordVectorNews
from models.user.papers import FedNewsRecUser
from protocol.protections import SAMPLES, LocalLaplace
from protocol.tensors import TensorSpec, pack, unpack
from tests.doubles.fednewsrec_paper import Floats, device_gradient
from tests.doubles.graphs import kept_graph
from tests.doubles.sealing import allowing
from tests.doubles.sharing import shared
from tests.doubles.split_world import DIM, NEWS, news_id, reader
from tests.doubles.wire_messages import AT, ROUND

PUBLISHED = COMPOSED["fednewsrec"]
ETA, H, DELTA, LAMBDA = 0.5, 4, 0.005, 0.015
HEADS, WORDS, WORD_DIM, TITLE = 4, 40, 6, 30
FEEDS = (2, 30, 3, 4, 6)
"""How many feeds each reader saw; the second has more than 32 samples."""


@dataclass
class KeptNoise:
    """A simulated stream of noise that records its draws."""

    stream: SeededNoise
    given: list[bytes] = field(default_factory=list)

    def uniform_bits(self, n: int) -> bytes:
        self.given.append(self.stream.uniform_bits(n))
        return self.given[-1]

    def laplace(self) -> Floats:
        """Return La(0, lambda) of eq. 5 by its inverse distribution function, from the recorded draws."""
        words = np.frombuffer(b"".join(self.given), dtype="<u8")
        size = -LAMBDA * np.log(((words >> np.uint64(11)).astype(np.float64) + 1) / 2.0**53)
        return np.where(words & np.uint64(1), size, -size)


@pytest.fixture(scope="module")
def models() -> tuple[FedNewsRecUser, WordVectorNews]:
    """Small models away from their starts, so that every parameter has a gradient."""
    torch.manual_seed(5)
    user = fednewsrec(heads=HEADS, head_dim=DIM // HEADS, attention_dim=8)
    view = fednewsrec_view(word_dim=WORD_DIM, filters=10, heads=HEADS, head_dim=DIM // HEADS, attention_dim=8)
    news = WordVectorNews(view)
    with torch.no_grad():
        for each in (*user.parameters(), *news.parameters()):
            each.add_(0.3 * torch.randn_like(each))
    return user, news


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    database = Database(tmp_path / "device.sqlite")
    settings = PrivacySettings(training=True, epsilon_per_day_training=1e9)
    yield Ledger(LedgerRepository(database), allowing(settings), lambda: AT)
    database.close()


def weights_of(model: torch.nn.Module) -> dict[str, NDArray[np.float32]]:
    return {name: each.detach().numpy().copy() for name, each in model.named_parameters()}


def exact(weights: dict[str, NDArray[np.float32]]) -> dict[str, Floats]:
    return {name: each.astype(np.float64) for name, each in weights.items()}


def worded(news: WordVectorNews) -> WordModelInputs:
    """Return titles of 3 to 9 words."""
    draw = np.random.default_rng(8)
    texts = np.zeros((NEWS, TITLE), np.int32)
    for row in texts:
        length = int(draw.integers(3, 10))
        row[:length] = draw.integers(1, WORDS, size=length)
    table = draw.normal(size=(WORDS, WORD_DIM)).astype(np.float16)
    (spec,) = word_model_graphs(news)
    graph = OnnxGradients(kept_graph(news, spec))
    return WordModelInputs(weights_of(news), graph, {news_id(row): row for row in range(NEWS)}, {"word": texts}, table)


def readers() -> list[ReaderSamples]:
    vectors = np.random.default_rng(0).normal(size=(NEWS, DIM)).astype(np.float32)  # replaced by the news model's
    return [reader(seed, vectors, feeds, range(20)) for seed, feeds in enumerate(FEEDS)]


def test_round_follows_equations_2_to_7_from_samples_to_both_models(
    models: tuple[FedNewsRecUser, WordVectorNews], ledger: Ledger
) -> None:
    assert isinstance(PUBLISHED.protection, LocalLaplace)
    assert isinstance(PUBLISHED.strategy, NewsWords)
    assert PUBLISHED.optimizer is not None
    user, news = (weights_of(each) for each in models)
    article = worded(models[1])
    spec = next(each for each in ranker_graphs(models[0]) if each.purpose == PUBLISHED.graph)
    graph = OnnxGradients(kept_graph(models[0], spec))
    task = NewsGradientTask(article, PUBLISHED.negatives, PUBLISHED.samples_limit)
    server = on_server(PUBLISHED.protection).upload_rules(task.shapes(user))
    total = Aggregate(server.shapes)
    titles = [article.table[row[row > 0]].astype(np.float64) for row in article.texts["word"]]

    weighted: dict[str, Floats] = {}
    sizes, clipped = [], 0
    for seed, of_reader in enumerate(readers()):
        update = task.run(user, of_reader, graph, np.random.default_rng(seed))
        noise = KeptNoise(SeededNoise(seed))
        sealed = on_device(PUBLISHED.protection).seal(
            ComputedUpdate(shared(update.tensors), update.samples), ROUND, ledger=ledger, noise=noise
        )
        total.add(*server.read(sealed.payload))

        drawn = of_reader.draw_rows(negatives=H, limit=10_000, rng=np.random.default_rng(seed))
        place = [int(each[1:]) for each in drawn.ids]
        samples = [
            ([place[row] for row in clicks[mask > 0]], [place[row] for row in candidates])
            for clicks, mask, candidates in zip(drawn.click_rows, drawn.click_mask, drawn.candidate_rows, strict=True)
        ]
        gradient = device_gradient(exact(user), exact(news), titles, samples, HEADS)
        draws, at = noise.laplace(), 0
        sizes.append(len(samples))
        for name, sent in update.tensors.items():
            g = gradient[name.removeprefix("g.")]
            np.testing.assert_allclose(sent, g, rtol=0, atol=1e-6, err_msg=f"g_u, {name}, reader {seed}")
            clipped += int((np.abs(g) > DELTA).sum())
            noisy = np.clip(g, -DELTA, DELTA) + draws[at : at + g.size].reshape(g.shape)
            at += g.size
            weighted[name] = weighted.get(name, 0.0) + len(samples) * noisy
        assert at == len(draws)
    assert max(sizes) > 32, "|B_u| counts every behaviour"
    assert len(set(sizes)) == len(sizes)
    assert clipped > 100, "or eq. 4 would not show"

    mean = total.mean()
    assert total.count == sum(sizes)
    for name, value in weighted.items():
        np.testing.assert_allclose(mean[name], value / sum(sizes), rtol=0, atol=1e-6, err_msg=f"eq. 6, {name}")
    before = {**user, **{f"news.{name}": each for name, each in news.items()}}
    gradient = {name.removeprefix("g."): each for name, each in mean.items()}
    after, _ = PUBLISHED.optimizer.advance(before, gradient, Memory())
    for name, old in before.items():
        wanted = old.astype(np.float64) - ETA * weighted[f"g.{name}"] / sum(sizes)
        np.testing.assert_allclose(after[name], wanted, rtol=0, atol=1e-6, err_msg=f"eq. 7, {name}")


def test_device_sends_its_samples_only_if_exact_sums_are_allowed(ledger: Ledger) -> None:
    """Formal guarantee: the charge is for the noisy numbers; n_u is sent in clear, so it needs its own permission."""
    assert isinstance(PUBLISHED.protection, LocalLaplace)
    device = on_device(PUBLISHED.protection)
    device.check(PrivacySettings(secure_sum="exact", weakest_scale_to_clip=0.1))
    with pytest.raises(ProtectionTooWeak, match="how many samples"):
        device.check(PrivacySettings(secure_sum="noisy", weakest_scale_to_clip=0.1))
    alike = PUBLISHED.protection.model_copy(update={"weight_limit": 1})
    on_device(alike).check(PrivacySettings(secure_sum="noisy", weakest_scale_to_clip=0.1))

    update = ComputedUpdate(shared({"g.a": np.zeros(3, np.float32)}), 5_000)
    specs = {"g.a": TensorSpec("float32", (3,)), SAMPLES: TensorSpec("float32", (1,))}
    sealed = device.seal(update, ROUND, ledger=ledger, noise=SeededNoise(1))
    assert unpack(sealed.payload, specs, limit_bytes=10_000)[SAMPLES] == PUBLISHED.protection.weight_limit
    assert sealed.charge.epsilon == pytest.approx(3 * 2 * DELTA / LAMBDA)
    assert "1024 samples" in sealed.words
    equal = on_device(alike).seal(update, ROUND, ledger=ledger, noise=SeededNoise(1))
    assert SAMPLES not in unpack(equal.payload, {"g.a": specs["g.a"]}, limit_bytes=10_000)


@pytest.mark.parametrize("samples", [0.0, -1.0, 1.5, 1_025.0, float("nan"), float("inf")])
def test_server_refuses_a_weight_that_is_not_a_whole_number_of_samples(samples: float) -> None:
    rules = on_server(PUBLISHED.protection).upload_rules({"g.a": (2,)})
    tensors = {"g.a": np.zeros(2, np.float32), SAMPLES: np.array([samples], np.float32)}
    with pytest.raises(UpdateRefused) as refused:
        rules.read(pack(tensors))
    assert refused.value.field in (SAMPLES, "body")
    with pytest.raises(UpdateRefused):
        rules.read(pack({"g.a": np.zeros(2, np.float32)}))
    assert rules.read(pack({**tensors, SAMPLES: np.array([7], np.float32)}))[1] == 7

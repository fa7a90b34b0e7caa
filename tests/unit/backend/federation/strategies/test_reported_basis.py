"""The basis behind reports, from a reader's clicks to the list.

Oracles: every report and the whole pool written out, torch's autograd on that in float64, and the lists of the server's
own decoder. The rounds are real: routes, coordinator, masks and trainers in one process.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.rounds.scheduling import Schedule
from backend.federation.strategies import reported_basis
from backend.federation.strategies.learned_codebook import NOISE_MOST, cohort_needed
from backend.federation.strategies.reported_basis import (
    BasisDraft,
    BasisRounds,
    BasisVote,
    expected_noise_share,
    gradient_graph,
    pool_of,
    principal_axes,
    report_lists,
)
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from backend.federation.systems.uni_fedrec import BASIS_VOTE
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.recall.posterior import code_weights
from device_app.settings import PrivacySettings
from device_app.training.gradients import OnnxGradients, no_gradients
from device_app.training.samples import Samples
from device_app.training.tasks.reported_basis import BasisGradientTask, BasisVoteTask, standing
from experiments.recall.basis_rounds import ClickSamples, clipped, gradients, votes
from exporters.package import export_basis_gradient
from models.recall.basis import ASSIGNMENT
from protocol.recall import ReportLists, report_chances
from protocol.releases import Codebook
from protocol.ring import WeightedSum
from protocol.tensors import TensorError, TensorSpec, pack, unpack
from tests.doubles.clock import StillClock
from tests.doubles.graphs import kept_export
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool
from tests.doubles.recall_world import log_probabilities
from tests.doubles.round_rig import DIM, ENCODER, BackendRig, DeviceRig, hand_made_draft
from tests.doubles.simulated_reader import simulated_reader

BASIS = COMPOSED["basis/secure/mean"]
BASIS_EXACT = COMPOSED["basis/exact/mean"]

K, AXES, NEWS, EPSILON, SHARPNESS = 5, 3, 90, 1.5, 4.0
BATCH = 7


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), dtype=np.float32)


class BasisCase:
    """A pool, a basis away from its cluster means, and readers of one to six clicks before the one to learn from."""

    def __init__(self) -> None:
        draw = np.random.default_rng(2)
        self.news = unit_rows(draw.normal(size=(NEWS, DIM)))
        self.popularity = draw.normal(size=NEWS).astype(np.float32)
        self.basis = unit_rows(draw.normal(size=(K, DIM)))
        self.shares = tuple((np.arange(1, K + 1) / np.arange(1, K + 1).sum()).tolist())
        self.axes = principal_axes(unit_rows(draw.normal(size=(9, DIM))), AXES)
        self.lists = report_lists(self.basis, self.shares, self.news, self.popularity, axes=self.axes)
        self.clicks = [draw.choice(NEWS, size=1 + row % 6, replace=False) for row in range(BATCH)]
        self.clicked = draw.integers(NEWS, size=BATCH)

    def samples(self) -> Samples:
        clicks, mask = np.zeros((BATCH, 50, DIM), np.float32), np.zeros((BATCH, 50), np.float32)
        for row, each in enumerate(self.clicks):
            clicks[row, -len(each) :], mask[row, -len(each) :] = self.news[each], 1.0
        candidates = np.stack([self.news[self.clicked], self.news[(self.clicked + 1) % NEWS]], axis=1)
        return Samples(clicks, mask, candidates)

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        return self.samples()

    def of_readers(self) -> ClickSamples:
        vectors = np.stack([unit_rows(self.news[each].mean(axis=0)) for each in self.clicks])
        return ClickSamples(np.arange(BATCH), vectors, self.news[self.clicked], np.zeros(BATCH, dtype=bool))

    def loss(self, steps: torch.Tensor) -> torch.Tensor:
        """Return the loss in float64: each report y with its probability, each list over the whole pool, log pop of the
        click left out."""
        basis, axes, news = (torch.from_numpy(each.astype(np.float64)) for each in (self.basis, self.axes, self.news))
        moved = basis + steps @ axes
        moved = moved / moved.norm(dim=1, keepdim=True)
        shares, everybody = self.lists.shares.astype(np.float64), np.logaddexp.reduce(self.popularity.astype(float))
        popularity = torch.from_numpy(self.popularity.astype(np.float64) - everybody)
        by_basis = (SHARPNESS * moved @ news.T + popularity).log_softmax(dim=1)  # log P(i | k)
        total = torch.zeros((), dtype=torch.float64)
        for mine, clicked in zip(self.clicks, self.clicked.tolist(), strict=True):
            user = news[torch.from_numpy(mine)].mean(dim=0)
            soft = (ASSIGNMENT * moved @ (user / user.norm())).softmax(dim=0)
            for y in range(K):
                chance = sum(soft[k] * np.exp(EPSILON * (k == y)) / (np.exp(EPSILON) + K - 1) for k in range(K))
                weights = code_weights(shares, EPSILON, y)
                in_list = sum(weights[k] * by_basis[k, clicked].exp() for k in range(K))
                total = total - chance * (in_list.log() - popularity[clicked])
        return total / BATCH


@pytest.fixture(scope="module")
def case() -> BasisCase:
    return BasisCase()


@pytest.fixture(scope="module")
def task(case: BasisCase) -> BasisGradientTask:
    sizes = (K, AXES, DIM, SHARPNESS)
    graph = OnnxGradients(kept_export(lambda: export_basis_gradient(*sizes), "basis", *sizes))
    return BasisGradientTask(case.lists, EPSILON, graph, negatives=1, samples_limit=32)


def test_device_gradient_matches_autograd_over_all_reports(case: BasisCase, task: BasisGradientTask) -> None:
    steps = torch.zeros(K, AXES, dtype=torch.float64, requires_grad=True)
    loss = case.loss(steps)
    loss.backward()
    found = task.run({}, case, no_gradients, np.random.default_rng(0))

    assert found.samples == BATCH
    assert found.loss == pytest.approx(loss.item(), abs=1e-5)
    assert steps.grad is not None
    assert found.tensors.keys() == task.shapes({}).keys()
    np.testing.assert_allclose(found.tensors["g.steps"], steps.grad, atol=1e-5)
    assert float(steps.grad.abs().max()) > 0.01


def test_experiments_closed_forms_match_the_devices(case: BasisCase, task: BasisGradientTask) -> None:
    mine = gradients(case.lists, case.of_readers(), BATCH, EPSILON)
    np.testing.assert_allclose(
        mine.mean(axis=0), task.run({}, case, no_gradients, np.random.default_rng(0)).tensors["g.steps"], atol=1e-5
    )
    assert np.sqrt(np.square(clipped(mine, 0.05)).sum(axis=(1, 2))).max() == pytest.approx(0.05)

    other = report_lists(unit_rows(case.basis + 0.3 * case.news[:K]), (), case.news, case.popularity, axes=case.axes)
    vote = BasisVoteTask(other, case.lists, EPSILON, negatives=1, samples_limit=64)
    reported = vote.run({}, case, no_gradients, np.random.default_rng(0)).tensors
    by_one = votes(other, case.lists, replace(case.of_readers(), reader=np.zeros(BATCH, dtype=np.int64)), 1, EPSILON)
    np.testing.assert_allclose([reported[name][0] for name in ("gain", "level", "square")], by_one[0], atol=1e-6)


def test_score_of_a_click_is_its_log_probability_ratio_to_popularity(case: BasisCase) -> None:
    logs = log_probabilities(case.basis, case.news, case.popularity, SHARPNESS)
    popularity = case.popularity - np.logaddexp.reduce(case.popularity.astype(float))
    shares, expected = case.lists.shares.astype(float), []
    for mine, clicked in zip(case.clicks, case.clicked, strict=True):
        true = int(np.argmax(case.basis @ unit_rows(case.news[mine].mean(axis=0))))
        lift = sum(
            report_chances(K, EPSILON)[true, y]
            * (np.log(code_weights(shares, EPSILON, y) @ np.exp(logs[:, clicked])) - popularity[clicked])
            for y in range(K)
        )
        expected.append(1 / (1 + np.exp(-lift)))
    assert standing(case.lists, case.samples(), EPSILON) == pytest.approx(np.mean(expected), abs=1e-5)


def test_packed_lists_are_restored_and_broken_ones_refused(case: BasisCase) -> None:
    again = ReportLists.unpack(case.lists.pack())
    np.testing.assert_array_equal(again.slopes, case.lists.slopes)
    assert again.sharpness == SHARPNESS
    for broken in (
        replace(case.lists, slopes=case.lists.slopes[:-1]),
        replace(case.lists, axes=case.lists.axes[:, :-1]),
        replace(case.lists, shares=np.zeros(K, np.float32)),
    ):
        with pytest.raises(TensorError):
            ReportLists.unpack(broken.pack())


def test_reported_noise_of_a_draft_matches_rounds_of_pure_noise() -> None:
    """Oracle: drafts from many draws."""
    rounds = BasisRounds(rate=0.05, size=K, axes=DIM)
    start, axes, deviation = unit_rows(np.random.default_rng(1).normal(size=(K, DIM))), np.eye(DIM, dtype="f4"), 0.02
    reported = gone = 0.0
    for seed in range(60):
        noise, draft = np.random.default_rng(seed), BasisDraft.begin(start)
        for _ in range(4):
            sums = {"g.steps": 10 * deviation * noise.normal(size=(K, DIM))}
            total = Aggregate.of_opened(WeightedSum(sums, 10), radius=0.1)
            draft = rounds.stepped(draft, total, deviation, axes)
        reported, gone = reported + draft.noise, gone + np.square(draft.prototypes - draft.begun).sum()
        assert not rounds.worth(draft, start)
    # Rows keep length 1, so that one of D directions is lost to each.
    assert reported / gone == pytest.approx(DIM / (DIM - 1), rel=0.1)


DEVICES = 8
WILLING = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
QUICK = replace(BASIS_EXACT, strategy=BasisRounds(rate=16.0, size=4, axes=4, vote_every=1, vote=BASIS_VOTE.name))


class BasisWorld:
    """Readers of planted topics, and a server whose codebook doesn't follow the topics."""

    def __init__(self, folder: Path, stack: ExitStack, graphs: Path) -> None:
        shutil.copytree(graphs, folder / "backend" / "graphs")
        self.pool = synthetic_pool(240, dim=DIM)
        self.backend = BackendRig.make(folder / "backend", StillClock(NOW + timedelta(days=1)))
        self.backend.coordinator._loader.held_out = 0.3
        self._fill(self.pool)
        store = self.backend.releases
        self.first = unit_rows(np.random.default_rng(3).normal(size=(4, DIM)))
        book = Codebook(size=4, epsilon=4.0, prototypes=store.add_blob(pack({"prototypes": self.first})))
        draft = hand_made_draft(store)
        store.commit(
            replace(draft, recall=draft.recall.model_copy(update={"codebooks": (book,)})), note="with a codebook"
        )
        network = InProcess(self.backend.app)
        stack.callback(network.close)
        self.devices = []
        for number in range(DEVICES):
            path = folder / f"device-{number}" / "device.sqlite"
            device = DeviceRig(path, self.backend.clock, network, WILLING, seed=number)
            stack.callback(device.stop)
            device.sync()
            device.read(simulated_reader(self.pool, np.random.default_rng(number)), self.pool)
            self.devices.append(device)

    def _fill(self, pool: SyntheticPool) -> None:
        news = NewsPool(self.backend.engine)
        draw = np.random.default_rng(4)
        named = [
            NewsItem(
                **card.model_dump(exclude={"url", "title", "also"}),
                title=" ".join(f"w{word}" for word in draw.integers(1_000_000, size=9)),
                body="",
            )
            for card in pool.cards
        ]
        news.add(named, source="test")
        news.store_vectors(ENCODER, [each.id for each in named], pool.vectors)

    def run(self) -> list[dict[str, object]]:
        """Run a round and those that it orders."""
        self.backend.coordinator.open_round(QUICK.name, cohort=DEVICES, cohort_minimum=2, seconds=60.0)
        for _ in range(20):
            for device in self.devices:
                device.trainer.step()
            self.backend.coordinator.step()
            self.backend.clock.go_on(1.0)
            if not self.backend.coordinator.open_rounds():
                break
        rounds = self.backend.coordinator.history(2)
        assert {each.state for each in rounds} <= {"applied"}, [each.reason for each in rounds]
        for device in self.devices:
            device.sync()
        return [{"system": each.system, "published": each.published} for each in rounds]

    def prototypes(self) -> np.ndarray:
        book = self.backend.releases.require_current().recall.codebook(4)
        assert book is not None
        content = self.backend.releases.read_blob(book.prototypes.sha256)
        return unpack(content, {"prototypes": TensorSpec("float32", (4, DIM))}, limit_bytes=len(content))["prototypes"]

    def candidates(self) -> list[list[int]]:
        """Return the 40 articles that each of the four reports leads to."""
        loader = self.backend.coordinator._loader
        release = self.backend.releases.require_current()
        vectors, popularity = pool_of(loader.context(release, RoundRequest(QUICK.name, 2, 2, 60.0), None))
        logs = log_probabilities(self.prototypes(), vectors, popularity, SHARPNESS)
        mixed = [code_weights(np.full(4, 0.25), 4.0, code) @ np.exp(logs) for code in range(4)]
        return [np.argsort(-each, kind="stable")[:40].tolist() for each in mixed]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache a round's graph, which a separate process makes, for the next round."""
    folder = tmp_path_factory.mktemp("backend")
    made = gradient_graph(folder, 4, 4, DIM)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reported_basis, "ProcessPoolExecutor", lambda *_, **__: pytest.fail("made twice"))
        assert gradient_graph(folder, 4, 4, DIM) == made
    return folder / "graphs"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graphs: Path) -> Iterator[BasisWorld]:
    quiet = BASIS_VOTE.protection.model_copy(update={"sigma": 0})  # eight devices can't be heard through the noise
    monkeypatch.setitem(COMPOSED, QUICK.name, QUICK)
    sooner = replace(BASIS_VOTE, protection=quiet, strategy=BasisVote(confidence=0.8))
    monkeypatch.setitem(COMPOSED, BASIS_VOTE.name, sooner)
    with ExitStack() as stack:
        yield BasisWorld(tmp_path, stack, graphs)


def test_rounds_change_the_default_candidates_after_a_positive_vote(world: BasisWorld) -> None:
    before = world.candidates()
    voted, trained = world.run()
    assert trained == {"system": QUICK.name, "published": None}, "nobody pays for a draft"
    assert voted == {"system": BASIS_VOTE.name, "published": "r3"}, world.backend.coordinator.history(1)[0].summary
    assert world.candidates() != before
    assert np.abs(np.linalg.norm(world.prototypes(), axis=1) - 1).max() < 1e-6


def test_draft_that_finds_no_more_is_not_published(world: BasisWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps go uphill, so the draft finds less than the served basis."""
    uphill = replace(QUICK, strategy=replace(QUICK.strategy, rate=-16.0))  # type: ignore[type-var]
    monkeypatch.setitem(COMPOSED, QUICK.name, uphill)
    assert world.run()[0] == {"system": BASIS_VOTE.name, "published": None}
    np.testing.assert_array_equal(world.prototypes(), world.first)


def test_round_with_too_much_noise_is_refused_with_the_cohort_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: rounds of 60 cost each device 1.62 and their drafts could never be voted on."""
    rig = BackendRig.make(tmp_path, StillClock(NOW))
    needed = r"With 60 devices .* 98 % .* noise.* Above 30 % .* about 5,800 devices a round would be enough"
    opener = rig.coordinator._opener
    for ask in (opener.open, opener.open_or_queue, opener.check):
        with pytest.raises(RoundImpossible, match=needed) as refused:
            ask(RoundRequest(BASIS.name, 60, 10, 60.0))
        assert (refused.value.field, refused.value.limit) == ("cohort", "about 5,800 devices")
    rig.coordinator.scheduler.begin(Schedule(RoundRequest(BASIS_EXACT.name, 60, 10, 60.0), 60.0))
    with pytest.raises(RoundImpossible, match=needed):
        rig.coordinator.scheduler.set(Schedule(RoundRequest(BASIS.name, 60, 10, 60.0), 60.0))
    assert rig.coordinator.current() is None
    opener.check(RoundRequest(BASIS.name, 5_800, 10, 60.0))
    opener.check(RoundRequest(BASIS_EXACT.name, 60, 10, 60.0))


def test_expected_draft_noise_matches_the_mind_experiment() -> None:
    """Oracle: the record of `ownfeed evaluate basis`, noise in drafts of 30 rounds."""
    noise = secure_sum_of(BASIS.protection)
    tables = json.loads(Path("experiments/results/basis.json").read_text(encoding="utf-8"))["tables"]
    rows = [row for row in tables[0]["rows"] if row[0] == BASIS.name]
    assert len(rows) == 3
    for _, cohort, _, found, *_ in rows:
        assert expected_noise_share(noise, 128, cohort) == pytest.approx(float(found), abs=0.03)
    enough = cohort_needed(partial(expected_noise_share, noise, 128))
    assert expected_noise_share(noise, 128, enough) <= NOISE_MOST < expected_noise_share(noise, 128, enough - 200)
    assert expected_noise_share(secure_sum_of(BASIS_EXACT.protection), 128, 2) == 0


def test_vote_cannot_open_without_a_drafted_basis(world: BasisWorld) -> None:
    with pytest.raises(RoundImpossible, match="drafted a basis"):
        world.backend.coordinator.open_round(BASIS_VOTE.name, cohort=4, cohort_minimum=2, seconds=60.0)
    assert isinstance(BASIS_VOTE.strategy, BasisVote)


def test_default_system_uses_the_shipped_ranker_protection_and_the_exact_one_no_noise() -> None:
    assert BASIS.protection == COMPOSED["small_ranker/secure/median"].protection
    assert getattr(BASIS_EXACT.protection, "sigma", None) == 0

"""The release gate. Oracles: the normal law for the rule, AUC pair by pair, and releases made bad on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from backend.db.engine import reading_session
from backend.db.tables_federation import RoundRow
from backend.federation.aggregate import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.release_gate import judge
from backend.federation.strategies.strategy import FederatedSystem, RoundContext, RoundResult
from backend.federation.systems import SYSTEMS
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.releases.draft import ReleaseDraft
from backend.releases.publish import publish_changes
from device_app.settings import PrivacySettings
from device_app.training.samples import is_held_out
from device_app.training.tasks.evaluate import mean_auc
from device_app.uplink.in_process import InProcess
from device_app.wire.protections import SecureSum
from device_app.wire.rounds import RoundManifest, RoundStatus
from device_app.wire.sum_vectors import BOUND, REACH, SHAPES, written
from tests.doubles.clock import StillClock
from tests.doubles.liar import AddsToMasked
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES = 12
MODEL = "ranker.features"
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=100, secure_sum="exact")
SHARE = 0.5


def sums_of(gains: np.ndarray) -> dict[str, np.ndarray]:
    """What devices with these gains, in AUC, sum up to; every level is 0.6."""
    parts = [written(0.6 + gain, 0.6) for gain in gains]
    return {name: np.array([sum(part[name] for part in parts)]) for name in SHAPES}


def test_the_verdict_has_the_gain_and_the_error_that_numpy_computes() -> None:
    gains = np.random.default_rng(0).normal(-0.004, 0.006, 400).clip(-REACH, REACH)
    verdict = judge(sums_of(gains), 400, 0.0, tolerance=0.003, confidence=0.95)

    assert verdict.gain == pytest.approx(gains.mean(), abs=1e-12)
    assert verdict.error == pytest.approx(gains.std() / 20, rel=1e-9)
    assert verdict.auc == pytest.approx(0.6 + gains.mean(), abs=1e-12)
    assert verdict.falls, "0.004 is ten errors below nothing"


@pytest.mark.parametrize(
    ("gain", "spread", "falls"),
    [(-0.0025, 0.001, False), (-0.004, 0.001, True), (-0.02, 0.0, True), (0.01, 0.001, False)],
    ids=["within the tolerance", "clear", "all alike", "better"],
)
def test_a_release_falls_only_beyond_the_tolerance(gain: float, spread: float, falls: bool) -> None:
    gains = gain + spread * np.tile([-1, 1], 50)
    assert judge(sums_of(gains), 100, 0.0, tolerance=0.003, confidence=0.95).falls is falls


def test_a_fall_that_is_not_significant_beside_the_noise_is_no_fall() -> None:
    gains = np.full(100, -0.004)
    quiet = judge(sums_of(gains), 100, 0.0, tolerance=0.003, confidence=0.95)
    loud = judge(sums_of(gains), 100, 20.0, tolerance=0.003, confidence=0.95)

    assert (quiet.falls, loud.falls) == (True, False)
    assert loud.found_from > 0.01


def test_a_release_that_is_no_worse_is_rolled_back_at_most_as_often_as_the_confidence_says() -> None:
    """4,000 gates of 60 devices: 5 % of them is 200, and a binomial passes 240 with probability below 0.2 %."""
    rng = np.random.default_rng(5)
    noise = RELEASE_GATE.protection.sigma * 2.0**-16 * np.sqrt(60)  # type: ignore[union-attr]
    fallen = 0
    for _ in range(4_000):
        exact = sums_of(rng.normal(0.0, 0.01, 60))
        noisy = {name: each + rng.normal(0.0, noise) for name, each in exact.items()}
        fallen += judge(noisy, 60, noise, tolerance=0.003, confidence=0.95).falls

    assert 20 < fallen <= 240


def test_a_fall_of_the_size_told_is_found_with_eighty_per_cent() -> None:
    """1,000 gates: a binomial of 0.8 stays above 750 with probability above 99.9 %."""
    rng = np.random.default_rng(6)
    noise = RELEASE_GATE.protection.sigma * 2.0**-16 * np.sqrt(60)  # type: ignore[union-attr]
    told = np.sqrt(0.01**2 / 60 + (REACH * noise / 60) ** 2) * (1.645 + 0.8416)
    found = 0
    for _ in range(1_000):
        exact = sums_of(rng.normal(-told, 0.01, 60))
        noisy = {name: each + rng.normal(0.0, noise) for name, each in exact.items()}
        found += judge(noisy, 60, noise, tolerance=0.0, confidence=0.95).falls

    assert found > 700, "noise in the spread costs a little of the power"


def test_no_device_can_weigh_more_than_the_bound() -> None:
    for new, old in ((1.0, 0.0), (0.0, 1.0), (0.7, 0.69)):
        numbers = written(new, old)
        assert sum(each**2 for each in numbers.values()) <= BOUND**2 + 1e-12


def test_auc_is_the_share_of_pairs_in_order_and_a_tie_counts_half() -> None:
    scores = np.array([[1.0, 0.0, 2.0, 1.0], [5.0, 1.0, 2.0, 3.0]], np.float32)
    assert mean_auc(scores) == pytest.approx(np.mean([(1 + 0 + 0.5) / 3, 1.0]))


def test_a_click_is_held_out_by_its_hash_and_about_as_many_as_wanted() -> None:
    drawn = [is_held_out(f"feed-{number // 5}", f"n{number}", 0.2) for number in range(20_000)]

    assert np.mean(drawn) == pytest.approx(0.2, abs=0.012)
    assert drawn == [is_held_out(f"feed-{number // 5}", f"n{number}", 0.2) for number in range(20_000)]
    assert not any(is_held_out("feed", f"n{number}", 0.0) for number in range(1_000))


def test_gradients_and_evaluation_share_no_click() -> None:
    pool = synthetic_pool(240, dim=DIM)
    samples = simulated_reader(pool, np.random.default_rng(1)).samples(pool)
    held, left = samples.held_out(SHARE), samples.without_held_out(SHARE)

    assert held.available + left.available == samples.available
    assert held.available > 0
    assert left.available > 0
    assert {id(each) for each in held._positives}.isdisjoint(id(each) for each in left._positives)
    assert samples.without_held_out(0.0).available == samples.available


@dataclass(frozen=True)
class Times(FedAvg):
    """A strategy that publishes the ranker with its beta multiplied: -1 turns every list around."""

    factor: float = 1.0

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        weights = context.releases.weights(context.release, MODEL)
        beta = np.asarray(weights["beta"] * np.float32(self.factor))
        return RoundResult(weights={MODEL: weights | {"beta": beta}}, memory=Memory(steps=7))


@dataclass
class GatedRounds:
    backend: BackendRig
    devices: list[DeviceRig]

    def run(self, system: str, steps: int = 60) -> list[RoundStatus]:
        """A round and what follows it; the devices take each release as it comes."""
        coordinator = self.backend.coordinator
        first = coordinator.open_round(system, cohort=DEVICES, cohort_minimum=10, seconds=60.0)
        for _ in range(steps):
            for device in self.devices:
                device.sync()
                device.trainer.step()
            coordinator.step()
            if coordinator.current() is None:
                break
        return [each for each in reversed(coordinator.history()) if each.opened_at >= first.opened_at]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GatedRounds]:
    small = SYSTEMS["small_ranker_exact"]
    for name, factor in (("turned", -1.0), ("sharper", 1.25)):
        monkeypatch.setitem(SYSTEMS, name, replace(small, name=name, strategy=Times(factor)))
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    backend.coordinator._loader.held_out = SHARE
    pool = synthetic_pool(240, dim=DIM)
    world = GatedRounds(backend, [])
    with ExitStack() as stack:
        network = InProcess(backend.app)
        stack.callback(network.close)
        for number in range(DEVICES):
            path = tmp_path / f"device-{number}" / "device.sqlite"
            device = DeviceRig(path, backend.clock, network, ALLOWS, seed=number, blob_folder=tmp_path / "blobs")
            stack.callback(device.stop)
            device.sync()
            device.read(simulated_reader(pool, np.random.default_rng(number)), pool)
            world.devices.append(device)
        yield world


def test_a_release_that_turns_every_list_around_is_rolled_back_under_noise_and_the_status_says_so(
    world: GatedRounds,
) -> None:
    trained, gate = world.run("turned")
    store = world.backend.releases

    assert (trained.state, trained.published, trained.orders, trained.followed_by) == (
        "applied",
        "r2",
        "release_gate",
        gate.round,
    )
    assert (gate.state, gate.reason, gate.system, gate.follows) == ("applied", None, "release_gate", trained.round)
    assert gate.published == "r3"
    assert store.manifest("r3").models == store.manifest("r1").models
    assert store.manifest("r2").models != store.manifest("r1").models
    assert gate.summary is not None
    assert "rolled back" in gate.summary
    assert store.history()[0].note.startswith("round-2: back to r1, since r2 scored -0.0")
    assert gate.epsilon is not None
    assert gate.epsilon > 0
    assert gate.orders is None, "a rollback is not scored again"
    spent = [device.ledger.spent_today("training") for device in world.devices]
    protection = RELEASE_GATE.protection
    assert isinstance(protection, SecureSum)
    assert max(spent) == pytest.approx(protection.epsilon(10, 3)), (
        "each pays for the fewest survivors; the exact sum is free"
    )
    with reading_session(world.backend.engine) as session:
        assert session.get_one(RoundRow, 1).memory is None, "what the optimizer learnt from the bad round goes with it"


class LiesInRoundTwo(AddsToMasked):
    """Adds more than any device may to the first of the gate's votes."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.lie = np.array([2**30, 0, 0, 0]) if request.url.path.startswith("/v1/rounds/round-2/") else None
        return super().handle_request(request)


def test_a_gate_that_a_liar_spoils_is_opened_again_and_scores_the_same_release(world: GatedRounds) -> None:
    attacker = world.devices[0]
    attacker.stop()
    attacker.transport = liar = LiesInRoundTwo(attacker.transport)
    attacker.start()
    world.backend.coordinator._retries = 2
    trained, spoiled, gate = world.run("turned")
    store = world.backend.releases

    assert liar.told == 1
    assert (spoiled.system, spoiled.state, spoiled.published, spoiled.follows, spoiled.followed_by) == (
        "release_gate",
        "failed",
        None,
        trained.round,
        gate.round,
    ), spoiled.reason
    assert spoiled.summary is not None
    assert "opened again once" in spoiled.summary
    assert (gate.system, gate.state, gate.published, gate.follows) == ("release_gate", "applied", "r3", spoiled.round)
    with reading_session(world.backend.engine) as session:
        facts = session.get_one(RoundRow, 3).facts
    assert facts is not None
    assert (facts["gate"]["release"], facts["gate"]["before"]) == ("r2", "r1")
    assert store.manifest("r3").models == store.manifest("r1").models


def test_a_release_that_ranks_alike_stays(world: GatedRounds) -> None:
    trained, gate = world.run("sharper")

    assert (trained.published, gate.state, gate.published) == ("r2", "applied", None)
    assert world.backend.releases.require_current().release == "r2"
    assert gate.summary is not None
    assert gate.summary.endswith("it stays.")
    with reading_session(world.backend.engine) as session:
        facts = session.get_one(RoundRow, 2).facts
        assert session.get_one(RoundRow, 1).memory is not None
    assert facts is not None
    assert facts["gate"]["falls"] is False
    assert facts["gate"]["devices"] == gate.survivors


def test_without_noise_the_gate_sees_what_the_devices_computed(
    world: GatedRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SYSTEMS, "release_gate", replace(RELEASE_GATE, protection=SecureSum(clip=BOUND)))
    aucs: list[float] = []

    def overheard(scores: np.ndarray) -> float:
        aucs.append(mean_auc(scores))
        return aucs[-1]

    monkeypatch.setattr("device_app.training.tasks.evaluate.mean_auc", overheard)
    _, gate = world.run("turned")
    with reading_session(world.backend.engine) as session:
        facts = session.get_one(RoundRow, 2).facts
    assert facts is not None
    verdict = facts["gate"]

    new, old = np.array(aucs[::2]), np.array(aucs[1::2])
    assert verdict["gain"] == pytest.approx(np.clip(new - old, -REACH, REACH).mean(), abs=1e-5)
    assert verdict["auc"] == pytest.approx(new.mean(), abs=1e-4)
    assert verdict["falls"] is True
    assert old.mean() > new.mean() + 0.1, "the lists are turned around"
    assert gate.epsilon is None


def test_a_release_that_nobody_scores_is_taken_back_with_the_round_that_failed(world: GatedRounds) -> None:
    coordinator, store = world.backend.coordinator, world.backend.releases
    trained = coordinator.open_round("sharper", cohort=DEVICES, cohort_minimum=10, seconds=60.0)
    while coordinator.status(trained.round).state != "applied":
        for device in world.devices:
            device.trainer.step()
        coordinator.step()
    gate = coordinator.current()
    assert gate is not None
    assert store.require_current().release == "r2"
    world.backend.clock.go_on(3_600)
    coordinator.step()

    ended = coordinator.status(gate.round)
    assert (ended.state, ended.published, ended.survivors) == ("failed", "r3", None)
    assert store.manifest("r3").models == store.manifest("r1").models
    assert store.history()[0].note.startswith("back to r1, since r2 was not scored: round-2: 0 members")
    with reading_session(world.backend.engine) as session:
        assert session.get_one(RoundRow, 1).memory is None
    assert coordinator.current() is None


def test_a_release_whose_gate_is_cancelled_is_taken_back(world: GatedRounds) -> None:
    coordinator, store = world.backend.coordinator, world.backend.releases
    before = store.require_current()
    changed = store.weights(before, MODEL)
    publish_changes(store, before, {MODEL: {**changed, "beta": np.float32(-1) * changed["beta"]}}, note="poisoned")
    gate = coordinator.open_round("release_gate", cohort=DEVICES, cohort_minimum=10, seconds=60.0)
    assert coordinator.cancel(gate.round).published == "r3"
    assert store.require_current().models == before.models


def test_a_gate_that_is_off_orders_nothing_and_cannot_be_opened(world: GatedRounds) -> None:
    world.backend.coordinator._loader.held_out = 0.0
    (trained,) = world.run("turned")

    assert (trained.published, trained.orders) == ("r2", None)
    with pytest.raises(RoundImpossible, match="hold no clicks out"):
        world.backend.coordinator.open_round("release_gate", cohort=12, cohort_minimum=10, seconds=60.0)


def test_a_ranker_of_a_system_without_a_gate_is_not_published_while_the_gate_is_on(
    world: GatedRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SYSTEMS, "turned", replace(SYSTEMS["turned"], gate=None))
    (trained,) = world.run("turned")

    assert (trained.state, trained.published) == ("failed", None)
    assert trained.reason is not None
    assert "System 'turned' names no gate" in trained.reason


def test_a_first_release_and_one_that_changed_no_ranker_cannot_be_scored(world: GatedRounds) -> None:
    coordinator: Coordinator = world.backend.coordinator
    with pytest.raises(RoundImpossible, match="r1 has no predecessor"):
        coordinator.open_round("release_gate", cohort=12, cohort_minimum=10, seconds=60.0)
    store = world.backend.releases
    same = store.require_current()
    store.commit(ReleaseDraft.like(same), note="the same again")
    with pytest.raises(RoundImpossible, match="No ranker has other weights in r2 than in r1"):
        coordinator.open_round("release_gate", cohort=12, cohort_minimum=10, seconds=60.0)

"""The release gate. Oracles: AUC pair by pair, and releases that the test makes worse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.strategy import FederatedSystem, RoundContext, RoundResult
from backend.federation.systems import COMPOSED
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.releases.blobs import ReleaseDraft
from backend.releases.publish import publish_changes
from device_app.settings import PrivacySettings
from device_app.training.samples import is_held_out
from device_app.training.tasks.evaluate import mean_auc
from protocol.protections import SecureSum
from protocol.ring import BOUND, GAIN_LIMIT
from protocol.rounds import RoundManifest, RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_client import ForgingTransport
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES = 12
MODEL = "ranker.features"
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=100, secure_sum="exact", smallest_sum=3)
SHARE = 0.5


def test_auc_counts_ordered_pairs_and_half_of_ties() -> None:
    scores = np.array([[1.0, 0.0, 2.0, 1.0], [5.0, 1.0, 2.0, 3.0]], np.float32)
    assert mean_auc(scores) == pytest.approx(np.mean([(1 + 0 + 0.5) / 3, 1.0]))


def test_clicks_are_held_out_by_hash_at_the_requested_share() -> None:
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
    """A strategy that publishes the ranker with its beta multiplied: -1 reverses every list."""

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

    def run(self, system: str, steps: int = 60, minimum: int = 10) -> list[RoundStatus]:
        """Run a round and what follows it; the devices take each release as it arrives."""
        coordinator = self.backend.coordinator
        first = coordinator.open_round(system, cohort=DEVICES, cohort_minimum=minimum, seconds=60.0)
        for _ in range(steps):
            newest = self.backend.releases.require_current().release
            for device in self.devices:
                if device.release() != newest:
                    device.sync()
                device.trainer.step()
            coordinator.step()
            if coordinator.current() is None:
                break
        return [each for each in reversed(coordinator.history()) if each.opened_at >= first.opened_at]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GatedRounds]:
    small = COMPOSED["small_ranker/exact/mean"]
    for name, factor in (("turned", -1.0), ("sharper", 1.25), ("alike", 1.001)):
        monkeypatch.setitem(COMPOSED, name, replace(small, name=name, strategy=Times(factor)))
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    backend.coordinator._loader.held_out = SHARE
    pool = synthetic_pool(240, dim=DIM)
    world = GatedRounds(backend, [])
    with ExitStack() as stack:
        network = InProcess(backend.app)
        stack.callback(network.close)
        paths = [tmp_path / f"device-{number}" / "device.sqlite" for number in range(DEVICES)]
        for number, path in enumerate(paths):
            if number:
                path.parent.mkdir()
                shutil.copy(tmp_path / "first.sqlite", path)  # twelve migrations and first syncs would only take time
            device = DeviceRig(path, backend.clock, network, ALLOWS, seed=number, blob_folder=tmp_path / "blobs")
            if not number:
                device.sync()
                device.stop()
                shutil.copy(path, tmp_path / "first.sqlite")
                device.start()
            stack.callback(device.stop)
            device.read(simulated_reader(pool, np.random.default_rng(number)), pool)
            world.devices.append(device)
        yield world


def test_worse_release_is_rolled_back_under_noise_with_a_status(
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


class ForgesInRoundTwo(ForgingTransport):
    """Adds to its gain in the first vote of the gate, by default more than any device may."""

    def __init__(self, network: httpx.BaseTransport, gain: int = 2**30) -> None:
        super().__init__(network)
        self.adds = np.array([gain, 0, 0, 0])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.added = self.adds if request.url.path.startswith("/v1/rounds/round-2/") else None
        return super().handle_request(request)


def test_gate_failed_by_a_malicious_device_is_retried_on_the_same_release(world: GatedRounds) -> None:
    attacker = world.devices[0]
    attacker.stop()
    attacker.transport = client = ForgesInRoundTwo(attacker.transport)
    attacker.start()
    world.backend.coordinator._retries = 2
    trained, spoiled, gate = world.run("turned")
    store = world.backend.releases

    assert client.sent == 1
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


@pytest.fixture
def in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate without noise, with its twelve voters in three groups."""
    gate = replace(RELEASE_GATE, protection=SecureSum(clip=BOUND), join=MedianOfSums(members=3))
    monkeypatch.setitem(COMPOSED, "release_gate", gate)


@pytest.mark.usefixtures("in_groups")
def test_decline_seen_by_groups_is_confirmed_by_a_second_vote(world: GatedRounds) -> None:
    trained, first, second = world.run("turned", minimum=3)
    store = world.backend.releases

    assert (trained.published, first.system, second.system) == ("r2", "release_gate", "release_gate")
    assert (first.state, first.published, first.followed_by) == ("applied", None, second.round), first.reason
    assert first.summary is not None
    assert first.summary.endswith("a second vote decides.")
    assert (second.state, second.published, second.followed_by) == ("applied", "r3", None), second.reason
    assert store.manifest("r3").models == store.manifest("r1").models
    [score] = world.backend.coordinator.scores()
    assert (score.round, score.release, score.taken_back, score.devices) == (second.round, "r2", True, 2 * DEVICES)


@pytest.mark.usefixtures("in_groups")
def test_malicious_votes_do_not_roll_back_a_good_release(world: GatedRounds) -> None:
    """Regression: five of twelve, who are in at least two groups of three, voted every release down."""
    for attacker in world.devices[:5]:
        attacker.stop()
        attacker.transport = ForgesInRoundTwo(attacker.transport, gain=-(2**16))
        attacker.start()
    _, first, second = world.run("alike", minimum=3)

    assert (first.published, first.orders) == (None, "release_gate"), first.summary
    assert (second.state, second.published) == ("applied", None), second.reason
    assert second.summary is not None
    assert second.summary.endswith("it stays.")
    assert world.backend.releases.require_current().release == "r2"


@pytest.mark.usefixtures("in_groups")
def test_release_is_rolled_back_if_its_second_vote_cannot_be_held(world: GatedRounds) -> None:
    coordinator, store = world.backend.coordinator, world.backend.releases
    trained = coordinator.open_round("turned", cohort=DEVICES, cohort_minimum=3, seconds=60.0)
    for _ in range(60):
        for device in world.devices:
            device.sync()
            device.trainer.step()
        coordinator.step()
        if len(coordinator.history()) == 3:
            break
    assert coordinator.history()[-1].round == trained.round
    assert store.require_current().release == "r2"
    world.backend.clock.go_on(3_600)
    coordinator.step()

    ended = coordinator.status("round-3")
    assert (ended.system, ended.state, ended.published) == ("release_gate", "failed", "r3")
    assert store.manifest("r3").models == store.manifest("r1").models
    assert coordinator.current() is None


def test_release_with_equal_ranking_stays(world: GatedRounds) -> None:
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


def test_noiseless_gate_matches_the_devices_computations(world: GatedRounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMPOSED, "release_gate", replace(RELEASE_GATE, protection=SecureSum(clip=BOUND)))
    aucs: list[float] = []

    def recorded(scores: np.ndarray) -> float:
        aucs.append(mean_auc(scores))
        return aucs[-1]

    monkeypatch.setattr("device_app.training.tasks.evaluate.mean_auc", recorded)
    _, gate = world.run("turned")
    with reading_session(world.backend.engine) as session:
        facts = session.get_one(RoundRow, 2).facts
    assert facts is not None
    verdict = facts["gate"]

    new, old = np.array(aucs[::2]), np.array(aucs[1::2])
    assert verdict["gain"] == pytest.approx(np.clip(new - old, -GAIN_LIMIT, GAIN_LIMIT).mean(), abs=1e-5)
    assert verdict["auc"] == pytest.approx(new.mean(), abs=1e-4)
    assert verdict["falls"] is True
    assert old.mean() > new.mean() + 0.1, "the lists are turned around"
    assert gate.epsilon is None


def test_release_is_rolled_back_when_its_gate_fails_without_a_score(world: GatedRounds) -> None:
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


def test_release_with_a_cancelled_gate_is_rolled_back(world: GatedRounds) -> None:
    coordinator, store = world.backend.coordinator, world.backend.releases
    before = store.require_current()
    changed = store.weights(before, MODEL)
    publish_changes(store, before, {MODEL: {**changed, "beta": np.float32(-1) * changed["beta"]}}, note="poisoned")
    gate = coordinator.open_round("release_gate", cohort=DEVICES, cohort_minimum=10, seconds=60.0)
    assert coordinator.cancel(gate.round).published == "r3"
    assert store.require_current().models == before.models


def test_disabled_gate_orders_nothing_and_cannot_be_opened(world: GatedRounds) -> None:
    world.backend.coordinator._loader.held_out = 0.0
    (trained,) = world.run("turned")

    assert (trained.published, trained.orders) == ("r2", None)
    with pytest.raises(RoundImpossible, match="hold out no clicks"):
        world.backend.coordinator.open_round("release_gate", cohort=12, cohort_minimum=10, seconds=60.0)


def test_ranker_without_a_gate_is_not_published_while_gating_is_on(
    world: GatedRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPOSED, "turned", replace(COMPOSED["turned"], gate=None))
    (trained,) = world.run("turned")

    assert (trained.state, trained.published) == ("failed", None)
    assert trained.reason is not None
    assert "System 'turned' names no gate" in trained.reason


def test_first_release_or_one_with_unchanged_rankers_cannot_be_scored(world: GatedRounds) -> None:
    coordinator: Coordinator = world.backend.coordinator
    with pytest.raises(RoundImpossible, match="r1 has no previous release"):
        coordinator.open_round("release_gate", cohort=12, cohort_minimum=10, seconds=60.0)
    store = world.backend.releases
    same = store.require_current()
    store.commit(ReleaseDraft.like(same), note="the same again")
    with pytest.raises(RoundImpossible, match="No ranker has different weights in r2 than in r1"):
        coordinator.open_round("release_gate", cohort=12, cohort_minimum=10, seconds=60.0)

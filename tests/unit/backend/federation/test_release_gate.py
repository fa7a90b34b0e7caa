"""The release gate. Oracles: AUC pair by pair, and releases made bad on purpose."""

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
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.joined_sums import MedianOfSums
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
from device_app.wire.sum_vectors import BOUND, GAIN_LIMIT
from tests.doubles.clock import StillClock
from tests.doubles.liar import AddsToMasked
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES = 12
MODEL = "ranker.features"
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=100, secure_sum="exact", smallest_sum=3)
SHARE = 0.5


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

    def run(self, system: str, steps: int = 60, minimum: int = 10) -> list[RoundStatus]:
        """A round and what follows it; the devices take each release as it comes."""
        coordinator = self.backend.coordinator
        first = coordinator.open_round(system, cohort=DEVICES, cohort_minimum=minimum, seconds=60.0)
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
    for name, factor in (("turned", -1.0), ("sharper", 1.25), ("alike", 1.001)):
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
    """Adds to its gain in the first of the gate's votes, more than any device may unless told otherwise."""

    def __init__(self, network: httpx.BaseTransport, told: int = 2**30) -> None:
        super().__init__(network)
        self.adds = np.array([told, 0, 0, 0])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.lie = self.adds if request.url.path.startswith("/v1/rounds/round-2/") else None
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


@pytest.fixture
def in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate without noise, its twelve voters in three groups."""
    gate = replace(RELEASE_GATE, protection=SecureSum(clip=BOUND), join=MedianOfSums(members=3))
    monkeypatch.setitem(SYSTEMS, "release_gate", gate)


@pytest.mark.usefixtures("in_groups")
def test_a_fall_that_groups_saw_is_confirmed_by_a_second_vote(world: GatedRounds) -> None:
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
def test_liars_of_one_vote_dont_take_a_release_back_that_another_finds_good(world: GatedRounds) -> None:
    """Red before: five of twelve, who are in two groups of three at least, voted every release down."""
    for attacker in world.devices[:5]:
        attacker.stop()
        attacker.transport = LiesInRoundTwo(attacker.transport, told=-(2**16))
        attacker.start()
    _, first, second = world.run("alike", minimum=3)

    assert (first.published, first.orders) == (None, "release_gate"), first.summary
    assert (second.state, second.published) == ("applied", None), second.reason
    assert second.summary is not None
    assert second.summary.endswith("it stays.")
    assert world.backend.releases.require_current().release == "r2"


@pytest.mark.usefixtures("in_groups")
def test_a_doubted_release_is_taken_back_if_nobody_votes_again(world: GatedRounds) -> None:
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
    assert verdict["gain"] == pytest.approx(np.clip(new - old, -GAIN_LIMIT, GAIN_LIMIT).mean(), abs=1e-5)
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

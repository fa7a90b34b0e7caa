"""A system that doesn't train: it sums, publishes nothing, and orders another round. Oracle: sums by hand.

Real routes, coordinator, stores and trainers in one process; the system and its task exist in this file only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables import FollowUpRow, RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible, RoundUnderWay
from backend.federation.optimizers import FedAdam, Memory
from backend.federation.rounds import finalize as finalising
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundRequest, RoundResult
from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.releases.blobs import ReleaseDraft
from device_app.settings import PrivacySettings
from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import Shapes, TaskInputs, TaskKind, Update
from protocol.protections import LocalLaplace, Protection, SecureSum
from protocol.releases import BlobRef
from protocol.rounds import RoundManifest, RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.kills import Killed
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES = 3
ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
MARKED = {"marks": [1.0, 2.0, 3.0, 4.0]}


@dataclass(frozen=True)
class SummingStrategy:
    """A strategy that sums `held`, one number per mark, and orders the round `after` if one is named."""

    after: str | None = None

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        marks = MARKED if context.past is None else {"marks": context.past.facts["opened"]}
        content = json.dumps(marks).encode()
        return Plan({"held": (len(marks["marks"]),)}, {"marks": context.releases.add_blob(content)})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        opened = np.rint(total.sums()["held"]).tolist()
        follow_up = None if self.after is None else RoundRequest(self.after, DEVICES, 2, 60.0)
        return RoundResult(facts={"opened": opened, "devices": total.count}, next=follow_up)


@dataclass(frozen=True)
class ClickCountTask:
    """A task that returns a device's `held`: every mark times its number of clicks plus one."""

    marks: tuple[float, ...]
    clicks: int

    def shapes(self, params: Params) -> Shapes:
        return {"held": (len(self.marks),)}

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        assert not params
        return Update({"held": np.array(self.marks, np.float32) * (1 + self.clicks)}, loss=0.0, samples=1)


def holding(given: TaskInputs) -> ClickCountTask:
    return ClickCountTask(tuple(json.loads(given.materials("marks"))["marks"]), given.reading.count())


def system(name: str, protection: Protection, after: str | None = None) -> SystemSpec:
    return SystemSpec(name=name, task="hold", protection=protection, strategy=SummingStrategy(after))


EXACT = SecureSum(clip=100_000.0, bits=64, fraction_bits=16)


@dataclass
class SeamRounds:
    backend: BackendRig
    devices: list[DeviceRig] = field(default_factory=list)

    def let_all_work(self, steps: int = 12) -> None:
        for _ in range(steps):
            for device in self.devices:
                device.trainer.step()
            self.backend.coordinator.step()

    def status(self, number: int = 1) -> RoundStatus:
        return self.backend.coordinator.status(f"round-{number}")

    def facts(self, number: int = 1) -> dict[str, Any]:
        with reading_session(self.backend.engine) as session:
            return dict(session.get_one(RoundRow, number).facts or {})

    def restart(self) -> None:
        again = BackendRig.over(self.backend.engine, self.backend.releases, self.backend.folder, self.backend.clock)
        self.backend.coordinator, self.backend.app = again.coordinator, again.app


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeamRounds]:
    """Three devices: one with a reader's past, two without any click."""
    for spec in (
        system("adding", EXACT),
        system("adding_twice", EXACT, after="adding"),
        system("adding_clear", LocalLaplace(clip=1_000.0, scale=1_000.0)),
        system("adding_nonsense", EXACT, after="no such system"),
    ):
        monkeypatch.setitem(COMPOSED, spec.name, spec)
    monkeypatch.setitem(TASKS, "hold", TaskKind(holding, needs_samples=False))
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    world, pool = SeamRounds(backend), synthetic_pool(240, dim=DIM)
    with ExitStack() as stack:
        network = InProcess(backend.app)
        stack.callback(network.close)
        for number in range(DEVICES):
            path = tmp_path / f"device-{number}" / "device.sqlite"
            device = DeviceRig(path, backend.clock, network, ALLOWS, seed=number)
            stack.callback(device.stop)
            device.sync()
            world.devices.append(device)
        world.devices[0].read(simulated_reader(pool, np.random.default_rng(1)), pool)
        yield world


def open_round(world: SeamRounds, name: str) -> RoundStatus:
    return world.backend.coordinator.open_round(name, cohort=DEVICES, cohort_minimum=2, seconds=60.0)


def expected(world: SeamRounds, marks: list[float]) -> list[float]:
    return [mark * sum(1 + device.stores.clicks.count() for device in world.devices) for mark in marks]


def test_sum_can_be_opened_and_concluded_without_publishing_a_release(world: SeamRounds) -> None:
    status = open_round(world, "adding")
    world.let_all_work()

    assert (status.task, status.follows) == ("hold", None)
    ended = world.status()
    assert (ended.state, ended.published, ended.survivors, ended.reason) == ("applied", None, DEVICES, None)
    assert world.facts()["opened"] == expected(world, MARKED["marks"])
    assert world.facts()["devices"] == DEVICES
    assert [each.release for each in world.backend.releases.history()] == ["r1"]
    assert world.backend.coordinator.current() is None
    kept = [device.stores.participations.get("round-1") for device in world.devices]
    assert {each.state for each in kept if each is not None} <= {"uploaded", "applied"}


def test_local_noise_is_charged_by_the_number_of_coordinates_of_the_task(world: SeamRounds) -> None:
    open_round(world, "adding_clear")
    world.let_all_work(2)

    assert (world.status().state, world.status().published) == ("applied", None)
    assert len(world.facts()["opened"]) == 4
    assert world.facts()["updates"] == DEVICES
    assert [device.ledger.spent_today("training") for device in world.devices] == [2.0 * 4] * DEVICES


def test_conclusion_of_a_round_orders_the_next_round_with_its_results(world: SeamRounds) -> None:
    open_round(world, "adding_twice")
    world.let_all_work(30)

    assert world.status(1).state == world.status(2).state == "applied"
    assert (world.status(1).follows, world.status(2).follows) == (None, "round-1")
    assert world.facts(2)["opened"] == expected(world, expected(world, MARKED["marks"]))
    assert world.backend.coordinator.current() is None


def test_server_killed_after_a_conclusion_neither_loses_nor_repeats_the_follow_up(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_round(world, "adding_twice")

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        orders = world.backend.coordinator._opener
        patch.setattr(orders, "open_waiting", lambda: None if world.status().state != "applied" else killed())
        with pytest.raises(Killed):
            world.let_all_work()
    assert world.status().state == "applied"
    with pytest.raises(RoundUnderWay, match="round-1"):
        open_round(world, "adding")
    for _ in range(2):
        world.restart()
        world.backend.coordinator.step()

    assert [each.round for each in world.backend.coordinator.history()] == ["round-2", "round-1"]
    assert world.status(2).follows == "round-1"


def test_server_killed_during_a_conclusion_leaves_no_facts_and_no_follow_up(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_round(world, "adding_twice")
    with monkeypatch.context() as patch:

        def killed(**_: object) -> FollowUpRow:
            raise Killed

        patch.setattr(finalising, "FollowUpRow", killed)
        with pytest.raises(Killed):
            world.let_all_work()
    assert (world.status().state, world.facts()) == ("unmask", {})
    world.restart()
    world.let_all_work(20)

    assert world.status(1).state == world.status(2).state == "applied"
    assert world.facts(1)["opened"] == expected(world, MARKED["marks"])


def test_impossible_follow_up_is_dropped_with_a_reason(world: SeamRounds) -> None:
    open_round(world, "adding_nonsense")
    world.let_all_work()

    with reading_session(world.backend.engine) as session:
        follow_up = session.get_one(FollowUpRow, 1)
        assert follow_up.opened is None
        assert follow_up.reason is not None
        assert "does not run that system" in follow_up.reason
    open_round(world, "adding")


def test_device_declines_a_round_whose_blobs_are_missing_or_too_large(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class PlansMissingBlob(SummingStrategy):
        def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
            return Plan({"held": (4,)}, {"marks": BlobRef(sha256="0" * 64, size_bytes=10)})

    monkeypatch.setitem(
        COMPOSED, "lost", SystemSpec(name="lost", task="hold", protection=EXACT, strategy=PlansMissingBlob())
    )
    open_round(world, "lost")
    outcome = world.devices[0].trainer.step()
    assert outcome.state == "declined"
    assert "'marks' of the round can't be downloaded" in str(outcome.why)
    monkeypatch.setattr("device_app.training.computation.MATERIALS_LIMIT_BYTES", 9)
    outcome = world.devices[1].trainer.step()
    assert outcome.state == "declined"
    assert "10 bytes, the limit is 9" in str(outcome.why)


def test_device_declines_a_round_whose_update_does_not_match_its_task(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class PlansWiderUpdate(SummingStrategy):
        def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
            return Plan({"held": (5,)}, SummingStrategy().plan(system, context).materials)

    monkeypatch.setitem(
        COMPOSED, "wider", SystemSpec(name="wider", task="hold", protection=EXACT, strategy=PlansWiderUpdate())
    )
    open_round(world, "wider")
    outcome = world.devices[0].trainer.step()

    assert outcome.state == "declined"
    assert "requests tensors that 'hold' does not compute" in str(outcome.why)


@pytest.mark.parametrize("shapes", [{}, {"held": (0,)}, {"held": (20_000_000,)}])
def test_empty_or_oversized_plan_is_refused(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch, shapes: dict[str, tuple[int, ...]]
) -> None:
    @dataclass(frozen=True)
    class PlansGivenShapes(SummingStrategy):
        def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
            return Plan(shapes)

    monkeypatch.setitem(
        COMPOSED, "odd", SystemSpec(name="odd", task="hold", protection=EXACT, strategy=PlansGivenShapes())
    )
    with pytest.raises(RoundImpossible, match="system is out of range"):
        open_round(world, "odd")


def test_round_publishes_weights_of_several_models_and_rows_at_once(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class RewritingStrategy(SummingStrategy):
        def conclude(
            self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
        ) -> RoundResult:
            weights = {
                model: {name: each + 1 for name, each in context.releases.weights(context.release, model).items()}
                for model in ("recall", "ranker.features")
            }

            def change(draft: ReleaseDraft) -> ReleaseDraft:
                recall = draft.recall.model_copy(update={"score_clip": 0.25})
                return ReleaseDraft(**{**vars(draft), "recall": recall})

            def rows(session: Session) -> None:
                session.get_one(RoundRow, 1).reason = "a row of the strategy's own"

            return RoundResult(weights=weights, draft=change, rows=rows, note="rewritten")

    spec = SystemSpec(name="rewriting", task="hold", protection=EXACT, strategy=RewritingStrategy())
    monkeypatch.setitem(COMPOSED, "rewriting", spec)
    open_round(world, "rewriting")
    before = world.backend.releases.require_current()
    world.let_all_work()
    store = world.backend.releases
    after = store.require_current()

    assert (world.status().published, world.status().reason) == ("r2", "a row of the strategy's own")
    assert after.recall.score_clip == 0.25
    for model in ("recall", "ranker.features"):
        for name, each in store.weights(before, model).items():
            np.testing.assert_array_equal(store.weights(after, model)[name], each + 1)
    assert store.history()[0].note == "round-1: rewritten"


def test_optimizer_memory_continues_in_the_systems_next_round(
    world: SeamRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SystemSpec(
        name="adaptive",
        task="full_gradient",
        protection=LocalLaplace(clip=1.0, scale=1.0),
        strategy=FedAvg(),
        architecture="feature_ranker",
        model="ranker.features",
        optimizer=FedAdam(learning_rate=0.01),
        negatives=4,
    )
    monkeypatch.setitem(COMPOSED, "adaptive", spec)
    steps = []
    for number in (1, 2):
        world.backend.coordinator.open_round("adaptive", cohort=1, cohort_minimum=1, seconds=60.0)
        world.devices[0].trainer.step()
        world.backend.coordinator.step()
        world.devices[0].sync()
        with reading_session(world.backend.engine) as session:
            kept = session.get_one(RoundRow, number).memory
        assert kept is not None
        steps.append(Memory.from_bytes(kept))

    assert [memory.steps for memory in steps] == [1, 2]
    assert steps[1].tensors.keys() == {"m.beta", "m.feature_weights", "v.beta", "v.feature_weights"}

"""Rounds that change the same tensors follow one another; others run side by side.

Oracle: random sequences of what operators, devices and kills do.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.db.engine import DatabaseBusy, reading_session, writing_session
from backend.db.tables import FollowUpRow, QueuedRoundRow, RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import (
    NoLongerWaiting,
    RoundImpossible,
    RoundQueueFull,
    RoundUnderWay,
    UnknownQueuedRound,
)
from backend.federation.rounds import opening
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.queue import QUEUE_LIMIT
from backend.federation.rounds.records import UNDER_WAY
from backend.federation.rounds.scheduling import Schedule
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.strategy import FederatedSystem, RoundContext, RoundRequest, RoundResult
from backend.federation.systems import COMPOSED, PRESETS, STEPS, SYSTEMS, full_name
from backend.storage.object_store import StorageUnavailable
from backend.terminal.rounds import waits_words
from protocol.ids import short_release
from protocol.rounds import QueuedRound, RoundManifest, RoundStatus
from protocol.tensors import pack
from tests.doubles.long_form import by_length
from tests.doubles.plain_rounds import CHECK_IN, PlainRoundRig, update
from tests.doubles.small_release import migrated_engine, small_store

TRAINS = RoundRequest("uni_fedrec", 2, 1, 60.0)
TALLIES = replace(TRAINS, system="tally")


class Tally(FedAvg):
    """Publishes nothing, as counts do."""

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        return RoundResult(facts={"updates": total.count})


SYSTEMS_HERE = COMPOSED | {"tally": replace(COMPOSED["uni_fedrec"], name="tally", strategy=Tally(), changes="counts")}


class QueueRig(PlainRoundRig):
    def coordinator(self) -> Coordinator:
        return Coordinator(self.engine, self.releases, SYSTEMS_HERE, self.folder, self.clock)


@pytest.fixture
def rig(tmp_path: Path) -> QueueRig:
    engine = migrated_engine(tmp_path)
    return QueueRig(tmp_path, engine, small_store(engine, tmp_path))


def asked(coordinator: Coordinator, order: RoundRequest = TRAINS) -> QueuedRound:
    found = coordinator.open_or_queue(order)
    assert isinstance(found, QueuedRound)
    return found


def contributed(coordinator: Coordinator, round_id: str) -> bool:
    """Join and contribute to a round; return whether there was a place."""
    release = short_release(coordinator.status(round_id).release)
    offer = coordinator.check_in(CHECK_IN.model_copy(update={"release": release, "round": round_id}))
    if offer is not None:
        coordinator.plain.accept(round_id, offer.pseudonym, pack(update(0.01)))
    return offer is not None


def states(coordinator: Coordinator) -> list[tuple[str, str]]:
    return [(each.round, each.state) for each in reversed(coordinator.history())]


def test_round_that_shares_no_tensor_with_a_running_one_opens_at_once_and_others_wait(rig: QueueRig) -> None:
    coordinator = rig.coordinator()
    assert isinstance(coordinator.open_or_queue(TRAINS), RoundStatus)
    waits = asked(coordinator)
    assert isinstance(coordinator.open_or_queue(TALLIES), RoundStatus)
    assert (waits.place, waits.waits_for, waits.opened, waits.reason) == (1, "round-1", None, None)
    assert [each.round for each in coordinator.open_rounds()] == ["round-1", "round-2"]

    assert contributed(coordinator, "round-1")
    assert contributed(coordinator, "round-2")
    rig.clock.go_on(61)
    coordinator.step()
    assert states(coordinator) == [("round-1", "applied"), ("round-2", "applied"), ("round-3", "open")]
    assert coordinator.status("round-3").release == "r2", "planned on the release that is current when it starts"
    assert coordinator.queue.get(waits.number).opened == "round-3"
    assert coordinator.queue.waiting() == []


@pytest.mark.long_form
@pytest.mark.parametrize("other", ["private_counts/secure/huber", "fednewsrec"])
def test_no_system_is_refused_while_another_runs(rig: QueueRig, other: str) -> None:
    """Oracle: counts end in tables of their own, all other rounds in a release.

    The short form has every third system, and one that counts.
    """
    usual = replace(COMPOSED["uni_fedrec"], strategy=Tally())
    here = {name: replace(usual, name=name, changes=spec.changes) for name, spec in COMPOSED.items()}
    coordinator = Coordinator(rig.engine, rig.releases, here, rig.folder, rig.clock)
    counts = {name for name in COMPOSED if name.startswith("private_counts/")}
    usual_forms = [full_name(name) for name in (*SYSTEMS, *PRESETS, *STEPS)]
    counted = [name for name in usual_forms if name in counts]
    usual_forms = by_length([*counted[:1], *usual_forms[::3]], long=usual_forms)
    assert {name in counts for name in usual_forms} == {True, False}
    for first, second in [*((other, name) for name in usual_forms), *((name, other) for name in usual_forms)]:
        under_way = coordinator.open_or_queue(replace(TRAINS, system=first))
        then = coordinator.open_or_queue(replace(TRAINS, system=second))
        assert isinstance(under_way, RoundStatus)
        if (first in counts) != (second in counts):
            assert isinstance(then, RoundStatus), (first, second)
            assert [each.round for each in coordinator.open_rounds()] == [under_way.round, then.round]
            coordinator.cancel(then.round)
            coordinator.cancel(under_way.round)
        else:
            assert isinstance(then, QueuedRound), (first, second)
            assert (then.place, then.waits_for) == (1, under_way.round)
            coordinator.cancel(under_way.round)
            coordinator._opener.open_waiting()
            reported = coordinator.queue.get(then.number).opened
            assert reported is not None, (first, second)
            coordinator.cancel(reported)


def test_ordered_follow_up_opens_before_the_queue(rig: QueueRig) -> None:
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    waits = asked(coordinator)
    with writing_session(rig.engine) as session:
        session.add(FollowUpRow(after=1, request=TRAINS.to_json()))
    coordinator.cancel("round-1")
    coordinator.step()
    assert coordinator.status("round-2").follows == "round-1"
    assert coordinator.queue.get(waits.number).opened is None
    coordinator.cancel("round-2")
    coordinator.step()
    assert coordinator.queue.get(waits.number).opened == "round-3"


@pytest.mark.parametrize(
    "passing", [StorageUnavailable("ConnectTimeoutError"), DatabaseBusy(), OSError(errno.ENOSPC, "No space left")]
)
def test_queued_round_keeps_waiting_through_a_transient_failure(
    rig: QueueRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, passing: Exception
) -> None:
    """Regression: a queued round was dropped permanently, and a vote too, which undid its training round."""
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    waits = asked(coordinator)
    coordinator.cancel("round-1")
    coordinator.open_or_queue(TALLIES)
    assert contributed(coordinator, "round-2")
    with writing_session(rig.engine) as session:
        session.add(FollowUpRow(after=1, request=TRAINS.to_json()))
    rig.clock.go_on(61)

    def fails(*_: object) -> None:
        raise passing

    with monkeypatch.context() as patch:
        patch.setattr(coordinator._opener, "_sized", fails)
        ended = coordinator.step()
    assert ended is not None, "another round ends meanwhile"
    assert (ended.round, ended.state) == ("round-2", "applied")
    assert "the round after round-1 waits: " in caplog.text
    with reading_session(rig.engine) as session:
        follow_up = session.get_one(FollowUpRow, 1)
        assert (follow_up.opened, follow_up.reason) == (None, None)
    coordinator.step()
    assert coordinator.status("round-3").follows == "round-1"
    coordinator.cancel("round-3")
    with monkeypatch.context() as patch:
        patch.setattr(coordinator._opener, "_sized", fails)
        coordinator.step()
    assert coordinator.queue.get(waits.number).place == 1
    coordinator.step()
    assert coordinator.queue.get(waits.number).opened == "round-4"


def test_queued_round_that_is_impossible_at_its_turn_is_dropped_with_a_reason(
    rig: QueueRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    first, second = asked(coordinator), asked(coordinator)

    def impossible(*_: object) -> None:
        raise RoundImpossible("Release r2 has no such model.", field="system")

    coordinator.cancel("round-1")
    with monkeypatch.context() as patch:
        patch.setattr(FedAvg, "plan", impossible)
        coordinator._opener.open_waiting()
    assert [coordinator.queue.get(each.number).reason for each in (first, second)] == [
        "Release r2 has no such model."
    ] * 2
    assert [each.number for each in coordinator.queue.never_opened()] == [2, 1]
    assert states(coordinator) == [("round-1", "failed")]
    assert isinstance(coordinator.open_or_queue(TRAINS), RoundStatus), "nothing waits any more"


def test_waiting_round_can_be_cancelled_and_never_opens(rig: QueueRig) -> None:
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    first, second = asked(coordinator), asked(coordinator)
    assert second.place == 2
    gone = coordinator.queue.give_up(first.number, "cancelled by the operator")
    assert gone.reason == "cancelled by the operator"
    with pytest.raises(NoLongerWaiting, match="removed from the queue"):
        coordinator.queue.give_up(first.number, "again")
    assert coordinator.queue.get(second.number).place == 1
    coordinator.cancel("round-1")
    coordinator.step()
    with pytest.raises(NoLongerWaiting, match="round-2"):
        coordinator.queue.give_up(second.number, "too late")
    with pytest.raises(UnknownQueuedRound):
        coordinator.queue.get(99)


def test_queue_is_bounded_and_refuses_impossible_rounds(rig: QueueRig) -> None:
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    with pytest.raises(RoundImpossible):
        coordinator.open_or_queue(replace(TRAINS, cohort=0))
    for _ in range(QUEUE_LIMIT):
        asked(coordinator)
    with pytest.raises(RoundQueueFull) as full:
        coordinator.open_or_queue(TRAINS)
    assert full.value.status == 409
    assert isinstance(coordinator.open_or_queue(TALLIES), RoundStatus), "what changes something else opens at once"


def test_schedule_waits_behind_the_operators_rounds(rig: QueueRig) -> None:
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    waits = asked(coordinator)
    coordinator.scheduler.set(Schedule(TRAINS, every_minutes=1))
    with pytest.raises(RoundUnderWay):
        coordinator.open_round("uni_fedrec", cohort=2, cohort_minimum=1, seconds=60)
    coordinator.cancel("round-1")
    coordinator.scheduler.open_due()
    assert states(coordinator) == [("round-1", "failed")], "round-1 has ended, and another one waits its turn"
    coordinator.step()
    assert coordinator.queue.get(waits.number).opened == "round-2"


class SimulatedKill(BaseException):
    """The process is killed: no error handler may run."""


def test_kill_during_opening_neither_loses_nor_repeats_a_waiting_round(
    rig: QueueRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = rig.coordinator()
    coordinator.open_or_queue(TRAINS)
    waits = asked(coordinator)
    coordinator.cancel("round-1")

    def killed(*_: object) -> None:
        raise SimulatedKill

    with monkeypatch.context() as patch:
        patch.setattr(opening, "round_status", killed)  # the last thing in the transaction that opens it
        with pytest.raises(SimulatedKill):
            coordinator.step()
    assert rig.coordinator().queue.get(waits.number).opened is None
    for _ in range(2):
        restarted = rig.coordinator()
        restarted.step()
    assert states(restarted) == [("round-1", "failed"), ("round-2", "open")]
    assert restarted.queue.get(waits.number).opened == "round-2"


@pytest.mark.long_form
@pytest.mark.parametrize("seed", range(by_length(3, long=8)))
def test_rounds_that_share_tensors_never_overlap(rig: QueueRig, seed: int) -> None:
    rng = np.random.default_rng([12, seed])
    coordinator = rig.coordinator()
    beside = 0

    def ask() -> None:
        order = [TRAINS, TALLIES][rng.integers(2)]
        try:
            coordinator.open_or_queue(order)
        except RoundQueueFull:
            assert len(coordinator.queue.waiting()) == QUEUE_LIMIT

    def contribute() -> None:
        for each in coordinator.open_rounds():
            contributed(coordinator, each.round)

    def cancel() -> None:
        for each in coordinator.open_rounds()[:1]:
            coordinator.cancel(each.round)

    def take_out() -> None:
        for each in coordinator.queue.waiting()[:1]:
            coordinator.queue.give_up(each.number, "cancelled by the operator")

    def restart() -> None:
        nonlocal coordinator
        coordinator = rig.coordinator()

    events: list[tuple[Callable[[], object], float]] = [
        (ask, 0.3), (contribute, 0.25), (lambda: coordinator.step(), 0.25), (lambda: rig.clock.go_on(31), 0.08),
        (cancel, 0.04), (take_out, 0.04), (restart, 0.04),
    ]  # fmt: skip
    for index in rng.choice(len(events), size=60, p=[share for _, share in events]):
        events[index][0]()
        with reading_session(rig.engine) as session:
            under_way = [row.system for row in session.query(RoundRow).filter(RoundRow.state.in_(UNDER_WAY))]
        assert len(under_way) == len(set(under_way)), "at most one round of those that change the same"
        beside += len(under_way) == 2
    assert beside > 0, "rounds that share nothing were under way together"

    while coordinator.open_rounds() or coordinator.queue.waiting():  # what waits starts, each in its turn
        contribute()
        rig.clock.go_on(61)
        coordinator.step()
    with reading_session(rig.engine) as session:
        for system in (TRAINS.system, TALLIES.system):
            rows = [
                row
                for row in session.query(QueuedRoundRow).order_by(QueuedRoundRow.number)
                if RoundRequest.from_json(row.request).system == system and row.opened is not None
            ]
            opened = [row.opened or 0 for row in rows]
            assert opened == sorted(set(opened)), "in the order they were asked for, each once"
            assert not [row for row in rows if row.reason is not None]
    history = coordinator.history()
    published = [each.published for each in reversed(history) if each.state == "applied" and each.system != "tally"]
    assert published == [f"r{number}" for number in range(2, 2 + len(published))], "each applied once"
    assert rig.releases.require_current().release == f"r{1 + len(published)}"
    assert not [each for each in history if each.reason and "meanwhile" in each.reason]


def test_round_requested_before_devices_arrive_waits_for_them(rig: QueueRig) -> None:
    coordinator = Coordinator(rig.engine, rig.releases, SYSTEMS_HERE, rig.folder, rig.clock, waits_for_devices=True)
    order = replace(TRAINS, cohort_minimum=2)
    waits = asked(coordinator, order)
    assert (waits.place, waits.waits_for, waits.devices, waits.cohort_minimum) == (1, None, 0, 2)
    assert "for devices, of which about 0 of 2 have shown up" in waits_words(waits)
    with pytest.raises(RoundImpossible):
        coordinator.open_or_queue(replace(order, cohort=0))
    coordinator.polls.note()
    coordinator.step()
    assert coordinator.queue.get(waits.number).devices == 1
    assert coordinator.open_rounds() == []

    coordinator.polls.note()
    coordinator.step()
    assert coordinator.queue.get(waits.number).opened == "round-1"
    assert asked(coordinator, order).devices is None, "it waits for its turn, since there are devices"


def test_request_and_schedule_are_read_back_as_stored() -> None:
    assert RoundRequest.from_json(TRAINS.to_json()) == TRAINS
    whole = replace(TRAINS, admission=0.5, participation=0.25)
    assert RoundRequest.from_json(whole.to_json()) == whole
    for schedule in (Schedule(whole, every_minutes=5.0), Schedule(TRAINS, waiting=3), Schedule(TRAINS, 1.0, 2)):
        assert Schedule.from_json(schedule.to_json()) == schedule


def test_rounds_of_a_removed_system_fail_with_a_reason(rig: QueueRig) -> None:
    """A system was removed. Regression: a check-in and each tick raised KeyError."""
    before, after = rig.coordinator(), PlainRoundRig.coordinator(rig)
    before.open_or_queue(TALLIES)
    assert isinstance(before.open_or_queue(TALLIES), QueuedRound)
    before.scheduler.set(Schedule(TALLIES, every_minutes=10.0))
    assert after.check_in(CHECK_IN) is None
    ended = after.step()
    assert ended is not None
    assert (ended.state, ended.reason) == ("failed", "This version has no system 'tally'.")
    after.step()
    assert after.queue.waiting() == []
    assert [each.reason for each in after.queue.never_opened()] == ["This server does not run that system."]
    rig.clock.go_on(TALLIES.seconds + 600.0)
    after.step()
    assert after.scheduler.status().trouble == "This server does not run that system."

"""When rounds open by themselves, and what a pause stops. The test moves the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from backend.db.engine import reading_session
from backend.db.tables import PollCountRow, RoundRow
from backend.federation.errors import RoundImpossible, RoundsPaused, UnknownSystem
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.opening import round_request
from backend.federation.rounds.scheduling import Schedule
from backend.federation.rounds.selection import SWEEP_AGE_SEC, PollCounter, places
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from backend.releases.store import ReleaseStore
from backend.storage.object_store import StorageUnavailable
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn, RoundStatus
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.small_release import WEIGHTS, migrated_engine, small_store

REQUEST = RoundRequest("uni_fedrec", cohort=2, cohort_minimum=1, seconds=30.0)
CHECK_IN = CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",))


class RestartedCoordinator:
    """A coordinator that can be started again on the stored data."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, StillClock()
        self.engine = migrated_engine(folder)
        self.releases: ReleaseStore = small_store(self.engine, folder)
        self.start()

    def start(self) -> None:
        self.coordinator = Coordinator(self.engine, self.releases, COMPOSED, self.folder, self.clock)

    def opened(self) -> list[str]:
        return [each.round for each in reversed(self.coordinator.history())]


@pytest.fixture
def server(tmp_path: Path) -> RestartedCoordinator:
    return RestartedCoordinator(tmp_path)


def test_round_opens_at_its_interval_also_after_a_restart(server: RestartedCoordinator) -> None:
    server.coordinator.scheduler.set(Schedule(REQUEST, every_minutes=10))
    server.coordinator.step()
    assert server.opened() == ["round-1"]
    for _ in range(3):
        server.clock.go_on(31)
        server.coordinator.step()
    assert server.opened() == ["round-1"], "the first has failed for want of devices; the next isn't due"
    server.start()
    server.coordinator.step()
    assert server.opened() == ["round-1"]
    server.clock.go_on(10 * 60)
    server.coordinator.step()

    assert server.opened() == ["round-1", "round-2"]


def test_round_opens_when_enough_devices_wait_and_samples_them(server: RestartedCoordinator) -> None:
    server.coordinator.scheduler.set(Schedule(REQUEST, waiting=8))
    for _ in range(7):
        server.coordinator.polls.note()
    server.coordinator.step()
    assert server.opened() == []
    server.coordinator.polls.note()
    server.coordinator.step()

    assert server.opened() == ["round-1"]
    with reading_session(server.engine) as session:
        assert session.get_one(RoundRow, 1).admission == 2 / 8


def test_time_and_number_conditions_must_both_hold() -> None:
    clock = StillClock()
    both = Schedule(REQUEST, every_minutes=10, waiting=5)

    assert both.is_due(clock.now, None, 5)
    assert not both.is_due(clock.now, None, 4)
    assert not both.is_due(clock.now, clock.now - timedelta(minutes=9), 5)
    assert both.is_due(clock.now, clock.now - timedelta(minutes=10), 5)
    assert Schedule.from_json(both.to_json()) == both


def test_pause_opens_no_round_and_lets_joined_devices_finish(
    server: RestartedCoordinator,
) -> None:
    coordinator = server.coordinator
    coordinator.open_round("uni_fedrec", cohort=2, cohort_minimum=1, seconds=30.0)
    offer = coordinator.check_in(CHECK_IN)
    assert offer is not None
    coordinator.scheduler.set(Schedule(REQUEST, every_minutes=1))
    assert coordinator.scheduler.pause().paused

    assert coordinator.check_in(CHECK_IN) is None
    coordinator.plain.accept(
        "round-1", offer.pseudonym, pack({f"g.{name}": np.zeros_like(each) for name, each in WEIGHTS.items()})
    )
    server.clock.go_on(31)
    ended = coordinator.step()
    assert ended is not None
    assert ended.state == "applied"
    server.clock.go_on(3_600)
    server.start()
    server.coordinator.step()
    assert server.opened() == ["round-1"]
    with pytest.raises(RoundsPaused):
        server.coordinator.open_round("uni_fedrec", cohort=2, cohort_minimum=1, seconds=30.0)
    server.coordinator.scheduler.resume()
    server.coordinator.step()
    assert server.opened() == ["round-1", "round-2"]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (replace(REQUEST, system="poetry"), UnknownSystem),
        (replace(REQUEST, cohort=0), RoundImpossible),
        (replace(REQUEST, cohort_minimum=3), RoundImpossible),
        (replace(REQUEST, seconds=0.0), RoundImpossible),
    ],
)
def test_schedule_of_impossible_rounds_is_refused(
    server: RestartedCoordinator, asked: RoundRequest, error: type[Exception]
) -> None:
    with pytest.raises(error):
        server.coordinator.scheduler.set(Schedule(asked, every_minutes=5))
    assert server.coordinator.scheduler.status().schedule is None


def test_schedule_needs_a_time_or_a_number_within_limits() -> None:
    for odd in ({}, {"every_minutes": 0.0}, {"every_minutes": 1e9}, {"waiting": 0}):
        with pytest.raises(RoundImpossible):
            Schedule(REQUEST, **odd)


def test_scheduled_round_that_cannot_open_reports_why_and_retries(
    server: RestartedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = server.coordinator.scheduler
    table.set(Schedule(REQUEST, every_minutes=10))
    monkeypatch.setitem(COMPOSED, "uni_fedrec", replace(COMPOSED["uni_fedrec"], model="gone"))
    server.coordinator.step()
    assert "no trainable model 'gone'" in str(table.status().trouble)
    monkeypatch.undo()
    server.coordinator.step()
    assert server.opened() == []
    server.clock.go_on(600)
    server.coordinator.step()

    assert server.opened() == ["round-1"]
    assert table.status().trouble is None


def test_transient_failure_does_not_skip_a_scheduled_round(
    server: RestartedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a storage that didn't answer for a moment cost a round, and the next came a whole interval later."""
    table = server.coordinator.scheduler
    table.set(Schedule(REQUEST, every_minutes=10))

    def down(*_: object) -> None:
        raise StorageUnavailable("ConnectTimeoutError")

    with monkeypatch.context() as patch:
        patch.setattr(server.coordinator._loader, "context", down)
        server.coordinator.step()
    assert (server.opened(), table.status().last, table.status().trouble) == ([], None, None)
    server.coordinator.step()
    assert server.opened() == ["round-1"]


def test_polls_are_counted_over_half_a_minute_and_set_the_admission() -> None:
    clock = StillClock()
    polls = PollCounter(clock)
    for _ in range(100):
        polls.note()

    assert (polls.waiting(), polls.fair_chance(60), polls.fair_chance(500)) == (100, 0.6, 1.0)
    clock.go_on(29)
    polls.note()
    assert polls.waiting() == 101
    clock.go_on(1)
    assert (polls.waiting(), polls.fair_chance(60)) == (1, 1.0)


def test_repeated_polls_of_one_address_do_not_reduce_others_chances() -> None:
    """Regression: 2,700 polls of one machine left each honest device one chance in 45, and rounds without devices."""
    polls = PollCounter(StillClock(), places=3)
    for _ in range(2_700):
        polls.note("attacker")
    for number in range(40):
        polls.note(f"reader {number}")
    polls.note(None)
    assert (polls.waiting(), polls.fair_chance(60)) == (3 + 40 + 1, 1.0)


def test_address_is_counted_again_after_its_polls_expire() -> None:
    clock = StillClock()
    polls = PollCounter(clock, places=1)
    for _ in range(3):
        polls.note("one")
        clock.go_on(20)
    assert polls.waiting() == 1


def test_polls_and_pauses_from_a_clock_that_was_ahead_are_dropped(server: RestartedCoordinator) -> None:
    server.coordinator.scheduler.set(Schedule(REQUEST, every_minutes=10))
    server.clock.go_on(24 * 3_600.0)
    other = PollCounter(server.clock, server.engine)
    for polls in (server.coordinator.polls, other):
        polls.note()
        polls.publish()
    server.coordinator.step()
    assert server.opened() == ["round-1"]
    server.coordinator.cancel("round-1")
    server.clock.go_on(-24 * 3_600.0)
    assert server.coordinator.polls.waiting() == 0
    other.publish()
    other.note()
    assert other.waiting() == 1
    server.coordinator.step()
    assert server.opened() == ["round-1", "round-2"], "not a day later"


def test_over_selection_is_used_only_where_late_arrivals_pay_nothing() -> None:
    assert COMPOSED["uni_fedrec"].offers == COMPOSED["small_ranker/local/mean"].offers == 1.0
    assert places(60, COMPOSED["small_ranker/secure/median"].offers) == 78
    assert replace(COMPOSED["small_ranker/secure/median"], over_selection=1.0).offers == 1.0


def test_processes_serving_together_share_one_poll_count(tmp_path: Path) -> None:
    engine = migrated_engine(tmp_path)
    clock = StillClock()
    one, other = PollCounter(clock, engine), PollCounter(clock, engine)
    for polls, count in ((one, 30), (other, 70)):
        for _ in range(count):
            polls.note()
        polls.publish()
    assert (one.waiting(), other.waiting()) == (100, 100)
    assert (one.fair_chance(60), other.fair_chance(60)) == (0.6, 0.6), "half of the polls would double the chance"

    one.note()
    one.publish()
    assert (one.waiting(), other.waiting()) == (101, 100), "told every other second"
    clock.go_on(2)
    one.publish()
    assert other.waiting() == 101
    clock.go_on(29)
    assert other.waiting() == 31, "its own are over; the other's were told 29 seconds ago"
    clock.go_on(2)
    assert other.waiting() == 0, "a process that has ended counts for half a minute more"
    clock.go_on(SWEEP_AGE_SEC)
    other.note()
    other.publish()
    with reading_session(engine) as session:
        assert [row.polls for row in session.scalars(select(PollCountRow))] == [1], "of the others nothing is left"


def test_devices_waiting_at_several_machines_are_counted_together(server: RestartedCoordinator, tmp_path: Path) -> None:
    """Regression: with two machines a round waited for twice as many devices, and admitted too many."""
    other = Coordinator(server.engine, server.releases, COMPOSED, tmp_path / "another machine", server.clock)
    server.coordinator.scheduler.set(Schedule(REQUEST, waiting=8))
    for worker in (server.coordinator, other):
        for _ in range(4):
            worker.polls.note()
    other.step()
    assert server.opened() == [], "four of eight are known to it"
    server.coordinator.step()
    assert server.opened() == ["round-1"]


def test_number_of_polls_is_divided_by_the_polls_each_device_sends(
    server: RestartedCoordinator,
) -> None:
    """Regression: 60 devices that poll twice each turned a round of a tenth of them into one of twelve, and a count was
    planned as for 120."""
    server.coordinator = Coordinator(
        server.engine, server.releases, COMPOSED, server.folder, server.clock, polls_per_device=2.0
    )
    polls = server.coordinator.polls
    for _ in range(121):
        polls.note()
    assert (polls.waiting(), polls.devices()) == (121, 61)
    asked: list[int] = []

    def recorded(request: RoundRequest, devices: int) -> None:
        asked.append(devices)

    server.coordinator._opener.why_not = recorded  # type: ignore[method-assign]
    request = round_request(COMPOSED, "uni_fedrec", seconds=30.0, participation=0.1)
    server.coordinator.scheduler.set(Schedule(request, waiting=62))
    server.coordinator.step()
    assert (server.opened(), asked) == ([], []), "62 devices are waited for"
    server.coordinator.scheduler.set(Schedule(request, waiting=61))
    server.coordinator.step()
    assert asked == [61]
    (current,) = server.coordinator.open_rounds()
    assert current.cohort == 6
    with reading_session(server.engine) as session:
        assert session.scalars(select(RoundRow)).one().admission == pytest.approx(6 / 121)


@pytest.mark.parametrize(("waiting", "rate", "cohort"), [(0, 0.02, 1), (60, 0.02, 1), (200, 0.02, 4), (50, 1.0, 50)])
def test_round_by_participation_invites_its_share_of_waiting_devices(
    server: RestartedCoordinator, waiting: int, rate: float, cohort: int
) -> None:
    for _ in range(waiting):
        server.coordinator.polls.note()
    request = round_request(COMPOSED, "uni_fedrec", seconds=30.0, participation=rate)
    opened = server.coordinator.open_or_queue(request)
    assert isinstance(opened, RoundStatus)
    assert (opened.cohort, opened.cohort_minimum) == (cohort, min(10, cohort))
    with reading_session(server.engine) as session:
        row = session.scalars(select(RoundRow)).one()
        assert row.admission == pytest.approx(min(1.0, cohort / max(1, waiting)))


def test_cohort_size_comes_from_operator_then_system_then_default() -> None:
    sized = partial(round_request, COMPOSED, seconds=30.0)
    assert sized("uni_fedrec").participation == 0.02
    assert sized("uni_fedrec", participation=0.5).participation == 0.5
    by_number = sized("uni_fedrec", cohort=4)
    assert (by_number.cohort, by_number.cohort_minimum, by_number.participation) == (4, 4, None)
    usual = sized("small_ranker/secure/median")
    assert (usual.cohort, usual.cohort_minimum, usual.participation) == (60, 10, None)


def test_scheduled_round_by_participation_counts_devices_at_opening(server: RestartedCoordinator) -> None:
    request = round_request(COMPOSED, "uni_fedrec", seconds=30.0, participation=0.1)
    server.coordinator.scheduler.set(Schedule(request, every_minutes=10, waiting=1))
    server.coordinator.step()
    assert server.opened() == [], "nobody waits"
    server.start()
    for _ in range(30):
        server.coordinator.polls.note()
    server.coordinator.step()
    current = server.coordinator.current()
    assert current is not None
    assert current.cohort == 3


@pytest.mark.parametrize("rate", [0.0, 1.01])
def test_invalid_participation_is_refused(server: RestartedCoordinator, rate: float) -> None:
    with pytest.raises(RoundImpossible, match="participation"):
        server.coordinator.open_or_queue(replace(REQUEST, participation=rate))

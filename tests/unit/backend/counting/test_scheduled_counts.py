"""Private counts open by themselves where nobody has said otherwise. Oracle: the schedule as the settings have it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from backend.composition import schedule_counts
from backend.federation.coordinator import Coordinator
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.settings import BackendSettings
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.round_rig import BackendRig


@pytest.fixture
def rig(tmp_path: Path) -> BackendRig:
    rig = BackendRig.make(tmp_path, StillClock(NOW))
    item = NewsItem(id="a", title="One headline of its own", section="s", topic="t", published_at=NOW)
    NewsPool(rig.engine).add([item], source="test")
    return rig


def settings(tmp_path: Path, **changes: object) -> BackendSettings:
    return BackendSettings(data_dir=tmp_path, **changes)  # type: ignore[arg-type]


def looked(coordinator: Coordinator, times: int) -> None:
    for _ in range(times):
        coordinator.looks.note()


def test_a_count_opens_after_the_interval_once_devices_wait(rig: BackendRig, tmp_path: Path) -> None:
    schedule_counts(rig.coordinator, settings(tmp_path, counts_every_minutes=60, counts_cohort=30))
    looked(rig.coordinator, 10)
    rig.coordinator.step()
    assert rig.coordinator.current() is None, "the first is a whole interval away"
    rig.clock.now += timedelta(hours=1)
    rig.coordinator.step()
    assert rig.coordinator.current() is None, "nobody waits"
    looked(rig.coordinator, 10)
    rig.coordinator.step()
    current = rig.coordinator.current()
    assert current is not None
    assert (current.system, current.cohort, current.cohort_minimum) == ("private_counts", 30, 10)


def test_a_restart_changes_nothing_and_the_operators_word_stands(rig: BackendRig, tmp_path: Path) -> None:
    schedule_counts(rig.coordinator, settings(tmp_path))
    first = rig.coordinator.timetable.timings()
    rig.clock.go_on(100)
    schedule_counts(rig.coordinator, settings(tmp_path, counts_every_minutes=5))
    assert rig.coordinator.timetable.timings() == first
    rig.coordinator.timetable.set(None)
    schedule_counts(rig.coordinator, settings(tmp_path))
    assert rig.coordinator.timetable.timings().schedule is None


def test_nought_minutes_is_never(rig: BackendRig, tmp_path: Path) -> None:
    schedule_counts(rig.coordinator, settings(tmp_path, counts_every_minutes=0))
    assert rig.coordinator.timetable.timings().schedule is None

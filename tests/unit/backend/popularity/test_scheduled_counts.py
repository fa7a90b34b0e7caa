"""Private counts open by themselves unless the operator decided otherwise. Oracle: the schedule in the settings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from backend.composition import schedule_first
from backend.db.engine import writing_session
from backend.errors import BackendSettingsRefused
from backend.federation.protections.registry import resolve
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.systems import COMPOSED
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.popularity.estimate import Usage, devices_needed, known_usage, reliability, typical_usage
from backend.popularity.store import OpenedCount, write_count
from backend.settings import BackendSettings
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.round_rig import BackendRig

PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]


@pytest.fixture
def rig(tmp_path: Path) -> BackendRig:
    rig = BackendRig.make(tmp_path, StillClock(NOW))
    item = NewsItem(id="a", title="One headline of its own", section="s", topic="t", published_at=NOW)
    NewsPool(rig.engine).add([item], source="test")
    return rig


def settings(tmp_path: Path, **changes: object) -> BackendSettings:
    return BackendSettings(data_dir=tmp_path, **changes)  # type: ignore[arg-type]


def poll_times(coordinator: Coordinator, times: int) -> None:
    for _ in range(times):
        coordinator.polls.note()


def test_count_opens_after_the_interval_once_devices_wait(rig: BackendRig, tmp_path: Path) -> None:
    schedule_first(rig.coordinator, settings(tmp_path, counts_every_minutes=60, counts_cohort=30))
    poll_times(rig.coordinator, 10)
    rig.coordinator.step()
    assert rig.coordinator.current() is None, "the first is a whole interval away"
    rig.clock.now += timedelta(hours=1)
    rig.coordinator.step()
    assert rig.coordinator.current() is None, "nobody waits"
    poll_times(rig.coordinator, 10)
    rig.coordinator.step()
    current = rig.coordinator.current()
    assert current is not None
    assert (current.system, current.cohort, current.cohort_minimum) == ("private_counts/secure/huber", 30, 10)


@pytest.mark.parametrize(("cohort", "minimum"), [(20, 10), (60, 18), (1_000, 18)])
def test_larger_cohort_keeps_a_minimum_that_allows_groups(
    rig: BackendRig, tmp_path: Path, cohort: int, minimum: int
) -> None:
    """Regression: a third of 1,000 devices left no three groups, and an attacker wants one sum of them all."""
    schedule_first(rig.coordinator, settings(tmp_path, counts_every_minutes=60, counts_cohort=cohort))
    schedule = rig.coordinator.scheduler.status().schedule
    assert schedule is not None
    assert (schedule.order.cohort, schedule.order.cohort_minimum) == (cohort, minimum)


def test_restart_keeps_the_operators_schedule(rig: BackendRig, tmp_path: Path) -> None:
    schedule_first(rig.coordinator, settings(tmp_path))
    first = rig.coordinator.scheduler.status()
    rig.clock.go_on(100)
    schedule_first(rig.coordinator, settings(tmp_path, counts_every_minutes=5))
    assert rig.coordinator.scheduler.status() == first
    rig.coordinator.scheduler.set(None)
    schedule_first(rig.coordinator, settings(tmp_path))
    assert rig.coordinator.scheduler.status().schedule is None


def test_interval_of_zero_minutes_disables_counts(rig: BackendRig, tmp_path: Path) -> None:
    schedule_first(rig.coordinator, settings(tmp_path, counts_every_minutes=0))
    assert rig.coordinator.scheduler.status().schedule is None


def with_news(rig: BackendRig, count: int) -> None:
    words = [f"Headline number {at} about {at * 7919 % 1009} and {at * 104729 % 997}" for at in range(count)]
    NewsPool(rig.engine).add(
        [NewsItem(id=f"n{at}", title=one, section="s", topic="t", published_at=NOW) for at, one in enumerate(words)],
        source="test",
    )


def test_count_with_too_much_noise_is_not_opened_and_reports_the_devices_needed(
    rig: BackendRig, tmp_path: Path
) -> None:
    with_news(rig, 300)
    schedule_first(rig.coordinator, settings(tmp_path))
    rig.clock.now += timedelta(hours=1)
    poll_times(rig.coordinator, 60)
    rig.coordinator.step()
    assert rig.coordinator.current() is None
    trouble = rig.coordinator.scheduler.status().trouble
    assert trouble is not None
    assert "With 60 devices a count of 301 news can't be told from its noise" in trouble
    assert "about 400 would be needed" in trouble
    by_hand = rig.coordinator.open_round("private_counts/secure/huber", cohort=30, cohort_minimum=10, seconds=60)
    assert by_hand.state == "open"


def test_count_opens_once_enough_devices_wait(rig: BackendRig, tmp_path: Path) -> None:
    with_news(rig, 300)
    schedule_first(rig.coordinator, settings(tmp_path))
    rig.clock.now += timedelta(hours=1)
    poll_times(rig.coordinator, 420)
    rig.coordinator.step()
    assert rig.coordinator.current() is not None
    assert rig.coordinator.scheduler.status().trouble is None


def test_reliability_grows_with_devices_and_is_one_half_at_the_number_reported_as_needed() -> None:
    usage, noise = typical_usage(557), resolve(PRIVATE_COUNTS.protection).noise_variance(1)
    found = [reliability(devices, usage, noise) for devices in (60, 1_000, 5_000, 100_000)]
    assert found == sorted(found)
    assert found[0] < 0.05
    assert found[-1] > 0.98
    assert reliability(devices_needed(usage, noise), usage, noise) == pytest.approx(0.5, abs=0.03)
    # Noise of 2.8, 5, 16 and 34 clicks among 1,000 readers: what ranks well is reliable, what doesn't is not.
    mind = Usage(14.8, 57, 0.079, 0.9)
    kept = [reliability(1_000, mind, sd**2 / 1_000) for sd in (2.8, 5.0, 16.0, 34.0)]
    assert [one > 0.5 for one in kept] == [True, True, True, False]


def test_usage_is_estimated_from_past_counts_when_their_noise_allows(rig: BackendRig) -> None:
    with_news(rig, 100)
    assert known_usage(rig.engine, 101) == typical_usage(101)
    rng = np.random.default_rng(3)
    devices, rates = 2_000, np.exp(rng.normal(np.log(0.05), 0.9, 100))
    displays = np.where(np.arange(100) < 20, 1_000.0, 50.0)  # 12 displays of a device, of as if 28 news

    def counted(number: int, noise_sd: float) -> None:
        shown, clicked = (rng.normal(each, noise_sd) for each in (displays, rng.poisson(displays * rates)))
        names = [f"n{at}" for at in range(100)]
        rig.coordinator.open_round("private_counts/secure/huber", cohort=30, cohort_minimum=10, seconds=60)
        rig.coordinator.cancel(f"round-{number}")
        with writing_session(rig.engine) as session:
            opened = OpenedCount(
                number, NOW, devices, dict(zip(names, shown.tolist(), strict=True)),
                dict(zip(names, clicked.tolist(), strict=True)), noise_sd**2, noise_sd**2,
            )  # fmt: skip
            write_count(session, opened, kept=timedelta(days=14))

    counted(1, 10.0)
    usage = known_usage(rig.engine, 101)
    assert usage.displays == pytest.approx(12.0, rel=0.05)
    assert usage.alike == pytest.approx(displays.sum() ** 2 / np.square(displays).sum(), rel=0.1)
    assert usage.rate == pytest.approx(float(rates @ displays / displays.sum()), rel=0.1)
    counted(2, 100_000.0)
    assert known_usage(rig.engine, 101) == typical_usage(101), "the newest count is all noise"


def test_configured_system_is_scheduled_instead_of_counts(rig: BackendRig, tmp_path: Path) -> None:
    schedule_first(rig.coordinator, settings(tmp_path, as_published="uni_fedrec"))
    schedule = rig.coordinator.scheduler.status().schedule
    assert schedule is not None
    assert (schedule.order.system, schedule.order.participation) == ("uni_fedrec", 0.02)
    assert (schedule.every_minutes, schedule.waiting) == (1.0, 1)


def test_unknown_scheduled_system_is_refused(rig: BackendRig, tmp_path: Path) -> None:
    allowed = r"rounds_system.*'uni_fedrek'.*Allowed: small_ranker, .*uni_fedrec"
    with pytest.raises(BackendSettingsRefused, match=allowed):
        schedule_first(rig.coordinator, settings(tmp_path, rounds_system="uni_fedrek"))

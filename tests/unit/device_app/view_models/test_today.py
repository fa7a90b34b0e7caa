"""The summary of today over a real store. Oracle: the test's charges and requests, counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.sealed import Charge
from device_app.reports.policy import ReportPolicy
from device_app.settings import PrivacySettings
from device_app.store.byte_log import Departure
from device_app.store.participations import PaidCount, Participation
from device_app.stores import DeviceStores
from device_app.training.tasks import TASKS
from device_app.view_models.traffic import LEFT_BEFORE_ERASE, left_so_far, today_view
from tests.doubles.clock import StillClock
from tests.doubles.sealing import allowing

SETTINGS = PrivacySettings(epsilon_per_day_training=100.0)
NOISE = {"rho": 0.1, "survivors_at_least": 10.0}
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def clock() -> StillClock:
    return StillClock(MIDNIGHT + timedelta(hours=8))


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    opened = DeviceStores(tmp_path / "device.sqlite")
    yield opened
    opened.close()


def send_report(stores: DeviceStores, at: datetime) -> None:
    stores.byte_log.record(Departure(at, "recall", "A number.", "POST", "http://h/recall", b"POST", b"body", "code"))


def take_part(stores: DeviceStores, round_id: str, task: str, at: datetime, *, epsilon: float = 0.0) -> None:
    part = Participation(round_id, "s", task, "r1", "applied", at, at, sent_bytes=100, epsilon=epsilon)
    stores.participations.record(part)


def test_summary_of_today_counts_reports_group_counts_and_training(stores: DeviceStores, clock: StillClock) -> None:
    ledger = Ledger(stores.ledger_entries, allowing(SETTINGS), clock)
    assert not today_view(stores, ReportPolicy(SETTINGS), ledger)
    clock.now = MIDNIGHT - timedelta(hours=1)
    for channel in ("reports", "counts", "training"):
        ledger.spend(Charge(channel, "code", {}, 2.0, 0.0, "ab" * 32, f"yesterday {channel}"))
    send_report(stores, clock())
    clock.now = MIDNIGHT + timedelta(hours=8)
    before = today_view(stores, ReportPolicy(SETTINGS), ledger)
    assert (bool(before), before.spent_before) == (False, True)

    ledger.spend(Charge("reports", "code", {}, 4.0, 0.0, "cd" * 32, "r1"))
    for _ in range(3):
        send_report(stores, clock())
    for number in range(2):
        ledger.spend(Charge("counts", "secure_sum", NOISE, 2.0, 1e-6, "", f"c{number}"))
        stores.counted.take(PaidCount(f"c{number}", clock(), clock(), 5, 1))
    stores.counted.take(PaidCount("without noise", clock(), clock(), 5, 1))
    training = next(name for name, task in TASKS.items() if task.channel == "training")
    counting = next(name for name, task in TASKS.items() if task.channel == "counts")
    ledger.spend(Charge("training", "secure_sum", NOISE, 4.3, 1e-6, "", "t0"))
    take_part(stores, "t0", training, clock(), epsilon=4.3)
    take_part(stores, "exact", training, clock())
    take_part(stores, "exact, yesterday", training, MIDNIGHT - timedelta(hours=2))
    take_part(stores, "c0", counting, clock(), epsilon=2.0)
    now = today_view(stores, ReportPolicy(SETTINGS), ledger)
    assert (now.reports, now.again, now.counts, now.rounds) == (1, 2, 3, 2)
    assert now.one_number


def test_payments_of_today_are_shown_after_an_erase(stores: DeviceStores, clock: StillClock) -> None:
    ledger = Ledger(stores.ledger_entries, allowing(SETTINGS), clock)
    ledger.spend(Charge("reports", "code", {}, 4.0, 0.0, "cd" * 32, "r1"))
    send_report(stores, clock())
    ledger.spend(Charge("counts", "secure_sum", NOISE, 3.62, 1e-6, "", "c0"))
    stores.counted.take(PaidCount("c0", clock(), clock(), 5, 1))
    before = today_view(stores, ReportPolicy(SETTINGS), ledger)
    stores.erase()
    assert today_view(stores, ReportPolicy(SETTINGS), ledger) == before
    assert (before.reports, before.counts) == (1, 1)


def test_erase_keeps_the_count_of_free_messages_until_midnight(stores: DeviceStores, clock: StillClock) -> None:
    ledger = Ledger(stores.ledger_entries, allowing(SETTINGS), clock)
    ledger.spend(Charge("reports", "code", {}, 4.0, 0.0, "cd" * 32, "r1"))
    for _ in range(3):
        send_report(stores, clock())
    stores.counted.take(PaidCount("without noise", clock(), clock(), 5, 1))
    clock.go_on(60)
    stores.erase({LEFT_BEFORE_ERASE: left_so_far(stores, ledger)})
    after = today_view(stores, ReportPolicy(SETTINGS), ledger)
    assert (after.reports, after.again, after.counts, after.erased_at) == (1, 2, 1, clock())
    clock.go_on(60)
    ledger.spend(Charge("reports", "code", {}, 4.0, 0.0, "ef" * 32, "r1"))
    send_report(stores, clock())
    send_report(stores, clock())
    stores.erase({LEFT_BEFORE_ERASE: left_so_far(stores, ledger)})
    twice = today_view(stores, ReportPolicy(SETTINGS), ledger)
    assert (twice.reports, twice.again, twice.counts) == (2, 3, 1)
    clock.now = MIDNIGHT + timedelta(days=1, hours=1)
    assert not today_view(stores, ReportPolicy(SETTINGS), ledger)

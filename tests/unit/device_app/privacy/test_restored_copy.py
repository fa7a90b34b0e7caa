"""Attacks on a device restored from a copy: what was spent since is charged, so restoring gains nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from device_app.errors import BudgetSpent, StoreBroken
from device_app.privacy.accounting.cost_of_sums import RHO_ALONE
from device_app.privacy.accounting.ledger import ROUNDING, Ledger
from device_app.privacy.accounting.limits import CHANNELS, Ceilings, Limits
from device_app.privacy.accounting.restored_copy import MECHANISM, charge_for_restored_copy
from device_app.privacy.sealed import Charge
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.database_copy import DatabaseCopy, mark_inside
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.participations import CountLog
from protocol.concentrated import epsilon_of, rho_within
from tests.doubles.clock import StillClock
from tests.doubles.sealing import allowing

HOUR = 3_600.0
SETTINGS = PrivacySettings(
    epsilon_per_day_training=10.0,
    epsilon_lifetime_training=35.0,
    epsilon_lifetime_alone=100.0,
)
SUM_RHO = rho_within(10.0, 1e-6)
"""Of a noisy sum that costs 10 if nobody else is real."""


class Attacker:
    """Spends all it can, and restores the copy of its choice; `sent` is what really left, by day."""

    def __init__(self, database: Path, clock: StillClock, settings: PrivacySettings = SETTINGS) -> None:
        self.path, self.clock, self.settings = database, clock, settings
        self.sent: list[tuple[date, str, float, float]] = []
        self.open()

    def open(self) -> None:
        self.database = Database(self.path)
        self.ledger = Ledger(LedgerRepository(self.database), allowing(self.settings), self.clock)
        self.days = charge_for_restored_copy(self.database, self.ledger)

    def copy(self) -> None:
        DatabaseCopy(self.path).make(self.clock(), Limits.of(self.ledger.ceilings).model_dump_json())

    def restore(self) -> None:
        self.database.close()
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        shutil.copy(DatabaseCopy(self.path).path, self.path)
        self.open()

    def spend_all(self) -> None:
        """Charge, in small pieces and through every channel, until the ledger refuses."""
        for channel, epsilon, rho in (("reports", 0.5, 0.0), ("counts", 0.25, SUM_RHO), ("training", 0.3, SUM_RHO)):
            while True:
                parameters = {RHO_ALONE: rho} if rho else {}
                try:
                    self.ledger.spend(Charge(channel, "attack", parameters, epsilon, 0.0))
                except BudgetSpent:
                    break
                self.sent.append((self.ledger.day(), channel, epsilon, rho))

    def check(self) -> None:
        """Check that what really left is within every limit, of each day and in total, in both prices."""
        limits = Limits.of(Ceilings.of(self.settings))
        for day in {day for day, *_ in self.sent}:
            today = [one for one in self.sent if one[0] == day]
            for channel in CHANNELS:
                assert sum(one[2] for one in today if one[1] == channel) <= limits.day[channel] * (1 + ROUNDING)
            assert sum(one[3] for one in today) <= limits.rho_day * (1 + 1e-6)
        for channel in CHANNELS:
            if (life := limits.life[channel]) is not None:
                assert sum(one[2] for one in self.sent if one[1] == channel) <= life * (1 + ROUNDING)
        assert limits.rho_life is not None
        assert sum(one[3] for one in self.sent) <= limits.rho_life * (1 + 1e-6)


@pytest.fixture
def clock() -> StillClock:
    return StillClock(datetime(2026, 11, 20, 8, tzinfo=UTC))


@pytest.fixture
def attacker(tmp_path: Path, migrated: Path, clock: StillClock) -> Attacker:
    return Attacker(Path(shutil.copy(migrated, tmp_path / "device.sqlite")), clock)


def test_repeated_spending_and_restoring_never_exceeds_a_limit(attacker: Attacker, clock: StillClock) -> None:
    attacker.copy()
    for _ in range(4):  # on the first day
        attacker.spend_all()
        attacker.restore()
        clock.go_on(HOUR)
    for _ in range(12):  # on others: from the old copy, and from new ones
        clock.go_on(13 * HOUR)
        attacker.spend_all()
        if clock().hour > 12:
            attacker.copy()
        attacker.spend_all()
        attacker.restore()
        attacker.spend_all()
    assert len({day for day, *_ in attacker.sent}) >= 3, "the attack went on over several days"
    attacker.check()


def test_restore_attack_succeeds_if_the_copy_is_not_charged(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.charge_for_restored_copy", lambda *_: 0)
    attacker.copy()
    attacker.spend_all()
    attacker.restore()
    attacker.spend_all()
    with pytest.raises(AssertionError):
        attacker.check()


def test_restore_charges_every_missing_day_to_its_limits(attacker: Attacker, clock: StillClock) -> None:
    attacker.ledger.spend(Charge("reports", "code", {}, 3.0))
    attacker.ledger.spend(Charge("training", "sum", {RHO_ALONE: SUM_RHO}, 4.0))
    attacker.copy()
    clock.go_on(4 * 24 * HOUR)
    attacker.restore()
    assert attacker.days == 5
    book, limits = attacker.ledger.repository, Limits.of(Ceilings.of(SETTINGS))
    sums = {(one.day.day, one.channel): one.epsilon for one in book.days()}
    assert [sums[day, "reports"] for day in range(20, 25)] == [8, 8, 8, 8, 8]
    assert [sums[day, "counts"] for day in range(20, 25)] == [6, 6, 6, 6, 6]
    assert [sums.get((day, "training"), 0) for day in range(20, 25)] == [10, 10, 10, 5, 0], "35 in a life"
    assert (attacker.ledger.left("reports"), attacker.ledger.left("training")) == (0, 0)
    assert limits.rho_life is not None
    assert book.rho_alone() == pytest.approx(min(5 * limits.rho_day, limits.rho_life))
    assert book.rho_alone(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)) == pytest.approx(
        limits.rho_day
    )
    entries = [entry for entry in book.entries().rows if entry.mechanism == MECHANISM]
    assert {entry.subject for entry in entries} == {"copy of 2026-11-20"}
    assert max(entry.at for entry in entries) <= clock()


def test_restored_copy_is_charged_once_and_an_ordinary_database_never(attacker: Attacker, clock: StillClock) -> None:
    assert attacker.days == 0
    attacker.copy()
    attacker.restore()
    total = attacker.ledger.total("reports")
    assert (attacker.days, total) == (1, 8)
    attacker.database.close()
    attacker.open()
    assert (attacker.days, attacker.ledger.total("reports")) == (0, total)
    clock.go_on(24 * HOUR)
    assert attacker.ledger.left("reports") == 8, "the next day has its own budget"


def test_limits_raised_after_the_copy_are_charged(attacker: Attacker) -> None:
    raised = SETTINGS.model_copy(update={"epsilon_per_day_reports": 20.0, "epsilon_lifetime_reports": None})
    attacker.copy()
    copy = DatabaseCopy(attacker.path)
    higher = Limits.of(Ceilings.of(SETTINGS)).or_higher(Limits.of(Ceilings.of(raised))).model_dump_json()
    copy.write([("UPDATE copied SET limits = ?", (higher,))])
    attacker.restore()  # with the settings of the copy, which are lower
    assert attacker.ledger.total("reports") == 20
    assert attacker.ledger.left("reports") == 0


@pytest.mark.parametrize("days", [-1, 4_000])
def test_restore_under_an_implausible_clock_is_refused_without_a_charge(
    attacker: Attacker, clock: StillClock, days: int
) -> None:
    attacker.copy()
    clock.go_on(days * 24 * HOUR)
    with pytest.raises(StoreBroken, match="Set the clock first"):
        attacker.restore()
    assert mark_inside(attacker.database) is not None
    assert attacker.ledger.total("reports") == 0


def test_kill_during_the_charge_is_rolled_back(attacker: Attacker, monkeypatch: pytest.MonkeyPatch) -> None:
    attacker.copy()
    append: Callable[..., int] = LedgerRepository.append
    calls: list[int] = []

    def killed(self: LedgerRepository, entry: object) -> int:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return append(self, entry)

    with monkeypatch.context() as patch:
        patch.setattr(LedgerRepository, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            attacker.restore()
    attacker.database.close()
    attacker.open()
    assert (attacker.days, attacker.ledger.left("reports")) == (1, 0)


def test_clicks_possibly_counted_before_a_restore_are_not_counted_again(attacker: Attacker, clock: StillClock) -> None:
    with attacker.database.transaction():
        attacker.database.write(
            "INSERT INTO impression (feed_id, news_id, position, at, viewed_at) VALUES ('f', 'N1', 0, ?1, ?1)",
            (int(clock().timestamp() * 1e6),),
        )
    clock.go_on(60)
    attacker.copy()
    assert CountLog(attacker.database).window(clock(), timedelta(days=1)).displayed == {"N1"}
    attacker.restore()
    counted = CountLog(attacker.database)
    assert counted.window(clock(), timedelta(days=1)).displayed == frozenset()
    assert counted.list() == [], "it was no count"


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 24.0, 48.0, 200.0, 1e9])
def test_rho_allowed_by_an_epsilon_is_maximal(epsilon: float) -> None:
    rho = rho_within(epsilon, 1e-6)
    assert epsilon_of(rho, 1e-6) <= epsilon
    assert epsilon_of(rho * (1 + 1e-6), 1e-6) > epsilon
    assert rho_within(0.0, 1e-6) == 0


def test_limits_survive_json_and_invalid_limits_are_refused() -> None:
    limits = Limits.of(Ceilings.of(SETTINGS))
    assert Limits.read(limits.model_dump_json()) == limits
    assert limits.or_higher(Limits.of(Ceilings.of(PrivacySettings()))).life["training"] is None
    for wrong in ("", "{}", '{"day": {}, "life": {}, "rho_day": 1, "rho_life": null, "delta": 1e-6}'):
        with pytest.raises(ValueError, match="limits: "):
            Limits.read(wrong)

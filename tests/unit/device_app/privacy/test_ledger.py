"""The ledger adds up charges, refuses those over a limit, and forgets none."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_app.errors import BudgetSpent
from device_app.privacy.accounting.ledger import ROUNDING, Ledger
from device_app.privacy.sealed import Charge
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from tests.doubles.sealing import allowing
from tests.unit.device_app.privacy.conftest import TurnedClock


def charge(epsilon: float, channel: str = "reports", delta: float = 0.0) -> Charge:
    return Charge(channel, "basis_laplace", {"clip": 0.2}, epsilon, delta, "ab" * 32, "r1")


def test_daily_budget_pays_three_paper_reports_and_refuses_a_fourth(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.spend(charge(2 * 0.2 / 1.2 * 30 * 5))
    with pytest.raises(BudgetSpent, match="reports has 0 left today; this would cost 50") as refused:
        ledger.spend(charge(50))
    assert (refused.value.channel, refused.value.wanted) == ("reports", 50)
    assert ledger.repository.entries().total == 3
    assert ledger.left("reports") == pytest.approx(0, abs=1e-6)


def test_daily_budget_resets_at_midnight_utc_and_totals_continue(ledger: Ledger, clock: TurnedClock) -> None:
    ledger.spend(charge(150))
    clock.now = datetime(2026, 11, 20, 23, 59, 59, 999_999, tzinfo=UTC)
    with pytest.raises(BudgetSpent):
        ledger.spend(charge(1))
    clock.now = datetime(2026, 11, 21, tzinfo=UTC)
    assert ledger.day() == date(2026, 11, 21)
    assert ledger.left("reports") == 150
    ledger.spend(charge(1))
    assert (ledger.spent_today("reports"), ledger.total("reports")) == (1, 151)


def test_clock_set_back_returns_no_budget(ledger: Ledger, clock: TurnedClock) -> None:
    ledger.spend(charge(150))
    clock.turn(days=-3)
    with pytest.raises(BudgetSpent):
        ledger.spend(charge(1))


def test_channels_have_separate_budgets(ledger: Ledger) -> None:
    ledger.spend(charge(150))
    ledger.spend(charge(4.9e6, "training"))
    assert ledger.left("reports") == 0
    assert ledger.left("training") == pytest.approx(5.1e6)
    with pytest.raises(ValueError, match="channel 'telemetry'"):
        ledger.spend(charge(1, "telemetry"))


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_invalid_charge_is_refused(ledger: Ledger, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon of a charge"):
        ledger.spend(charge(epsilon))
    with pytest.raises(ValueError, match="delta of a charge"):
        ledger.spend(charge(1.0, delta=epsilon))
    assert ledger.repository.entries().total == 0


def test_charge_is_committed_when_spend_returns(ledger: Ledger, database: Database) -> None:
    # A second connection sees committed rows only.
    import sqlite3

    ledger.spend(charge(50))
    other = sqlite3.connect(database.path)
    assert other.execute("SELECT epsilon, payload_sha256, subject FROM charge").fetchall() == [(50, "ab" * 32, "r1")]
    other.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    budget=st.floats(0, 200),
    steps=st.lists(
        st.tuples(
            st.floats(0, 120, allow_subnormal=False), st.sampled_from(["reports", "training"]), st.floats(-5, 30)
        ),
        max_size=25,
    ),
)
def test_charges_and_clock_changes_never_exceed_a_days_budget(
    database: Database,
    clock: TurnedClock,
    budget: float,
    steps: list[tuple[float, str, float]],
) -> None:
    # The oracle adds up, from the rows themselves, what each channel holds on each UTC day.
    with database.transaction():
        database.write("DELETE FROM charge")
    limits = PrivacySettings(
        epsilon_per_day_reports=budget, epsilon_lifetime_reports=None, epsilon_per_day_training=budget / 2
    )
    ledger = Ledger(LedgerRepository(database), allowing(limits), clock)
    for epsilon, channel, hours in steps:
        clock.turn(hours=hours)
        before = ledger.left(channel)
        rows = ledger.repository.entries().total
        try:
            ledger.spend(charge(epsilon, channel))
        except BudgetSpent:
            assert epsilon > before
            assert ledger.repository.entries().total == rows
        else:
            assert ledger.repository.entries().total == rows + 1
    ceilings = {"reports": budget, "training": budget / 2}
    for day in ledger.repository.days():
        assert day.epsilon <= ceilings[day.channel] * (1 + 2 * ROUNDING)


def test_lifetime_limit_applies_besides_the_daily_one(database: Database, clock: TurnedClock) -> None:
    limits = PrivacySettings(epsilon_per_day_reports=8, epsilon_lifetime_reports=10, epsilon_lifetime_training=3)
    ledger = Ledger(LedgerRepository(database), allowing(limits), clock)
    ledger.spend(charge(4))
    ledger.spend(charge(4))
    with pytest.raises(BudgetSpent, match="has 0 left today") as today:
        ledger.spend(charge(4))
    assert not today.value.lifetime
    clock.turn(days=1)
    assert ledger.left("reports") == 2
    with pytest.raises(BudgetSpent, match="has 2 left in all; this would cost 4") as whole:
        ledger.spend(charge(4))
    assert whole.value.lifetime
    ledger.spend(charge(2))
    clock.turn(days=400)
    assert ledger.left("reports") == 0
    assert (ledger.lifetime("reports"), ledger.lifetime("training")) == (10, 3)


def test_equal_charges_are_grouped_when_composed(ledger: Ledger) -> None:
    ledger.spend(charge(4.0))
    ledger.spend(charge(4.0))
    ledger.spend(charge(2.0, "training", 1e-7))
    assert ledger.repository.grouped() == [
        ("reports", "basis_laplace", {"clip": 0.2}, 4.0, 0.0, 2),
        ("training", "basis_laplace", {"clip": 0.2}, 2.0, 1e-7, 1),
    ]

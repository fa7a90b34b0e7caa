"""The account of sums with no other real member. Oracle: rho adds up, and one share's rho is D^2 / (2 s^2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from device_app.errors import BudgetSpent
from device_app.privacy.accounting.cost_of_sums import sum_prices
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.sealed import Charge
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerEntry, LedgerRepository
from device_app.view_models.privacy import alone_view, sum_cost
from protocol.concentrated import epsilon_of
from protocol.protections import SecureSum
from tests.doubles.clock import StillClock
from tests.doubles.sealing import allowing

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PROTECTION = SecureSum(clip=2.0, sigma=278, fraction_bits=8, nonnegative=True)
PRICES = sum_prices(PROTECTION, 10, 100, 1e-6)
WILLING = PrivacySettings(epsilon_per_day_training=1e9, epsilon_per_day_counts=1e9, epsilon_per_day_alone=40)
EARLIER = LedgerEntry(
    at=NOW - timedelta(days=3),
    channel="counts",
    mechanism="secure_sum",
    parameters=dict(PRICES.parameters),
    epsilon=PRICES.epsilon,
    delta=1e-6,
    payload_sha256="a" * 64,
    subject="round-1",
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    database = Database(tmp_path / "device.sqlite")
    yield Ledger(LedgerRepository(database), allowing(WILLING), StillClock(NOW))
    database.close()


def charge(channel: str) -> Charge:
    return Charge(channel, "secure_sum", dict(PRICES.parameters), PRICES.epsilon, 1e-6, "b" * 64, "round-2")


def test_rho_of_one_noise_share_is_that_of_one_gaussian() -> None:
    assert PRICES.rho_alone == pytest.approx((PROTECTION.reach_steps / PROTECTION.sigma) ** 2 / 2)
    assert PRICES.rho == pytest.approx(PRICES.rho_alone / 10)


def test_sums_of_both_channels_compose_by_rho_up_to_the_daily_limit(ledger: Ledger) -> None:
    rho = PRICES.rho_alone
    taken = next(count for count in range(1, 99) if epsilon_of((count + 1) * rho, 1e-6) > 40)
    for channel in (("counts", "training") * taken)[:taken]:
        ledger.spend(charge(channel))
    with pytest.raises(BudgetSpent, match=r"sums in which no other device is real has .* left today"):
        ledger.spend(charge("training"))
    assert ledger.alone().rho_today == pytest.approx(taken * rho)
    assert len(ledger.repository.entries().rows) == taken, "what is refused isn't written down"


def test_charge_of_an_earlier_day_counts_as_one_noise_share_in_the_total(ledger: Ledger) -> None:
    ledger.repository.append(EARLIER)
    report = replace(EARLIER, mechanism="code", channel="reports", parameters={"size": 16.0}, subject="r1")
    ledger.repository.append(report)
    alone = ledger.alone()
    assert alone.rho_today == 0
    assert alone.rho_in_all == pytest.approx(PRICES.rho_alone)
    cost = sum_cost(ledger.repository.of_sums()["round-1"])
    assert cost.alone == pytest.approx(PRICES.alone)
    view = alone_view(ledger)
    assert view.today == 0
    assert view.in_all == pytest.approx(PRICES.alone)


def test_lifetime_limit_counts_charges_of_earlier_days(ledger: Ledger) -> None:
    ledger.repository.append(EARLIER)
    limited = WILLING.model_copy(update={"epsilon_lifetime_alone": PRICES.alone * 1.01})
    ledger = Ledger(ledger.repository, allowing(limited), StillClock(NOW))
    with pytest.raises(BudgetSpent, match="left in all"):
        ledger.spend(charge("counts"))

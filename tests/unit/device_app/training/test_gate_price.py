"""A round and its gate, paid from one day's budget. Oracle: the prices of the shipped systems."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.federation.systems import COMPOSED
from backend.federation.systems.composition import SystemSpec
from backend.federation.systems.release_gate import RELEASE_GATE
from device_app.errors import BudgetSpent
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.sealed import Charge
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.training.eligibility import Terms, check_offer
from protocol.protections import SecureSum
from protocol.ring import SHAPES
from protocol.rounds import RoundManifest
from tests.doubles.sealing import allowing

SMALL_RANKER_SECURE = COMPOSED["small_ranker/secure/median"]

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def protection_of(spec: SystemSpec) -> SecureSum:
    assert isinstance(spec.protection, SecureSum)
    return spec.protection


GATE, TRAINING = protection_of(RELEASE_GATE), protection_of(SMALL_RANKER_SECURE)
NUMBERS = sum(shape[0] for shape in SHAPES.values())


def offered(minimum: int) -> RoundManifest:
    return RoundManifest(
        round="round-2", release="r2", system="release_gate", task="evaluate", model="ranker.features",
        shapes=dict(SHAPES), protection=GATE, negatives=16, samples_limit=64, closes_at=NOW + timedelta(minutes=1),
        terms=GATE.terms("round-2", cohort=60, cohort_minimum=minimum, coordinates=NUMBERS),
    )  # fmt: skip


def trained(tmp_path: Path, budget: float, minimum: int) -> tuple[Ledger, Terms]:
    """Return a device's ledger after one round today, and its terms for the next offer."""
    privacy = PrivacySettings(training=True, epsilon_per_day_training=budget)
    ledger = Ledger(LedgerRepository(Database(tmp_path / "device.sqlite")), allowing(privacy), lambda: NOW)
    ledger.spend(Charge("training", "secure_sum", {}, TRAINING.epsilon(minimum, 262), 1e-6, "ab" * 32, "round-1"))
    terms = Terms(
        privacy=privacy, release="r2", tasks=("evaluate",), trainable=("ranker.features",), shapes=dict(SHAPES),
        epsilon_left=ledger.left("training"), now=NOW,
    )  # fmt: skip
    return ledger, terms


def test_daily_budget_of_6_pays_for_a_round_but_not_its_gate(
    tmp_path: Path,
) -> None:
    ledger, terms = trained(tmp_path, budget=6.0, minimum=10)
    with pytest.raises(BudgetSpent, match=r"training has 1\.6\d* left today; this would cost 3\.6") as declined:
        check_offer(offered(10), terms)
    assert declined.value.wanted == GATE.epsilon(10, NUMBERS)
    spent = ledger.spent_today("training")
    with pytest.raises(BudgetSpent):
        ledger.spend(Charge("training", "secure_sum", {}, GATE.epsilon(10, NUMBERS), 1e-6, "cd" * 32, "round-2"))
    assert ledger.spent_today("training") == spent < 6


@pytest.mark.parametrize(("budget", "minimum"), [(8.0, 10), (6.0, 20), (3.0, 60)])
def test_larger_budget_or_cohort_pays_for_a_round_and_its_gate(tmp_path: Path, budget: float, minimum: int) -> None:
    ledger, terms = trained(tmp_path, budget, minimum)
    check_offer(offered(minimum), terms)
    ledger.spend(Charge("training", "secure_sum", {}, GATE.epsilon(minimum, NUMBERS), 1e-6, "cd" * 32, "round-2"))
    assert ledger.spent_today("training") <= budget


def test_gate_costs_less_than_its_round_and_both_fit_a_budget_of_8() -> None:
    for survivors in (10, 60):
        assert GATE.epsilon(survivors, NUMBERS) == pytest.approx(0.84 * TRAINING.epsilon(survivors, 262), rel=0.01)
    assert GATE.epsilon(10, NUMBERS) + TRAINING.epsilon(10, 262) < 8

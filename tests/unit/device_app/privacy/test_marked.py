"""The cost of marks for a union. Oracle: the protection's own price, by which the server keeps its account."""

from __future__ import annotations

import numpy as np
import pytest

from backend.federation.protections.registry import resolve
from device_app.privacy.accounting.composition import composed
from device_app.privacy.accounting.cost_of_sums import RHO
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.protections.union_marks import mark
from device_app.privacy.sealed import Charge
from protocol.concentrated import epsilon_of
from protocol.union import UnionMarks

NEWS_LISTED, SURVIVORS = 300, 10
NOISY = UnionMarks(owners_minimum=3, sigma=60, rows_limit=64)
HELD = np.zeros(NEWS_LISTED, dtype=np.float32)
HELD[[3, 70, 299]] = 1.0


def charged(mechanism: UnionMarks, round_id: str = "round-1") -> Charge:
    terms = mechanism.terms(round_id, cohort=60, cohort_minimum=SURVIVORS, coordinates=NEWS_LISTED)
    return mark(HELD, mechanism, terms, SeededNoise(5)).charge


def test_device_charges_noisy_counts_by_the_same_rho_as_the_server() -> None:
    charge = charged(NOISY)
    assert (
        charge.parameters[RHO]
        == resolve(NOISY).account(NEWS_LISTED, SURVIVORS).rho
        == NOISY.rho(SURVIVORS, NEWS_LISTED)
        > 0
    )
    assert charge.epsilon == NOISY.epsilon(SURVIVORS, NEWS_LISTED)


@pytest.mark.parametrize("mechanism", [UnionMarks(), UnionMarks(owners_minimum=3)])
def test_marks_and_exact_counts_are_charged_nothing(mechanism: UnionMarks) -> None:
    charge = charged(mechanism)
    assert (RHO in charge.parameters, charge.epsilon) == (False, 0.0)


def test_unions_of_several_rounds_compose_by_rho_below_their_sum(ledger: Ledger) -> None:
    rounds = 8
    for number in range(rounds):
        ledger.spend(charged(NOISY, f"round-{number + 1}"))
    together = composed(ledger.repository.grouped())
    rho = rounds * NOISY.rho(SURVIVORS, NEWS_LISTED)
    assert together.sums == pytest.approx(epsilon_of(rho, rounds * NOISY.delta))
    assert together.by_loss == pytest.approx(together.sums)
    assert together.by_sum == pytest.approx(rounds * NOISY.epsilon(SURVIVORS, NEWS_LISTED))
    assert together.by_loss < 0.7 * together.by_sum

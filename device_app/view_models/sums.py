"""What noisy sums cost, as the pages show it: with real company and with none, for one click and for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.privacy.ledger import Ledger
from device_app.privacy.prices import EPSILON_ALONE, ONE_CLICK, ONE_CLICK_ALONE, RHO
from device_app.store.ledger_entries import LedgerEntry
from device_app.wire.concentrated import epsilon_of


@dataclass(frozen=True)
class SumCost:
    """The prices of one sum in epsilon at delta; of one click None where the charge is of before they were kept."""

    delta: float
    epsilon: float
    alone: float
    one_click: float | None = None
    one_click_alone: float | None = None


@dataclass(frozen=True)
class AloneView:
    """All noisy sums together if nobody else in any was real, in epsilon at delta, under the ceilings."""

    today: float
    per_day: float
    in_all: float
    lifetime_limit: float | None
    delta: float


def sum_cost(entry: LedgerEntry) -> SumCost:
    """Of a charge for a noisy sum."""
    known = entry.parameters
    alone = known.get(EPSILON_ALONE)
    if alone is None:
        # So many times the rho of so many shares is no less than the rho of one.
        alone = epsilon_of(known[RHO] * known.get("survivors_at_least", 1.0), entry.delta or 1e-6)
    return SumCost(entry.delta, entry.epsilon, alone, known.get(ONE_CLICK), known.get(ONE_CLICK_ALONE))


def alone_view(ledger: Ledger) -> AloneView:
    """What sums would have cost if no other device were real, today and in all."""
    settings, alone = ledger.settings, ledger.alone()
    delta = settings.delta_per_sum
    return AloneView(
        today=alone.today(delta),
        per_day=settings.epsilon_per_day_alone,
        in_all=alone.in_all(delta),
        lifetime_limit=settings.epsilon_lifetime_alone,
        delta=delta,
    )

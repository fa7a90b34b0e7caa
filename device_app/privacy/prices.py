"""What a noisy sum costs this device, figured by the device itself: in honest company, and if nobody else is real."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from device_app.wire.concentrated import epsilon_of, rho_of_sum
from device_app.wire.protections import SecureSum
from device_app.wire.union import UnionMarks

DELTA = 1e-6
"""Of a device whose reader has set no other."""
RHO = "rho"
RHO_ALONE = "rho_alone"
EPSILON_ALONE = "epsilon_alone"
ONE_CLICK = "epsilon_one_click"
ONE_CLICK_ALONE = "epsilon_one_click_alone"
"""Names in a charge's parameters. Charges of before 2026-11-22 have the first only."""


ROUNDED = 1.5
"""Steps by which rounding or cutting one coordinate can set two neighbouring vectors further apart, and a little."""


@dataclass(frozen=True)
class OneClick:
    """What one click, with its display, exchanged for another does to an update; a task proves it of its own.

    distance: the update moves by at most so much in L2. coordinates: at most so many are other than 0 before or after.
    """

    distance: float
    coordinates: int

    def steps(self, step: float) -> float:
        """The same of the vector in fixed point: scaling into a ball brings nothing further apart, rounding may."""
        return self.distance / step + ROUNDED * math.sqrt(self.coordinates)


@dataclass(frozen=True)
class SumPrices:
    """The prices of one opened sum at this device's delta.

    epsilon: if the other members are real, with the noise of as few survivors as the round allows. alone: if every
    other member is the server's own, so that this device's share is all the noise there is. Both are for exchanging
    all that the device gives; the one_click figures for exchanging a single click, with its display, for another.
    rho and rho_alone are the first two as concentrated differential privacy, which adds up over sums.
    """

    delta: float
    rho: float
    rho_alone: float
    epsilon: float
    alone: float
    one_click: float
    one_click_alone: float

    @property
    def possible(self) -> bool:
        """Whether the figures bound anything: noise that costs nothing, or no finite number, is none."""
        return all(math.isfinite(one) and one > 0 for one in (self.epsilon, self.alone))

    @property
    def parameters(self) -> Mapping[str, float]:
        """What the ledger keeps besides epsilon and delta."""
        return {
            RHO: self.rho,
            RHO_ALONE: self.rho_alone,
            EPSILON_ALONE: self.alone,
            ONE_CLICK: self.one_click,
            ONE_CLICK_ALONE: self.one_click_alone,
        }


def sum_prices(
    protection: SecureSum | UnionMarks,
    survivors: int,
    coordinates: int,
    delta: float,
    *,
    one_click_steps: float | None = None,
) -> SumPrices:
    """Price a sum with noise in it.

    Args:
        protection: of the sum; `protection.delta`, which the server chose, is not read.
        survivors: the fewest with whom it may be opened.
        coordinates: numbers of a device's vector.
        delta: the device's own.
        one_click_steps: how far one click exchanged for another moves the vector at most in L2, in steps; None: as far
            as exchanging everything.

    Raises ValueError for a sum without noise.

    Formal guarantees: epsilon and alone are upper bounds at delta for exchanging all of this reader's data for any
    other, by `wire.concentrated.rho_of_sum` with the noise of `survivors` devices and of one. alone needs nothing of
    any other member: masks, thresholds and the server's honesty don't enter into it. The one_click figures hold as far
    as one_click_steps does; nothing is charged by them.
    """
    if not protection.sigma:
        raise ValueError("sigma: a sum without noise has no price")
    near = protection.reach_steps if one_click_steps is None else min(one_click_steps, protection.reach_steps)

    def rho(reach: float, contributors: int) -> float:
        return rho_of_sum(reach, protection.sigma, contributors, coordinates)

    company, alone = rho(protection.reach_steps, survivors), rho(protection.reach_steps, 1)
    return SumPrices(
        delta=delta,
        rho=company,
        rho_alone=alone,
        epsilon=epsilon_of(company, delta),
        alone=epsilon_of(alone, delta),
        one_click=epsilon_of(rho(near, survivors), delta),
        one_click_alone=epsilon_of(rho(near, 1), delta),
    )

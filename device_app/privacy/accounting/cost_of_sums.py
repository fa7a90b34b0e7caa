"""What noisy secure sums cost this device, computed by the device itself.

Each sum has two costs: one if the other devices are real, and one if they are all fake, so that this device's own share
of noise is the only noise. `SumsAlone` adds up the second over all sums.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from device_app.errors import BudgetSpent
from device_app.privacy.accounting.limits import Ceilings
from protocol.concentrated import epsilon_of, rho_of_sum
from protocol.protections import SecureSum
from protocol.union import UnionMarks

DELTA = 1e-6
"""The default delta, used where the reader has not set another."""
RHO = "rho"
RHO_ALONE = "rho_alone"
EPSILON_ALONE = "epsilon_alone"
ONE_CLICK = "epsilon_one_click"
ONE_CLICK_ALONE = "epsilon_one_click_alone"
"""Parameter of a charge: its cost for one click if every other device is fake."""


ROUNDED = 1.5
"""Steps by which rounding or truncating one coordinate can move two neighbouring vectors further apart, plus a
margin."""


@dataclass(frozen=True)
class OneClick:
    """Bounds how an update changes when one click, with its display, is replaced by another.

    Each task proves its own bound. distance: the largest change of the update in L2. coordinates: the largest number of
    coordinates that are nonzero before or after.
    """

    distance: float
    coordinates: int

    def steps(self, step: float) -> float:
        """Return the L2 bound in steps of the fixed-point vector.

        Scaling into a ball never moves two vectors further apart, but rounding may.
        """
        return self.distance / step + ROUNDED * math.sqrt(self.coordinates)


@dataclass(frozen=True)
class SumPrices:
    """The costs of one opened sum at this device's delta.

    epsilon: if the other members are real, with the noise of as few survivors as the round allows. alone: if every
    other member is fake (run by the server), so that this device's share is all the noise there is. Both are for
    replacing all the data that the device contributes; the one_click figures are for replacing a single click, with its
    display, by another. rho and rho_alone are the first two as concentrated differential privacy, which adds up over
    sums.
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
        """Whether the costs are finite and positive; otherwise they bound nothing."""
        return all(math.isfinite(one) and one > 0 for one in (self.epsilon, self.alone))

    @property
    def parameters(self) -> Mapping[str, float]:
        """The figures that the ledger keeps besides epsilon and delta."""
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
    """Compute the costs of a sum with noise in it.

    Args:
        protection: the sum's; `protection.delta`, which the server chose, is not read.
        survivors: the fewest survivors with whom the sum may be opened.
        coordinates: length of a device's vector.
        delta: the device's own.
        one_click_steps: the largest change of the vector in L2, in steps, when one click is replaced by another; None:
        the same as when everything is replaced.

    Raises ValueError for a sum without noise.

    Formal guarantees: epsilon and alone are upper bounds at delta for replacing all of this reader's data by any other
    data, by `protocol.concentrated.rho_of_sum` with the noise of `survivors` devices and of one. alone assumes nothing
    about any other member: it doesn't depend on masks, thresholds or the server's honesty. The one_click figures hold
    if one_click_steps does; they are not charged.
    """
    if not protection.sigma:
        raise ValueError("sigma: a sum without noise has no finite cost")
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


CHANNEL = "sums in which no other device is real"
ROUNDING = 1e-9


@dataclass(frozen=True)
class SumsAlone:
    """The total rho of all sums if every other device was fake (Bun and Steinke 2016).

    It covers sums of every channel. rho_today covers this UTC day, rho_in_all the device's lifetime.
    """

    rho_today: float = 0.0
    rho_in_all: float = 0.0

    def today(self, delta: float) -> float:
        """Return the epsilon of all of today's sums together, at delta."""
        return epsilon_of(self.rho_today, delta)

    def in_all(self, delta: float) -> float:
        """Return the epsilon of all sums together, at delta."""
        return epsilon_of(self.rho_in_all, delta)

    def check(self, rho: float, ceilings: Ceilings) -> None:
        """Raise BudgetSpent if one more sum of this rho would exceed a ceiling.

        The ceilings are epsilons at one delta for all sums together.
        """
        delta = ceilings.delta
        for before, ceiling, lifetime in (
            (self.rho_today, ceilings.alone_day, False),
            (self.rho_in_all, ceilings.alone_life, True),
        ):
            if ceiling is None:
                continue
            spent, after = epsilon_of(before, delta), epsilon_of(before + rho, delta)
            if after > ceiling * (1 + ROUNDING):
                raise BudgetSpent(CHANNEL, after - spent, max(0.0, ceiling - spent), lifetime=lifetime)


NOTHING_ALONE = SumsAlone()

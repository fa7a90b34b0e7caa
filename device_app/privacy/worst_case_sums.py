"""What all noisy sums together have cost if no other device in them was real: each with one share of noise."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.errors import BudgetSpent
from device_app.privacy.settings import PrivacySettings
from device_app.wire.concentrated import epsilon_of

CHANNEL = "sums in which no other device is real"
ROUNDING = 1e-9


@dataclass(frozen=True)
class SumsAlone:
    """rho with one share each, which adds up over sums of any channel (Bun and Steinke 2016).

    rho_today is of this UTC day, rho_in_all of the device's life.
    """

    rho_today: float = 0.0
    rho_in_all: float = 0.0

    def today(self, delta: float) -> float:
        """Epsilon of today's sums together, at delta."""
        return epsilon_of(self.rho_today, delta)

    def in_all(self, delta: float) -> float:
        """Epsilon of all sums together, at delta."""
        return epsilon_of(self.rho_in_all, delta)

    def check(self, rho: float, privacy: PrivacySettings) -> None:
        """Raise BudgetSpent if one more sum of that rho would pass a ceiling; at `delta_per_sum`, once for all sums."""
        delta = privacy.delta_per_sum
        for before, ceiling, lifetime in (
            (self.rho_today, privacy.epsilon_per_day_alone, False),
            (self.rho_in_all, privacy.epsilon_lifetime_alone, True),
        ):
            if ceiling is None:
                continue
            spent, after = epsilon_of(before, delta), epsilon_of(before + rho, delta)
            if after > ceiling * (1 + ROUNDING):
                raise BudgetSpent(CHANNEL, after - spent, max(0.0, ceiling - spent), lifetime=lifetime)


NOTHING_ALONE = SumsAlone()

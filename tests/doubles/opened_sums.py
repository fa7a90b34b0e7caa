"""A privacy account of opened sums by dp-accounting, opening by opening, to check the server's figures against."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from backend.federation.accounting import epsilon_spent
from protocol.concentrated import rho_of_sum


@dataclass(frozen=True)
class SumNoise:
    """The noise of one secure sum: sigma of a share and the L2 bound of a vector, both in steps; its length."""

    share_sigma: int
    bound_steps: float
    coordinates: int


@dataclass(frozen=True)
class NoisyOpening:
    """One opened sum. colluding: survivors who may reveal their own shares to the server, and so don't count."""

    noise: SumNoise
    survivors: int
    colluding: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.colluding < self.survivors:
            raise ValueError(f"colluding: 0 to the {self.survivors} survivors less one, got {self.colluding}")

    @property
    def contributors(self) -> int:
        """Survivors whose shares count as noise."""
        return self.survivors - self.colluding

    @property
    def rho(self) -> float:
        """In zero-concentrated differential privacy, for letting one device in or out."""
        noise = self.noise
        return rho_of_sum(noise.bound_steps, noise.share_sigma, self.contributors, noise.coordinates)

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the sum's noise over the bound."""
        return math.sqrt(self.contributors) * self.noise.share_sigma / self.noise.bound_steps


def spent_on(openings: Iterable[NoisyOpening], delta: float) -> float:
    """The epsilon, at this delta, that a device in all of these openings has spent.

    Formal guarantees: bounds the epsilon of (epsilon, delta)-differential privacy for letting one device in or out of
    all the sums, chosen adaptively; with twice the bound in steps it covers exchanging the device's data. rho adds up,
    and dp-accounting's Renyi accountant converts it. Nothing is claimed from sampling: the server knows who took part.
    """
    return epsilon_spent(sum(opening.rho for opening in openings), delta)


def gaussian_figure(openings: Iterable[NoisyOpening], delta: float) -> float:
    """The same for continuous Gaussian noise of the same multipliers, by its privacy loss distribution.

    A check, not a guarantee: it's slightly smaller than `spent_on`, and no theorem carries it over to discrete noise in
    many dimensions.
    """
    # Gaussians compose into one whose squared inverse multiplier is the sum of theirs.
    inverse = sum(opening.noise_multiplier**-2 for opening in openings)
    if inverse == 0:
        return 0.0
    loss = PLDAccountant()
    loss.compose(dp_event.GaussianDpEvent(inverse**-0.5))
    return float(loss.get_epsilon(delta))

"""A merged topic histogram with Laplace noise, for comparison; it needs epsilon 32 to match `code`."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.exact_samplers import discrete_laplace
from device_app.privacy.noise_sources import NoiseSource
from protocol.recall import BASIS_LIMIT

NAME = "topics"
GRID_BITS = 16


@dataclass(frozen=True)
class NoisyTopics:
    """The shares of the clicks by nearest prototype, a point of the simplex of K, plus discrete Laplace noise on each.

    size: K. epsilon: eps of one report.

    Formal guarantees, in pure local differential privacy, for any two readers whatsoever: one report costs eps,
    exactly. Shares are rounded down to a grid of 2^-16, so that they are integers adding up to at most 2^16; two such
    histograms differ by at most 2 * 2^16 in L1; the noise is `exact_samplers.discrete_laplace` of scale ceil(2 * 2^16 /
    eps) on that grid, computed in integers. S fresh reports cost S eps; sending one again costs nothing.

    Not covered: whether and when a reader reports, and from which address.
    """

    size: int
    epsilon: float

    def __post_init__(self) -> None:
        if not 2 <= self.size <= BASIS_LIMIT:
            raise ValueError(f"size must be 2 to {BASIS_LIMIT}; got {self.size}")
        if not (math.isfinite(self.epsilon) and self.epsilon >= 2.0**-10):
            raise ValueError(f"epsilon must be finite and at least 2^-10; got {self.epsilon}")

    @property
    def epsilon_per_report(self) -> float:
        return self.epsilon

    @property
    def grid_scale(self) -> int:
        """The noise's scale in steps of the grid, rounded up."""
        return math.ceil((2 << GRID_BITS) / self.epsilon)

    def release(self, shares: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Shares [K] (or [n, K] of n readers) to noisy shares; they may be negative and need not add up to 1.

        See the class for the guarantee. Raises ValueError for another shape, or for values that are not shares.
        """
        if shares.ndim not in (1, 2) or shares.shape[-1] != self.size or not np.isfinite(shares).all():
            raise ValueError(f"shares has shape {shares.shape} or values not finite; expected {self.size} shares")
        if shares.min() < 0 or shares.sum(axis=-1).max() > 1 + 1e-6:
            raise ValueError("shares must not be negative or add up to more than 1")
        steps = np.floor(np.atleast_2d(shares).astype(np.float64) * 2**GRID_BITS).astype(np.int64)
        # A rounding of the shares themselves may pass the whole by a step: the bound must hold to the last one.
        over = np.maximum(0, steps.sum(axis=1) - 2**GRID_BITS)
        steps[np.arange(len(steps)), steps.argmax(axis=1)] -= over
        noise = discrete_laplace(source, self.grid_scale, steps.size).reshape(steps.shape)
        noisy: NDArray[np.float64] = ((steps + noise) / 2**GRID_BITS).reshape(shares.shape)
        return noisy

    def parameters(self) -> dict[str, float]:
        """Return the mechanism's numbers, for the ledger."""
        return {"size": float(self.size), "epsilon": self.epsilon}

    def figures(self) -> dict[str, float]:
        """Return its figures for display, by their names in its label's texts."""
        return {"size": self.size, "deviation": self.grid_scale / 2**GRID_BITS * 2**0.5}


def histogram(prototypes: NDArray[np.float32], clicks: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return shares [K] of the clicks [H, D] by nearest prototype [K, D], adding up to 1.

    If none of a reader's clicks has a vector, the first topic gets everything, as with `code.nearest`: the server
    chooses which articles have vectors, and must not learn anything from who reports.
    """
    nearest = np.argmax(clicks @ prototypes.T, axis=1) if len(clicks) else np.zeros(1, dtype=np.intp)
    return np.bincount(nearest, minlength=len(prototypes)) / len(nearest)

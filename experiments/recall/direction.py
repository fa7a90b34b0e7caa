"""A random direction biased towards the reader's (PrivUnit, Bhowmick et al. 2018), the closest rival of `code`.

No device offers it: it does no better than `code`, and its guarantee is that of an ideal distribution. Its mechanism
and its posterior, by which lists are made of its reports, serve only the comparison of report modes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from backend.recall.posterior import normalised
from device_app.privacy.noise_sources import NoiseSource

Floats = NDArray[np.float64]

DIRECTIONS = 8
GRID = 2.0**-20
SPLITS = 400


@dataclass(frozen=True)
class PrivUnit:
    """A unit vector v of R^d: with probability p from the cap <v, u> >= gamma around the reader's u, else from outside.

    epsilon: eps of one report. dimensions: d = 8. p and gamma are those with ln(p / (1 - p)) + ln((1 - q) / q) = eps,
    q the share of the sphere in the cap, for which E<v, u> is greatest (Bhowmick et al. 2018; Asi, Feldman and Talwar,
    ICML 2022, for the choice).

    Formal guarantees, in pure local differential privacy, for any two readers whatsoever: the density of what is sent
    is p / q inside the cap and (1 - p) / (1 - q) outside, so one report costs eps, for the ideal distribution.

    What this one lacks, unlike `code`: the distribution is continuous and sampled with doubles. The coin with chance p
    is drawn from 53 bits, the direction by inverse distribution functions of uniforms of 53 bits, and what is sent is
    rounded to a grid of 2^-20, which is post-processing. No proof covers the low bits, so the guarantee is that of the
    ideal distribution. S fresh reports cost S eps. Not covered: that and when a reader reports, and from which address.
    """

    epsilon: float
    dimensions: int = DIRECTIONS

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and 2.0**-10 <= self.epsilon <= 64):
            raise ValueError(f"epsilon must be 2^-10 to 64; got {self.epsilon}")
        if self.dimensions < 2:
            raise ValueError(f"dimensions must be 2 or more; got {self.dimensions}")

    @property
    def cap_chance(self) -> float:
        """p: the chance that the vector sent is from the cap."""
        return _best(self.epsilon, self.dimensions)[0]

    @property
    def cap_edge(self) -> float:
        """gamma: the cap holds the v with <v, u> >= gamma."""
        return _best(self.epsilon, self.dimensions)[1]

    @property
    def cap_share(self) -> float:
        """q: the share of the sphere that the cap holds."""
        return float(cap_share(self.cap_edge, self.dimensions))

    @property
    def mean_cosine(self) -> float:
        """E<v, u>: dividing by it makes v an unbiased estimate of u."""
        return mean_cosine(self.cap_chance, self.cap_edge, self.dimensions)

    def release(self, direction: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Directions [n, d] or [d], of any positive length, to unit vectors of the same shape. See the class.

        Raises ValueError for another width, or a direction that is zero or not finite.
        """
        rows = np.atleast_2d(direction).astype(np.float64)
        if rows.shape[1] != self.dimensions or not np.isfinite(rows).all():
            raise ValueError(f"direction has shape {direction.shape} or values not finite; expected {self.dimensions}")
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not lengths.all():
            raise ValueError("direction is zero: nothing is released")
        unit = rows / lengths
        n, d = unit.shape
        uniform = _uniform(source, n * (d + 2)).reshape(n, d + 2)
        inside, depth, normal = uniform[:, 0] < self.cap_chance, uniform[:, 1], ndtri(uniform[:, 2:])
        q = self.cap_share
        # Quantile of <v, u> under the uniform distribution: the cap is its top q, the rest the bottom 1 - q.
        quantile = np.where(inside, 1 - q * depth, (1 - q) * depth)
        cosine = 2 * betaincinv((d - 1) / 2, (d - 1) / 2, quantile) - 1
        sideways = normal - (normal * unit).sum(axis=1, keepdims=True) * unit
        sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
        sent = cosine[:, None] * unit + np.sqrt(np.maximum(0.0, 1 - cosine**2))[:, None] * sideways
        rounded: NDArray[np.float64] = np.round(sent / GRID) * GRID
        return rounded.reshape(direction.shape)


def direction_weights(
    shares: Floats, directions: Floats, vector: Floats, *, edge: float, epsilon: float, cosines: Floats
) -> Floats:
    """Weights after PrivUnit: a vector v with <v, u> >= edge is e^eps times as likely as another, u being the reader's.

    directions [K, d] are the prototypes in the report's space and vector [d] the report, all of length 1. A reader's
    direction u differs from its prototype: it lies at one of the cosines c (below 1, equally likely) and in any
    direction, u = c v_k + sqrt(1 - c^2) w with w uniform on the sphere orthogonal to v_k. So P(<v, u> >= edge | k) is a
    mean share of spheres in caps; a cap around the prototype itself would contain no reports at a large epsilon.
    """
    along = np.clip(directions @ vector, -1.0, 1.0)[:, None]  # [K, 1]
    across = np.sqrt((1 - cosines**2) * np.maximum(1 - along**2, 1e-12))  # [K, c]
    inside = cap_share((edge - cosines * along) / across, directions.shape[1] - 1).mean(axis=1)
    return normalised(shares * (math.exp(-epsilon) + (1 - math.exp(-epsilon)) * inside))


def cap_share(edge: Floats | float, dimensions: int) -> Floats:
    """q: the share of the unit sphere of R^d with <v, u> >= edge, elementwise; edges may lie beyond -1 and 1."""
    half = (dimensions - 1) / 2
    return np.asarray(betainc(half, half, np.clip((1 - np.asarray(edge)) / 2, 0.0, 1.0)), dtype=np.float64)


def mean_cosine(chance: float, edge: float, dimensions: int) -> float:
    """E<v, u> of a vector that is from the cap with this chance, else from the rest."""
    half = (dimensions - 1) / 2
    q = float(cap_share(edge, dimensions))
    # The integral of t (1 - t^2)^(half - 1) over [edge, 1], over that of (1 - t^2)^(half - 1) over [-1, 1].
    moment = (1 - edge**2) ** half / (2 * half) / (math.sqrt(math.pi) * math.gamma(half) / math.gamma(half + 0.5))
    return float(moment * (chance / q - (1 - chance) / (1 - q)))


@lru_cache(maxsize=32)
def _best(epsilon: float, dimensions: int) -> tuple[float, float]:
    """p and gamma of the greatest mean cosine, over splits of epsilon between the coin and the cap's share."""
    half = (dimensions - 1) / 2
    found: list[tuple[float, float, float]] = []
    for at in range(SPLITS):
        coin = epsilon * at / SPLITS
        chance = 1 / (1 + math.exp(-coin))
        share = 1 / (1 + math.exp(epsilon - coin))
        edge = 1 - 2 * float(betaincinv(half, half, share))
        found.append((mean_cosine(chance, edge, dimensions), chance, edge))
    _, chance, edge = max(found)
    return chance, edge


def _uniform(source: NoiseSource, n: int) -> NDArray[np.float64]:
    """n uniforms of 53 bits, none of them 0 or 1."""
    words = np.frombuffer(source.uniform_bits(8 * n), dtype="<u8") >> np.uint64(11)
    return (words.astype(np.float64) + 0.5) * 2.0**-53

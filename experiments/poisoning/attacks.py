"""What liars of a cohort add to their masked vectors: nobody checks one vector, so anything that passes for a sum.

An attacker knows all that is public: the weights, the clip, the noise, how many take part, the limits of the server. It
is also told the honest gradient of the round, which it could estimate from readers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.protections.sum_bounds import noise_deviation, noise_length
from device_app.wire.protections import SecureSum

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """What an attacker goes by.

    Args:
        weights: the model [d], as an update is laid out.
        honest: the mean gradient [d] of the honest devices.
        features: which of the d are feature weights.
        protection: of the sum.
        survivors: in the sum that the lie goes into.
        liars: how many of them lie together.
    """

    weights: Vector
    honest: Vector
    features: NDArray[np.bool_]
    protection: SecureSum
    survivors: int
    liars: int

    @property
    def longest(self) -> float:
        """A length that passes more often than not: what the bound leaves beside noise of its usual length."""
        deviation, d = noise_deviation(self.protection, self.survivors), len(self.weights)
        limit = self.survivors * self.protection.clip + noise_length(deviation, d)
        return float(np.sqrt(max(0.0, limit**2 - deviation**2 * d)) * 0.9)


def sign_flip(known: Known) -> Vector:
    """Each liar sends the honest direction with the other sign, at the full clip: what no check of any kind can see."""
    return -known.liars * known.protection.clip * _unit(known.honest)


def boosted(known: Known) -> Vector:
    """The same as long as the bound lets pass."""
    return -known.longest * _unit(known.honest)


def turned_features(known: Known) -> Vector:
    """Towards feature weights of the other sign, as long as the bound lets pass; a step goes against the gradient."""
    return known.longest * _unit(np.where(known.features, known.weights, 0.0))


def shrunk(known: Known) -> Vector:
    """Towards a model of zeros, as long as the bound lets pass."""
    return known.longest * _unit(known.weights)


def huge(known: Known) -> Vector:
    """1e30 everywhere, as far as a ring has it: refused, so that rounds come to nothing."""
    return np.full(len(known.weights), 1e4)


Attack = Callable[[Known], Vector]
ATTACKS: Final[Mapping[str, Attack]] = {
    "sign flip at the clip": sign_flip,
    "sign flip at the bound": boosted,
    "feature weights turned": turned_features,
    "weights to zero": shrunk,
    "forged 1e30": huge,
}


def _unit(vector: Vector) -> Vector:
    return vector / max(float(np.linalg.norm(vector)), 1e-30)

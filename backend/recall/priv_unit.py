"""The distribution of PrivUnit's reports, as far as the server needs it to decode: where its cap ends.

The device has its own copy in privacy/mechanisms/direction.py, from which the server may not import; a test holds the
two together. Both follow Bhowmick et al. 2018 with the split of Asi, Feldman and Talwar (ICML 2022).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

SPLITS = 400


@lru_cache(maxsize=32)
def cap_edge(epsilon: float, dimensions: int) -> float:
    """gamma: a vector v is e^eps times as likely where <v, u> >= gamma as elsewhere, u being the reader's direction.

    Of all splits of epsilon between the coin and the cap's share, the one of the greatest mean cosine.
    """
    half = (dimensions - 1) / 2
    best = (-math.inf, 0.0)
    for at in range(SPLITS):
        coin = epsilon * at / SPLITS
        chance = 1 / (1 + math.exp(-coin))
        share = 1 / (1 + math.exp(epsilon - coin))
        edge = 1 - 2 * float(betaincinv(half, half, share))
        best = max(best, (mean_cosine(chance, edge, dimensions), edge))
    return best[1]


def cap_share(edge: NDArray[np.float64] | float, dimensions: int) -> NDArray[np.float64]:
    """The share of the unit sphere of R^d with <v, u> >= edge, elementwise; edges may lie beyond -1 and 1."""
    half = (dimensions - 1) / 2
    return np.asarray(betainc(half, half, np.clip((1 - np.asarray(edge)) / 2, 0.0, 1.0)), dtype=np.float64)


def mean_cosine(chance: float, edge: float, dimensions: int) -> float:
    """E<v, u> of a vector that is from the cap with this chance, else from the rest of the sphere."""
    half = (dimensions - 1) / 2
    share = float(cap_share(edge, dimensions))
    area = math.sqrt(math.pi) * math.gamma(half) / math.gamma(half + 0.5)
    moment = (1 - edge**2) ** half / (2 * half) / area
    return float(moment * (chance / share - (1 - chance) / (1 - share)))

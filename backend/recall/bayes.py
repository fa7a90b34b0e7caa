"""What a report says of its reader, as weights of prototypes (docs/decisions/018).

Every decoder here is Bayes' rule over K prototypes: w_k ~ pi_k P(report | a reader of prototype k). The list is that of
the mixture, score(i) = log sum_k w_k P(i | k) with P(i | k) ~ pop(i) exp(s <v_k, d_i>), so a report that says little
gives everybody's list and never a worse one.

Symbols: K prototypes v_k [K, D], pi [K] the share of readers at each, s the sharpness, n news d_i [n, D].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.recall.priv_unit import cap_share

Floats = NDArray[np.float64]


def code_weights(shares: Floats, epsilon: float, code: int) -> Floats:
    """After k-ary randomised response: w_k ~ pi_k (e^eps if k = code else 1). epsilon may be infinite.

    The weights add up to 1. epsilon = 0 gives pi whatever the code, infinity the code alone.
    """
    return subset_weights(shares, epsilon, (code,))


def subset_weights(shares: Floats, epsilon: float, topics: Sequence[int]) -> Floats:
    """After subset selection: w_k ~ pi_k (e^eps if k is in the set else 1)."""
    named = np.zeros(len(shares), dtype=bool)
    named[list(topics)] = True
    if math.isinf(epsilon):
        return _normalised(np.where(named, shares, 0.0))
    # e^-eps on the others instead of e^eps on the named: the same ratio, and it can't overflow.
    return _normalised(np.where(named, shares, shares * math.exp(-epsilon)))


def topics_weights(shares: Floats, epsilon: float, noisy: Floats, typical: Floats) -> Floats:
    """After Laplace noise of scale 2 / eps on a histogram over the prototypes.

    noisy is [K]; typical [K, K] has as row k the histogram of a reader of prototype k: w_k ~ pi_k exp(-eps |noisy -
    typical_k|_1 / 2).
    """
    distances = np.abs(noisy[None, :] - typical).sum(axis=1)  # [K]
    exponents = -epsilon / 2 * (distances - distances.min())
    return _normalised(shares * np.exp(exponents))


def typical_histograms(prototypes: NDArray[np.float32], main_share: float) -> Floats:
    """Histograms [K, K] for want of data: `main_share` of the clicks at the reader's prototype, the rest even."""
    K = len(prototypes)
    histograms = np.full((K, K), (1 - main_share) / (K - 1))
    np.fill_diagonal(histograms, main_share)
    return histograms


def direction_weights(
    shares: Floats, directions: Floats, vector: Floats, *, edge: float, epsilon: float, cosines: Floats
) -> Floats:
    """After PrivUnit: a vector v with <v, u> >= edge is e^eps times as likely as another, u being the reader's.

    directions [K, d] are the prototypes in the report's space and vector [d] the report, all of length 1. A reader
    isn't the prototype but lies about it, at one of these cosines c (below 1, equally likely) and in any direction:
    u = c v_k + sqrt(1 - c^2) w with w even on the sphere orthogonal to v_k. So P(<v, u> >= edge | k) is a mean share of
    spheres in caps; a cap about the prototype itself would be empty of reports at a large epsilon.
    """
    along = np.clip(directions @ vector, -1.0, 1.0)[:, None]  # [K, 1]
    across = np.sqrt((1 - cosines**2) * np.maximum(1 - along**2, 1e-12))  # [K, c]
    inside = cap_share((edge - cosines * along) / across, directions.shape[1] - 1).mean(axis=1)
    return _normalised(shares * (math.exp(-epsilon) + (1 - math.exp(-epsilon)) * inside))


def log_probabilities(
    prototypes: NDArray[np.float32], vectors: NDArray[np.float32], log_popularity: NDArray[np.float32], sharpness: float
) -> Floats:
    """log P(i | k) [K, n] over a pool held whole: the oracle of the lists, and quick enough for thousands of news."""
    scores = sharpness * (prototypes @ vectors.T).astype(np.float64) + log_popularity  # [K, n]
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1)[:, None], dtype=np.float64)


def _normalised(weights: Floats) -> Floats:
    total = weights.sum()
    if not total > 0:
        raise ValueError("weights: no prototype that the report allows has a share of the readers")
    return np.asarray(weights / total, dtype=np.float64)

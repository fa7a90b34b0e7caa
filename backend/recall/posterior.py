"""Decodes noisy reports by Bayes' rule: posteriors over prototypes and scores.

Reports about prototypes (docs/decisions/019): over K prototypes, w_k ~ pi_k P(report | a reader of prototype k). By
these weights the prototypes are aggregated to the vector that is searched (`code_lists.py`).

Reports of scores on the basic interests: the paper decodes noisy scores as if they were exact. At any realistic epsilon
its lists then fall far below the list by popularity: on MIND by 34 to 37 points of R@400, since r^ is mostly noise.
Here scores are first replaced by their mean given the report, which is near the usual scores if the noise is large, and
near the report if it is small. READINGS has both.

Symbols: K prototypes v_k [K, D], pi [K] the share of readers at each, C channels, B basis size, D dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from protocol.recall import onto_l1_ball

Floats = NDArray[np.float64]


def code_weights(shares: Floats, epsilon: float, code: int) -> Floats:
    """Weights after k-ary randomised response: w_k ~ pi_k (e^eps if k = code else 1).

    The weights add up to 1. epsilon may be infinite: epsilon = 0 gives pi for any code, infinity the code alone.
    """
    return subset_weights(shares, epsilon, (code,))


def subset_weights(shares: Floats, epsilon: float, topics: Sequence[int]) -> Floats:
    """Weights after subset selection: w_k ~ pi_k (e^eps if k is in the set else 1)."""
    named = np.zeros(len(shares), dtype=bool)
    named[list(topics)] = True
    if math.isinf(epsilon):
        return normalised(np.where(named, shares, 0.0))
    # e^-eps on the others instead of e^eps on the set: the same ratio, and it can't overflow.
    return normalised(np.where(named, shares, shares * math.exp(-epsilon)))


def topics_weights(shares: Floats, epsilon: float, noisy: Floats, typical: Floats) -> Floats:
    """Weights after Laplace noise of scale 2 / eps on a histogram over the prototypes.

    noisy is [K]; row k of typical [K, K] is the histogram of a reader of prototype k: w_k ~ pi_k exp(-eps |noisy -
    typical_k|_1 / 2).
    """
    distances = np.abs(noisy[None, :] - typical).sum(axis=1)  # [K]
    exponents = -epsilon / 2 * (distances - distances.min())
    return normalised(shares * np.exp(exponents))


def typical_histograms(prototypes: NDArray[np.float32], main_share: float) -> Floats:
    """Histograms [K, K] assumed without data: `main_share` of the clicks at the reader's prototype, the rest
    uniform."""
    K = len(prototypes)
    histograms = np.full((K, K), (1 - main_share) / (K - 1))
    np.fill_diagonal(histograms, main_share)
    return histograms


def normalised(weights: Floats) -> Floats:
    """The weights divided by their sum. Raises ValueError if none is above 0."""
    total = weights.sum()
    if not total > 0:
        raise ValueError("weights: every prototype that the report allows has a share of 0")
    return np.asarray(weights / total, dtype=np.float64)


CHANNEL_LENGTH = 0.75
"""Length of a channel's vector, which is a mean of clicks of length 1; the median of MIND's readers."""
LEAST_VARIANCE = 1e-9


class ScoreReading(Protocol):
    """Estimates scores from noisy ones before the softmax."""

    def given(self, noisy: Floats) -> Floats:
        """Map noisy scores [C, B] to the scores that are aggregated, [C, B]."""


class RawScores:
    """The paper's reading: noisy scores unchanged (Uni-FedRec, "Privacy Protection")."""

    def given(self, noisy: Floats) -> Floats:
        """The same scores."""
        return noisy


@dataclass(frozen=True)
class ScorePrior:
    """Posterior mean of scores under a linear estimator.

    usual [B]: mean of scores before noise. trust [B, B]: how much of a deviation remains after correcting for noise.
    """

    usual: Floats
    trust: Floats

    @classmethod
    def of(cls, keys: NDArray[np.float32], topics: NDArray[np.float32], bounded: Bound, noise_scale: float) -> Self:
        """Build from the scores that channels on each of these topics [B, D] have on the keys [B, D], all equally
        likely.

        bounded is what the device does to scores before it adds Laplace noise of this scale. The mean given the report
        is that of a normal distribution with the same mean and covariance: linear, and of least squared error among
        linear estimators.
        """
        lengths = np.maximum(np.linalg.norm(topics, axis=1, keepdims=True), 1e-12)
        typical = bounded((CHANNEL_LENGTH * topics / lengths).astype(np.float64) @ keys.T)  # [B topics, B]
        usual = typical.mean(axis=0)
        apart = typical - usual
        spread = apart.T @ apart / len(typical) + LEAST_VARIANCE * np.eye(len(keys))
        noise = 2 * noise_scale**2 * np.eye(len(keys))
        return cls(usual, np.linalg.solve(spread + noise, spread).T)

    def given(self, noisy: Floats) -> Floats:
        """Map noisy scores [C, B] to the mean of the scores behind them, [C, B]."""
        return np.asarray(self.usual + (noisy - self.usual) @ self.trust.T, dtype=np.float64)


Bound = Callable[[Floats], Floats]
ReadingOf = Callable[[NDArray[np.float32], NDArray[np.float32], Bound, float], ScoreReading]
"""(keys, topics, bounded, noise_scale), as `ScorePrior.of` takes them."""
READINGS: Mapping[str, ReadingOf] = {"posterior": ScorePrior.of, "softmax": lambda *_: RawScores()}
"""Readings by their name in the setting `score_decoder`."""


def clipped(clip: float) -> Bound:
    """The bound of `basis_laplace`: clip every score to [-clip, clip]."""
    return lambda scores: np.clip(scores, -clip, clip)


def within_l1(radius: float) -> Bound:
    """The bound of `basis_l1`: project every channel onto the L1 ball."""
    return lambda scores: np.stack([onto_l1_ball(row, radius) for row in scores])

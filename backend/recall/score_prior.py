"""What scores on the basic interests usually are, so that noise in them isn't taken for interests.

The paper decodes noisy scores as if they were exact. At any honest price its lists then fall far below the popular one:
on MIND by 34 to 37 points of R@400, since r^ is mostly noise. Here scores are first replaced by their mean given the
report, which is near the usual scores where the noise is large, and the report where it is small. READINGS has both.

Symbols: C channels, B basis size, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from device_app.wire.recall import onto_l1_ball

Floats = NDArray[np.float64]

CHANNEL_LENGTH = 0.75
"""Of a channel's vector, a mean of clicks of length 1; the median of MIND's readers."""
LEAST_VARIANCE = 1e-9


class ScoreReading(Protocol):
    """What noisy scores are taken for before the softmax."""

    def given(self, noisy: Floats) -> Floats:
        """Noisy scores [C, B] to those that are aggregated, [C, B]."""
        ...


class AsSent:
    """The paper's: noisy scores as they are (Uni-FedRec, "Privacy Protection")."""

    def given(self, noisy: Floats) -> Floats:
        """The same scores."""
        return noisy


@dataclass(frozen=True)
class ScorePrior:
    """usual [B]: the mean of scores before noise. trust [B, B]: what a deviation is worth once noise is in it."""

    usual: Floats
    trust: Floats

    @classmethod
    def of(cls, keys: NDArray[np.float32], topics: NDArray[np.float32], bounded: Bound, noise_scale: float) -> Self:
        """From what channels on one of these topics [B, D] would score on the keys [B, D], all topics alike.

        bounded is what the device does to scores before it adds Laplace noise of this scale. The mean given the report
        is that of a normal distribution with the same mean and covariance: linear, and of least squared error among
        linear ones.
        """
        lengths = np.maximum(np.linalg.norm(topics, axis=1, keepdims=True), 1e-12)
        typical = bounded((CHANNEL_LENGTH * topics / lengths).astype(np.float64) @ keys.T)  # [B topics, B]
        usual = typical.mean(axis=0)
        apart = typical - usual
        spread = apart.T @ apart / len(typical) + LEAST_VARIANCE * np.eye(len(keys))
        noise = 2 * noise_scale**2 * np.eye(len(keys))
        return cls(usual, np.linalg.solve(spread + noise, spread).T)

    def given(self, noisy: Floats) -> Floats:
        """Noisy scores [C, B] to the mean of the scores behind them, [C, B]."""
        return np.asarray(self.usual + (noisy - self.usual) @ self.trust.T, dtype=np.float64)


Bound = Callable[[Floats], Floats]
ReadingOf = Callable[[NDArray[np.float32], NDArray[np.float32], Bound, float], ScoreReading]
"""(keys, topics, bounded, noise_scale), as `ScorePrior.of` takes them."""
READINGS: Mapping[str, ReadingOf] = {"posterior": ScorePrior.of, "softmax": lambda *_: AsSent()}
"""By the name that the setting `score_decoder` has for them."""


def clipped(clip: float) -> Bound:
    """`basis_laplace`: every score to [-clip, clip]."""
    return lambda scores: np.clip(scores, -clip, clip)


def within_l1(radius: float) -> Bound:
    """`basis_l1`: every channel onto the L1 ball."""
    return lambda scores: np.stack([onto_l1_ball(row, radius) for row in scores])

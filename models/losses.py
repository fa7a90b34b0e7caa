"""Training losses."""

from __future__ import annotations

from torch import Tensor


def info_nce(scores: Tensor) -> Tensor:
    """(K+1)-way cross entropy with the positive in column 0, mean over rows (ALGORITHMS 1.5).

    scores: [b, 1 + K] -> []. Written with log_softmax: `cross_entropy` exports gradients b times too large.
    """
    return -scores.log_softmax(dim=-1)[:, 0].mean()

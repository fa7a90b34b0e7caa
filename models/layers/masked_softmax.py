"""A softmax that never sees padding and never gives NaN."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis of `scores`, over the entries where `mask` is not 0.

    `mask` broadcasts to the shape of `scores`. Weights of a row sum to 1; a row that is masked entirely gives zeros
    (ALGORITHMS 1.1), and zero gradients. Stable for scores of any finite size.
    """
    kept = mask != 0
    lowest = torch.finfo(scores.dtype).min  # finite on purpose: a row of -inf would be NaN
    return torch.softmax(torch.where(kept, scores, lowest), dim=-1) * kept.to(scores.dtype)

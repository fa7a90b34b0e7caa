"""Word vectors by word id; id 0 is padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

PADDING = 0


class WordEmbedding(nn.Module):
    """A table of word vectors [V, E]. Row 0 is padding: read as zeros, whatever stands there, and never trained.

    So noise that reaches the whole table, such as a protected update's, can't turn padding into a word. The start is
    N(0, 1), as FINDING's for words without a pretrained vector.

    Args:
        vocabulary: V, padding and the unknown word included.
        dim: E.
        trainable: FedNewsRec freezes its table; it stays a parameter, so that a release carries it.
    """

    def __init__(self, vocabulary: int, dim: int, *, trainable: bool = True) -> None:
        super().__init__()
        if vocabulary < 2 or dim < 1:
            raise ValueError(f"vocabulary must be at least 2 and dim at least 1, got {vocabulary} and {dim}")
        self.weight = nn.Parameter(torch.randn(vocabulary, dim), requires_grad=trainable)
        with torch.no_grad():
            self.weight[PADDING] = 0

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """words int64 [..., L] -> vectors [..., L, E] and mask [..., L]. Raises ValueError for an unknown id."""
        if words.dtype != torch.int64:
            raise ValueError(f"words {list(words.shape)} must be int64, got {words.dtype}")
        try:
            vectors = embedding(words, self.weight)  # [..., L, E]
        except IndexError as outside:
            raise ValueError(
                f"words {list(words.shape)} must be ids from 0 to {len(self.weight) - 1} of this vocabulary, got "
                f"{int(words.min())} to {int(words.max())}"
            ) from outside
        mask = (words != PADDING).to(vectors.dtype)  # [..., L]
        return vectors * mask.unsqueeze(-1), mask

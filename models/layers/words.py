"""Layers over words (FedNewsRec): a table of word vectors, and a convolution over them.

Word id 0 is padding. The convolution is one linear map of shifted copies, because `nn.Conv1d` exports no backward pass.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from models.layers.real_rows import by_row
from models.shapes import expect_shape

PADDING = 0


class WordEmbedding(nn.Module):
    """A table of word vectors [V, E]. Row 0 is padding: it is read as zeros and never trained.

    Noise that a protected update adds to the whole table therefore can't turn padding into a word. The start is N(0,
    1), as FINDING uses for words without a pretrained vector.

    Args:
        vocabulary: V, including padding and the unknown word.
        dim: E.
    """

    def __init__(self, vocabulary: int, dim: int) -> None:
        super().__init__()
        if vocabulary < 2 or dim < 1:
            raise ValueError(f"vocabulary must be at least 2 and dim at least 1, got {vocabulary} and {dim}")
        self.weight = nn.Parameter(torch.randn(vocabulary, dim))
        with torch.no_grad():
            self.weight[PADDING] = 0

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """words int64 [..., L] -> vectors [..., L, E] and mask [..., L].

        Raises ValueError for an unknown id.
        """
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


class TextCnn(nn.Module):
    """relu(W [x_{t-1}; x_t; x_{t+1}] + b) with same padding, so L stays L.

    Padding words count as zeros, as positions beyond the text do, so appended padding changes nothing. FedNewsRec's
    code uses valid padding, which would lose the first and last word of every title.

    Args:
        dim: size of a word vector.
        filters: F.
        width: number of words a filter covers, odd.
    """

    def __init__(self, dim: int, filters: int, width: int = 3) -> None:
        super().__init__()
        if dim < 1 or filters < 1:
            raise ValueError(f"dim and filters must be at least 1, got {dim} and {filters}")
        if width < 1 or width % 2 == 0:
            raise ValueError(f"width must be odd and positive, got {width}")
        self.width = width
        self.dim = dim
        self.window = nn.Linear(width * dim, filters)
        bound = math.sqrt(6 / (width * (dim + filters)))  # Xavier's, as a convolution counts its fans
        nn.init.uniform_(self.window.weight, -bound, bound)
        nn.init.zeros_(self.window.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Word vectors [n, L, E] and their mask [n, L] -> [n, L, F]; padding words give zeros."""
        expect_shape("x", x, "n", "L", self.dim)
        expect_shape("mask", mask, *x.shape[:2])
        real = mask.unsqueeze(-1)  # [n, L, 1]
        length, side = x.shape[1], self.width // 2
        padded = pad(x * real, (0, 0, side, side))  # [n, L + width - 1, E]
        shifted = torch.cat([padded[:, t : t + length] for t in range(self.width)], dim=-1)  # [n, L, width E]
        (words,) = by_row(lambda rows: (torch.relu(self.window(rows)),), shifted, mask)
        return words * real  # [n, L, F]

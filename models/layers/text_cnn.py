"""A convolution over words (FedNewsRec), as one linear map of shifted copies: `nn.Conv1d` exports no backward."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from models.layers.real_rows import by_row
from models.shapes import expect_shape


class TextCnn(nn.Module):
    """relu(W [x_{t-1}; x_t; x_{t+1}] + b) with same padding, so L stays L.

    Padding words count as zeros, as the ends of the text do: appending padding changes nothing. FedNewsRec's code uses
    valid padding, which would lose the first and last word of every title.

    Args:
        dim: size of a word vector.
        filters: F.
        width: words a filter sees, odd.
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

"""Masked softmax, additive attention and multi-head self-attention (NRMS, Wu et al. 2019).

All of them ignore padding. Self-attention has no output projection, residual, norm or positions. It is written out by
hand because the fused kernels have no backward pass that exports to ONNX.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from models.layers.real_rows import by_row
from models.shapes import expect_shape


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis of `scores`, over the entries where `mask` is not 0.

    `mask` broadcasts to the shape of `scores`. The weights of a row sum to 1; a fully masked row has zero weights and
    zero gradients (docs/decisions/029). Stable for scores of any finite size.
    """
    kept = mask != 0
    lowest = torch.finfo(scores.dtype).min  # finite on purpose: a row of -inf would be NaN
    return torch.softmax(torch.where(kept, scores, lowest), dim=-1) * kept.to(scores.dtype)


class AdditiveAttention(nn.Module):
    """e_t = q . tanh(W x_t + b) + c;  a = softmax(e) over real rows;  out = sum_t a_t x_t.

    A dense scorer of two layers. Its last bias c does not affect the weights and has no gradient; it is kept because
    the papers count it (561,601 and 244,993 parameters).
    """

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        if dim < 1 or hidden_dim < 1:
            raise ValueError(f"dim and hidden_dim must be at least 1, got {dim} and {hidden_dim}")
        self.hidden = nn.Linear(dim, hidden_dim)
        self.query = nn.Linear(hidden_dim, 1)
        for layer in (self.hidden, self.query):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def start_uniform(self) -> None:
        """Set q = 0, so that all real rows have the same weight."""
        nn.init.zeros_(self.query.weight)
        nn.init.zeros_(self.query.bias)

    def weights(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attention weights over rows.

        x: [b, H, D]; mask: [b, H] for one pooling of each sequence, or [b, C, H] for C poolings of the same rows.
        Returns the shape of `mask`.
        """
        expect_shape("x", x, "b", "H", self.hidden.in_features)
        expect_shape("mask", mask, x.shape[0], *(["C"] if mask.dim() == x.dim() else []), x.shape[1])
        real = mask.amax(dim=1) if mask.dim() == x.dim() else mask
        (scores,) = by_row(self._scores, x, real)
        scores = scores.squeeze(-1)  # [b, H]
        if mask.dim() == x.dim():
            scores = scores.unsqueeze(-2)  # [b, 1, H]
        return masked_softmax(scores, mask)

    def _scores(self, rows: Tensor) -> tuple[Tensor]:
        return (self.query(self.hidden(rows).tanh()),)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Pool rows. x: [b, H, D]; mask: [b, H] -> [b, D], or [b, C, H] -> [b, C, D]. All-masked -> zeros."""
        weights = self.weights(x, mask)
        if mask.dim() == x.dim():
            return weights @ x  # [b, C, D]
        return (weights.unsqueeze(-2) @ x).squeeze(-2)  # [b, D]

    def of_few(self, x: Tensor, mask: Tensor) -> Tensor:
        """`forward` for x [b, H, D] and mask [b, H], computing the scores of masked rows too.

        For few rows whose mask is not an input of the graph: such a graph may not read the number of real rows
        (docs/decisions/031).
        """
        expect_shape("x", x, "b", "H", self.hidden.in_features)
        expect_shape("mask", mask, *x.shape[:2])
        (scores,) = self._scores(x)
        weights = masked_softmax(scores.squeeze(-1), mask)
        return (weights.unsqueeze(-2) @ x).squeeze(-2)  # [b, D]


# Hides padding from every softmax; halved, so that adding a logit stays finite.
LOWEST = {dtype: torch.finfo(dtype).min / 2 for dtype in (torch.float32, torch.float64)}


class SelfAttention(nn.Module):
    """Per head O = softmax(X Wq (X Wk)^T / sqrt(d)) X Wv; the heads are concatenated to D = h * d.

    Args:
        query, key, value: linear maps Din -> h * d, with or without bias.
        heads: h.

    Permutation equivariant: the order of the rows does not matter.
    """

    def __init__(self, query: nn.Linear, key: nn.Linear, value: nn.Linear, heads: int) -> None:
        super().__init__()
        width = value.out_features
        if heads < 1 or width % heads:
            raise ValueError(f"heads must divide the width, got {heads} heads for width {width}")
        if query.out_features != width or key.out_features != width:
            raise ValueError(
                f"query, key and value must have the same width, got {query.out_features}, {key.out_features}, {width}"
            )
        self.query, self.key, self.value = query, key, value
        self.heads = heads
        self.head_dim = width // heads
        for layer in (query, key, value):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    @torch.no_grad()
    def start_mean(self) -> None:
        """Set V = identity and K = 0: every context is the mean of the real rows.

        Q stays random, so that K can learn.
        """
        self._start_values()
        nn.init.zeros_(self.key.weight)

    @torch.no_grad()
    def start_sharp(self, scale: float) -> None:
        """Set V = identity and Q = K = scale * identity: every context stays near its own row and similar rows.

        The logit of rows i and j in one head is scale^2 <x_i, x_j>_head / sqrt(d).
        """
        self._start_values()
        for layer in (self.query, self.key):
            nn.init.eye_(layer.weight)
            layer.weight.mul_(scale)

    def _start_values(self) -> None:
        if self.value.in_features != self.value.out_features:
            raise ValueError(
                f"an identity start needs equal input and output widths, got {self.value.in_features} and "
                f"{self.value.out_features}"
            )
        nn.init.eye_(self.value.weight)
        for layer in (self.query, self.key, self.value):
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Contexts of the rows.

        Args:
            x: [b, H, Din].
            mask: [b, H], 1 for real rows. Padding gets no attention, and its contexts are zero.

        Returns:
            [b, H, h * d].
        """
        expect_shape("x", x, "b", "H", self.value.in_features)
        expect_shape("mask", mask, *x.shape[:2])
        q, k, v = (self._split(each) for each in by_row(self._projected, x, mask))  # [b, h, H, d]
        hidden = (mask == 0).to(x.dtype)[:, None, None, :] * LOWEST[x.dtype]
        rows: Tensor = _Attend.apply(q, k, v, hidden).transpose(1, 2)  # type: ignore[no-untyped-call]
        contexts: Tensor = rows.flatten(2) * mask.unsqueeze(-1)
        return contexts  # [b, H, h * d]

    def _projected(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.query(rows), self.key(rows), self.value(rows)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, self.head_dim).transpose(1, 2)


class _Attend(torch.autograd.Function):
    """softmax(q k^T + hidden) v, with its gradient written out.

    The gradient of the softmax needs, for each row, the sum of its weights times their gradients. That sum equals the
    dot product of the row's output and the output's gradient (as in FlashAttention): d numbers instead of H. First
    derivatives only.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
        """q, k, v [b, h, H, d], hidden [b, 1, 1, H] -> [b, h, H, d]."""
        # Scaled right after a product: ONNX Runtime scales within it.
        scale = 1 / math.sqrt(q.shape[-1])
        weights = torch.softmax((q @ k.transpose(-1, -2)) * scale + hidden, dim=-1)  # [b, h, H, H]
        rows = weights @ v
        ctx.save_for_backward(q, k, v, weights, rows)
        return rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Gradient of the result [b, h, H, d] -> those of q, k and v."""
        q, k, v, weights, rows = ctx.saved_tensors
        shared = (gradient * rows).sum(dim=-1, keepdim=True)  # [b, h, H, 1]
        logits = weights * (gradient @ v.transpose(-1, -2) - shared)  # their gradient [b, h, H, H]
        scale = 1 / math.sqrt(q.shape[-1])
        return (logits @ k) * scale, (logits.transpose(-1, -2) @ q) * scale, weights.transpose(-1, -2) @ gradient, None

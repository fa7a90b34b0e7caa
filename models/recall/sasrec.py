"""SASRec: causal self-attention over the clicks with learnt positions (Kang, McAuley, ICDM 2018)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.layers.attention import masked_softmax
from models.one_vector import OneVectorModel, require_clicks

POSITION_SPREAD = 0.02


class CausalAttention(nn.Module):
    """softmax(X Wq (X Wk)^T / sqrt(d)) X Wv over each row's visible rows.

    Heads concatenated, no output projection.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads must divide dim, got {heads} heads for dim {dim}")
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        for layer in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """x [b, H, D], visible [b, H, H], 1 where the row attends to the column -> [b, H, D]."""
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        weights = self._weights(q @ k.transpose(-1, -2), visible)  # [b, h, H, H]
        return (weights @ v).transpose(1, 2).flatten(2)

    def of_one(self, row: Tensor, x: Tensor, visible: Tensor) -> Tensor:
        """The output of one row: row [b, 1, D], x [b, H, D], visible [b, 1, H] -> [b, 1, D].

        For one row (q Wk) x^T and (a x) Wv^T are the same products with H times fewer multiplications: the keys and
        values of the other rows are never formed.
        """
        keys, values = (layer.weight.view(self.heads, -1, x.shape[-1]) for layer in (self.key, self.value))  # [h, d, D]
        rows = x.unsqueeze(1)  # [b, 1, H, D]
        weights = self._weights(self._split(self.query(row)) @ keys @ rows.transpose(-1, -2), visible)  # [b, h, 1, H]
        return (weights @ rows @ values.transpose(-1, -2)).transpose(1, 2).flatten(2)

    def _weights(self, products: Tensor, visible: Tensor) -> Tensor:
        return masked_softmax(products / math.sqrt(self.query.out_features // self.heads), visible.unsqueeze(1))

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(rows.shape[0], rows.shape[1], self.heads, -1).transpose(1, 2)  # [b, h, rows, d]


class CausalBlock(nn.Module):
    """x + Attn(norm(x)), then x + W2 relu(W1 norm(x) + b1) + b2 (the paper's section III.B)."""

    def __init__(self, attention: CausalAttention, dim: int) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_norm = nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """x [b, H, D], visible [b, H, H] -> [b, H, D]."""
        return self._fed(x + self.attention(self.attention_norm(x), visible))

    def of_one(self, place: Tensor, x: Tensor, visible: Tensor) -> Tensor:
        """The output of the row at `place` [b, 1, H], one 1 or none: x [b, H, D], visible [b, 1, H] -> [b, 1, D]."""
        seen = self.attention_norm(x)
        return self._fed(place @ x + self.attention.of_one(place @ seen, seen, visible))

    def _fed(self, x: Tensor) -> Tensor:
        fed: Tensor = self.feed(self.feed_norm(x))
        return x + fed


class SasRec(OneVectorModel):
    """u = the state at the newest real click, of blocks over sqrt(D) x_j + position_j, divided by sqrt(D).

    Sizes: 2 blocks of one head, D = 256, feed-forward 256 (the paper's number of blocks and heads; its D is 50).
    Deviations: no dropout (the device's gradient graph is deterministic); candidates are the fixed news vectors rather
    than a trained item table; InfoNCE with K negatives rather than the binary loss with one; trained at the newest
    click
    rather than at each. From the published code, not the paper's text: the factor sqrt(D), without which the norms
    would
    multiply gradients by 16. Ours: u is divided by it, so that it has the size of a news vector as in the other models;
    without the division, one step of Adam moves scores 16 times as far. In the published code but not here: a norm
    after
    the last block. Uncertain: Uni-FedRec reports no sizes.

    Positions count backwards from the newest real click, which is 0. With left padding that is the paper's numbering; a
    mask with gaps or padding on the right gives the same states.

    Args:
        blocks: one or two CausalBlock.
        dim: D.
        clicks_limit: number of positions, the largest H.
    """

    def __init__(self, blocks: Sequence[CausalBlock], dim: int, clicks_limit: int) -> None:
        super().__init__(dim)
        if not blocks or clicks_limit < 1:
            raise ValueError(f"blocks and clicks_limit must be at least 1, got {len(blocks)} and {clicks_limit}")
        self.positions = nn.Parameter(torch.empty(clicks_limit, dim).normal_(std=POSITION_SPREAD))
        self.blocks = nn.ModuleList(blocks)

    def states(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> states [b, H, D], zero at padding.

        A state depends on its own click and those before it, and on the number of real clicks after it.
        """
        x, visible = self._placed(clicks, click_mask)
        for block in self.blocks:
            x = block(x, visible)
        return x * click_mask.unsqueeze(-1)

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros.

        The last block is computed for the newest row only, because the other states are not needed.
        """
        x, visible = self._placed(clicks, click_mask)
        newest = (click_mask * (_clicks_after(click_mask) == 0)).unsqueeze(1)  # [b, 1, H], one 1 or none
        *below, last = self.blocks
        for block in below:
            x = block(x, visible)
        assert isinstance(last, CausalBlock)
        user = last.of_one(newest, x, click_mask.unsqueeze(1)).squeeze(1)
        return user * click_mask.amax(dim=-1, keepdim=True) / math.sqrt(self.dim)

    def _placed(self, clicks: Tensor, click_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Clicks with their positions [b, H, D], and a mask of the clicks that each click sees [b, H, H]."""
        require_clicks(clicks, click_mask, self.dim)
        limit = len(self.positions)
        if limit < clicks.shape[1]:
            raise ValueError(f"clicks must have at most {limit} rows, got {tuple(clicks.shape)}")
        after = _clicks_after(click_mask)
        # A product with one-hot rows: indexing positions would need a scatter in the gradient graph.
        here = (after.unsqueeze(-1) == torch.arange(limit, device=clicks.device)).to(clicks.dtype)  # [b, H, limit]
        # "Not newer" by counting real clicks: a constant triangle would add 10 KB to every graph.
        visible = (after.unsqueeze(1) >= after.unsqueeze(2)) * click_mask.unsqueeze(1)  # [b, H, H]
        return math.sqrt(self.dim) * clicks + here @ self.positions, visible


def _clicks_after(click_mask: Tensor) -> Tensor:
    """The number of real clicks after each row: [b, H] -> [b, H], whole numbers as floats."""
    return click_mask.sum(dim=-1, keepdim=True) - click_mask.cumsum(dim=-1)

"""Self-attention from numbers."""

from __future__ import annotations

from torch import nn

from models.layers.self_attention import SelfAttention


def self_attention(*, dim: int, heads: int, head_dim: int, bias: bool) -> SelfAttention:
    """Multi-head self-attention dim -> heads * head_dim."""
    query, key, value = (nn.Linear(dim, heads * head_dim, bias=bias) for _ in range(3))
    return SelfAttention(query, key, value, heads)

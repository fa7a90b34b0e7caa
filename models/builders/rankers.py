"""Rankers."""

from __future__ import annotations

from models.builders.attention import self_attention
from models.layers.additive_attention import AdditiveAttention
from models.shapes import HEAD_DIM, HEADS
from models.user.cosine import CosineRanker
from models.user.nrms import NrmsUser


def cosine_ranker() -> CosineRanker:
    """The softmax-weighted cosine with beta = 8."""
    return CosineRanker()


def nrms(*, heads: int, head_dim: int, attention_dim: int) -> NrmsUser:
    """An NRMS user model on news vectors of size heads * head_dim."""
    dim = heads * head_dim
    return NrmsUser(
        self_attention(dim=dim, heads=heads, head_dim=head_dim, bias=True), AdditiveAttention(dim, attention_dim)
    )


def nrms_256() -> NrmsUser:
    """NRMS at 16 x 16 heads, hidden 200: 248,977 parameters, at the cosine start."""
    model = nrms(heads=HEADS, head_dim=HEAD_DIM, attention_dim=200)
    model.cosine_start()
    return model

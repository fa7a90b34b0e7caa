"""Recall models."""

from __future__ import annotations

from models.builders.attention import self_attention
from models.layers.additive_attention import AdditiveAttention
from models.recall.basis import BasisRecall
from models.shapes import BASIS_SIZE, HEAD_DIM, HEADS


def basis_recall(*, heads: int, head_dim: int, attention_dim: int, basis_size: int, score_clip: float) -> BasisRecall:
    """A basis recall model of news vectors of size heads * head_dim."""
    dim = heads * head_dim
    return BasisRecall(
        self_attention(dim=dim, heads=heads, head_dim=head_dim, bias=False),
        AdditiveAttention(dim, attention_dim),
        basis_size=basis_size,
        dim=dim,
        score_clip=score_clip,
    )


def uni_fedrec_recall() -> BasisRecall:
    """Uni-FedRec at the paper's sizes, 244,993 parameters: 16 x 16 heads, hidden 128, B = 30, delta = 0.2."""
    return basis_recall(heads=HEADS, head_dim=HEAD_DIM, attention_dim=128, basis_size=BASIS_SIZE, score_clip=0.2)

"""Builders of rankers and of self-attention from their sizes."""

from torch import nn

from models.layers.attention import AdditiveAttention, SelfAttention
from models.shapes import NEWS_DIM, heads_of
from models.user.candidate_attention import FEATURES, CandidateAttention, CosineRanker, FeatureRanker
from models.user.papers import NrmsUser


def self_attention(*, dim: int, heads: int, head_dim: int, bias: bool) -> SelfAttention:
    """Return multi-head self-attention dim -> heads * head_dim."""
    query, key, value = (nn.Linear(dim, heads * head_dim, bias=bias) for _ in range(3))
    return SelfAttention(query, key, value, heads)


def cosine_ranker(dim: int = NEWS_DIM) -> CosineRanker:
    """Return the softmax-weighted cosine with beta = 8."""
    return CosineRanker(dim=dim)


def candidate_attention(dim: int = NEWS_DIM) -> CandidateAttention:
    """Return the small ranker without features at the cosine start: dim + 2 parameters."""
    return CandidateAttention(dim)


def feature_ranker(dim: int = NEWS_DIM, features: tuple[str, ...] = FEATURES) -> FeatureRanker:
    """Return the default ranker at its known start: dim + 6 parameters."""
    model = FeatureRanker(candidate_attention(dim), features)
    model.known_start()
    return model


def nrms(*, heads: int, head_dim: int, attention_dim: int) -> NrmsUser:
    """Return an NRMS user model on news vectors of size heads * head_dim."""
    dim = heads * head_dim
    return NrmsUser(
        self_attention(dim=dim, heads=heads, head_dim=head_dim, bias=True), AdditiveAttention(dim, attention_dim)
    )


def nrms_user(dim: int = NEWS_DIM) -> NrmsUser:
    """Return NRMS with hidden size 200 at the cosine start: 248,977 parameters at 256-d, 16 x 16 heads."""
    heads, head_dim = heads_of(dim)
    model = nrms(heads=heads, head_dim=head_dim, attention_dim=200)
    model.cosine_start()
    return model

"""Builders of recall models."""

from torch import nn

from models.builders.rankers import self_attention
from models.layers.attention import AdditiveAttention
from models.layers.gru import MaskedGru
from models.one_vector import CosineResidual
from models.recall.baselines import CausalAttention, CausalBlock, Ebnr, Huita, Octopus, SasRec, YoutubeNet
from models.recall.basis import BasisRecall, ReportedBasis
from models.shapes import BASIS_SIZE, CLICKS, NEWS_DIM, heads_of
from models.starts import RECALL_HIDDEN

OCTOPUS_CHANNELS = 8  # M
OCTOPUS_PENALTY = 0.01


def basis_recall(*, heads: int, head_dim: int, attention_dim: int, basis_size: int, score_clip: float) -> BasisRecall:
    """Return a basis recall model on news vectors of size heads * head_dim."""
    dim = heads * head_dim
    return BasisRecall(
        self_attention(dim=dim, heads=heads, head_dim=head_dim, bias=False),
        AdditiveAttention(dim, attention_dim),
        basis_size=basis_size,
        dim=dim,
        score_clip=score_clip,
    )


def uni_fedrec_recall(*, basis_size: int = BASIS_SIZE, score_clip: float = 0.2, dim: int = NEWS_DIM) -> BasisRecall:
    """Return Uni-FedRec; at the paper's sizes it has 244,993 parameters.

    The paper's sizes: 16 x 16 heads, hidden 128, B = 30, delta = 0.2.
    """
    heads, head_dim = heads_of(dim)
    return basis_recall(
        heads=heads, head_dim=head_dim, attention_dim=RECALL_HIDDEN, basis_size=basis_size, score_clip=score_clip
    )


def dense_recall(*, dim: int, hidden_dim: int) -> YoutubeNet:
    """Return YoutubeNet with dense ReLU layers dim -> hidden_dim -> dim."""
    return YoutubeNet(nn.Sequential(nn.Linear(dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, dim), nn.ReLU()), dim)


def sequence_recall(*, dim: int, heads: int, blocks: int, clicks_limit: int) -> SasRec:
    """Return SASRec on news vectors of size dim."""
    return SasRec([CausalBlock(CausalAttention(dim, heads), dim) for _ in range(blocks)], dim, clicks_limit)


def youtubenet() -> YoutubeNet:
    """Return YoutubeNet as published, dense ReLU 256-256: 131,584 parameters."""
    return dense_recall(dim=NEWS_DIM, hidden_dim=NEWS_DIM)


def youtubenet_residual() -> CosineResidual:
    """Return YoutubeNet as a correction of the mean click, at the cosine start: 197,120 parameters."""
    return CosineResidual(youtubenet())


def huita() -> Huita:
    """Return HUITA with hidden size 200, at the cosine start: 51,601 parameters."""
    model = Huita(AdditiveAttention(NEWS_DIM, 200))
    model.cosine_start()
    return model


def ebnr() -> Ebnr:
    """Return EBNR as published, GRU 256 with one bias: 393,984 parameters."""
    return Ebnr(MaskedGru(NEWS_DIM, NEWS_DIM))


def ebnr_residual() -> CosineResidual:
    """Return EBNR as a correction of the mean click, at the cosine start: 459,520 parameters."""
    return CosineResidual(ebnr())


def sasrec() -> SasRec:
    """Return SASRec as published, 2 blocks of one head: 671,232 parameters."""
    return sequence_recall(dim=NEWS_DIM, heads=1, blocks=2, clicks_limit=CLICKS)


def sasrec_residual() -> CosineResidual:
    """Return SASRec as a correction of the mean click, at the cosine start: 736,768 parameters."""
    return CosineResidual(sasrec())


def reported_basis() -> ReportedBasis:
    """Return the model of the default reports' 16 basic interests, movable in 8 directions: 128 parameters."""
    return ReportedBasis(16, 8, NEWS_DIM)


def octopus() -> Octopus:
    """Return Octopus with M = 8, at its start: 67,840 parameters."""
    model = Octopus(NEWS_DIM, OCTOPUS_CHANNELS, OCTOPUS_PENALTY)
    model.cosine_start()
    return model

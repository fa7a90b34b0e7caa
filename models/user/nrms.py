"""NRMS user model: self-attention over clicked news, then additive attention (ALGORITHMS 7)."""

from __future__ import annotations

from torch import Tensor, nn

from models.layers.additive_attention import AdditiveAttention
from models.layers.self_attention import SelfAttention
from models.losses import info_nce


class NrmsUser(nn.Module):
    """u = AddAttn(MHSA(clicks)); score(d) = <u, d>.

    Works on news vectors that are given; the news model is elsewhere. Without the papers' dropout: the device's
    gradient graph is deterministic.
    """

    def __init__(self, attention: SelfAttention, pooling: AdditiveAttention) -> None:
        super().__init__()
        self.attention = attention
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Begin where an untrained mean of cosines stands: for unit vectors score(d) = mean_j cos(click_j, d),
        the cosine with the mean click times that mean's length, which does not change the order of candidates."""
        self.attention.start_mean()
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros. Order of the clicks is irrelevant."""
        user: Tensor = self.pooling(self.attention(clicks, click_mask), click_mask)
        return user

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """candidates [b, R, D] -> scores [b, R]."""
        user = self.user_vector(clicks, click_mask)  # [b, D]
        return (candidates @ user.unsqueeze(-1)).squeeze(-1)

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first."""
        return info_nce(self(clicks, click_mask, candidates))

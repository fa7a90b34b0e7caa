"""NRMS user model: self-attention over clicked news, then additive attention (ALGORITHMS 3.1, 7)."""

from __future__ import annotations

from torch import Tensor

from models.layers.additive_attention import AdditiveAttention
from models.layers.self_attention import SelfAttention
from models.user.user_model import UserModel


class NrmsUser(UserModel):
    """u = AddAttn(MHSA(clicks)). The order of clicks is irrelevant; no clicks -> zeros."""

    def __init__(self, attention: SelfAttention, pooling: AdditiveAttention) -> None:
        super().__init__(attention.value.in_features)
        self.attention = attention
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Begin where an untrained mean of cosines stands: for unit vectors score(d) = mean_j cos(click_j, d),
        the cosine with the mean click times that mean's length, which does not change the order of candidates."""
        self.attention.start_mean()
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        user: Tensor = self.pooling(self.attention(clicks, click_mask), click_mask)
        return user

"""NAML user model: additive attention over the clicks (ALGORITHMS 7)."""

from __future__ import annotations

from torch import Tensor

from models.layers.additive_attention import AdditiveAttention
from models.user.user_model import UserModel


class NamlUser(UserModel):
    """u = AddAttn(clicks). The order of clicks is irrelevant; no clicks -> zeros."""

    def __init__(self, dim: int, pooling: AdditiveAttention) -> None:
        super().__init__(dim)
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Uniform attention: for unit vectors score(d) = mean_j cos(click_j, d)."""
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]."""
        user: Tensor = self.pooling(clicks, click_mask)
        return user

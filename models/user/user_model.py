"""What the papers' user models share: a reader is one vector, a score an inner product (ALGORITHMS 1.4, 1.5)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from models.losses import info_nce
from models.recall.one_vector import require_candidates, require_clicks
from models.scoring import inner_products


class UserModel(nn.Module, ABC):
    """score(d) = <u, d> for news vectors that are given; the news model is elsewhere.

    Without the papers' dropout: a device trains with a graph that computes one function.

    Args:
        dim: D.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        self.dim = dim

    @abstractmethod
    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]."""

    @abstractmethod
    def cosine_start(self) -> None:
        """Set the parameters so that scores are those of the frozen news vectors' cosines, and can be learnt from."""

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """candidates [b, R, D] -> scores [b, R]. Raises ValueError for shapes that do not fit."""
        require_clicks(clicks, click_mask, self.dim)
        require_candidates(candidates, self.dim)
        return inner_products(self.user_vector(clicks, click_mask), candidates)

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, mean over the batch."""
        return info_nce(self(clicks, click_mask, candidates))

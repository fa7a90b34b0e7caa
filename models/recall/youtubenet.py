"""YoutubeNet: the mean of the clicks, then a small dense tower (Covington, Adams, Sargin, RecSys 2016)."""

from __future__ import annotations

from torch import Tensor, nn

from models.one_vector import OneVectorModel, mean_click


class YoutubeNet(OneVectorModel):
    """u = tower(mean_j x_j); the order of the clicks is irrelevant; no clicks -> zeros, whatever the tower's biases.

    Sizes (ALGORITHMS 8): dense ReLU 256-256, or no tower, which has nothing to train. Uncertain: Uni-FedRec names the
    baseline and reports no sizes; the original has three layers from 1,024 down, and features other than the watched
    videos (search words, age, sex, country), which readers here do not tell. As there, the last layer has a ReLU, so u
    has no negative coordinate.

    Args:
        tower: D -> D. `nn.Identity()` for none.
        dim: D.
    """

    def __init__(self, tower: nn.Module, dim: int) -> None:
        super().__init__(dim)
        self.tower = tower

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        any_click = click_mask.amax(dim=-1, keepdim=True)  # [b, 1]
        user: Tensor = self.tower(mean_click(clicks, click_mask))
        return user * any_click

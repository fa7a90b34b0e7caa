"""EBNR: a recurrent unit over the clicks (Okura et al., KDD 2017)."""

from __future__ import annotations

from torch import Tensor

from models.layers.gru import MaskedGru
from models.one_vector import OneVectorModel


class Ebnr(OneVectorModel):
    """u = the state after the newest click, GRU 256 from the oldest to the newest.

    Padding keeps the state, so it may lie anywhere. Uncertain: Uni-FedRec reports no sizes; the original also has an
    article encoder trained on similar articles, in whose place the fixed news vectors stand, and weighs recent
    sessions. Every coordinate of u lies in (-1, 1), as a GRU's state does.
    """

    def __init__(self, gru: MaskedGru) -> None:
        super().__init__(gru.state_dim)
        if gru.input.in_features != gru.state_dim:
            raise ValueError(f"the state must have the size of a news, {gru.input.in_features}, got {gru.state_dim}")
        self.gru = gru

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        user: Tensor = self.gru(clicks, click_mask)
        return user

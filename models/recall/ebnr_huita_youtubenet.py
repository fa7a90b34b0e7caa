"""Recall baselines of one layer: EBNR's recurrent unit, HUITA's attention, YoutubeNet's dense tower (decision 037)."""

from __future__ import annotations

from torch import Tensor, nn

from models.layers.attention import AdditiveAttention
from models.layers.gru import MaskedGru
from models.one_vector import OneVectorModel, mean_click


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


class Huita(OneVectorModel):
    """u = AddAttn(x_1 .. x_H), hidden 200; the order of the clicks is irrelevant.

    The original is made for reviews, in three tiers: words, sentences, reviews, each with its CNN and attention, and
    id embeddings beside them. Here the word tier is the news model's, a title has one sentence, and there are no ids
    (Wu et al. 2019, HUITA). Uncertain: Uni-FedRec reports no sizes.
    """

    def __init__(self, pooling: AdditiveAttention) -> None:
        super().__init__(pooling.hidden.in_features)
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Uniform attention: score(d) = mean_j <x_j, d>, for unit vectors the mean cosine. Nothing of the paper's
        form is changed."""
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        user: Tensor = self.pooling(clicks, click_mask)
        return user


class YoutubeNet(OneVectorModel):
    """u = tower(mean_j x_j); the order of the clicks is irrelevant; no clicks -> zeros, whatever the tower's biases.

    Sizes: dense ReLU 256-256, or no tower, which has nothing to train. Uncertain: Uni-FedRec names the
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

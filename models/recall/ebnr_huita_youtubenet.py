"""Recall baselines of one layer: EBNR's recurrent unit, HUITA's attention, YoutubeNet's dense tower."""

from __future__ import annotations

from torch import Tensor, nn

from models.layers.attention import AdditiveAttention
from models.layers.gru import MaskedGru
from models.one_vector import OneVectorModel, mean_click


class Ebnr(OneVectorModel):
    """u = the state after the newest click of a GRU 256 that reads the clicks from oldest to newest.

    Padding keeps the state, so it may stand anywhere. Uncertain: Uni-FedRec reports no sizes; the original also trains
    an article encoder on similar articles, which the fixed news vectors replace here, and weighs recent sessions more.
    Every coordinate of u lies in (-1, 1), as in any GRU state.
    """

    def __init__(self, gru: MaskedGru) -> None:
        super().__init__(gru.state_dim)
        if gru.input.in_features != gru.state_dim:
            raise ValueError(
                f"state_dim must be the size of a news vector, {gru.input.in_features}; got {gru.state_dim}"
            )
        self.gru = gru

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        user: Tensor = self.gru(clicks, click_mask)
        return user


class Huita(OneVectorModel):
    """u = AddAttn(x_1 .. x_H), hidden 200; the order of the clicks is irrelevant.

    The original is made for reviews, in three tiers (words, sentences, reviews), each with its CNN and attention,
    besides id
    embeddings. Here the news model is the word tier, a title is one sentence, and there are no ids (Wu et al. 2019,
    HUITA).
    Uncertain: Uni-FedRec reports no sizes.
    """

    def __init__(self, pooling: AdditiveAttention) -> None:
        super().__init__(pooling.hidden.in_features)
        self.pooling = pooling

    def cosine_start(self) -> None:
        """Set uniform attention: score(d) = mean_j <x_j, d>, the mean cosine for unit vectors.

        The paper's form is unchanged.
        """
        self.pooling.start_uniform()

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        user: Tensor = self.pooling(clicks, click_mask)
        return user


class YoutubeNet(OneVectorModel):
    """u = tower(mean_j x_j); the order of the clicks is irrelevant; no clicks -> zeros, whatever the tower's biases.

    Sizes: dense ReLU 256-256, or no tower, which has nothing to train. Uncertain: Uni-FedRec names the baseline and
    reports no sizes; the original has three layers from 1,024 down, and more features than the watched videos (search
    words, age, sex, country), which readers here do not reveal. As in the original, the last layer has a ReLU, so u has
    no negative coordinate.

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

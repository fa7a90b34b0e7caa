"""HUITA: attention over the clicked news (Wu et al., NAACL 2019)."""

from __future__ import annotations

from torch import Tensor

from models.layers.additive_attention import AdditiveAttention
from models.one_vector import OneVectorModel


class Huita(OneVectorModel):
    """u = AddAttn(x_1 .. x_H), hidden 200; the order of the clicks is irrelevant.

    The original is made for reviews, in three tiers: words, sentences, reviews, each with its CNN and attention, and
    id embeddings beside them. Here the word tier is the news model's, a title has one sentence, and there are no ids
    (ALGORITHMS 8). Uncertain: Uni-FedRec reports no sizes.
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

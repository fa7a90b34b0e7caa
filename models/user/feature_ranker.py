"""The default ranker: candidate attention plus features of a candidate besides its text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.scoring import info_nce
from models.user.candidate_attention import CandidateAttention

FEATURES = ("section_affinity", "topic_affinity", "popularity", "recency")
"""F columns of `features`, each from 0 to 1; `device_app/ranking/ranker.py` computes them under these names."""

KNOWN_WEIGHTS = {"section_affinity": 0.02, "topic_affinity": 0.02, "popularity": 0.2, "recency": 0.03}
"""Chosen on the train impressions of MIND, not trained (docs/decisions/029)."""


class FeatureRanker(nn.Module):
    """score(d) = match(d) + sum_f w_f x_fd: the match of `CandidateAttention` plus F weighted features.

    D + 2 + F parameters: 262 at D = 256 with the four FEATURES.

    Args:
        matching: scores the match with the clicks.
        features: names of the F columns, in order.
    """

    def __init__(self, matching: CandidateAttention, features: tuple[str, ...] = FEATURES) -> None:
        super().__init__()
        if not features or len(set(features)) != len(features):
            raise ValueError(f"features must be distinct names, at least one, got {features}")
        self.matching = matching
        self.features = features
        self.feature_weights = nn.Parameter(torch.zeros(len(features)))

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Set w = 0: the softmax-weighted cosine, whatever the features are."""
        self.matching.cosine_start()
        nn.init.zeros_(self.feature_weights)

    @torch.no_grad()
    def known_start(self) -> None:
        """Set the cosine start with KNOWN_WEIGHTS; 0 for a feature without one."""
        self.cosine_start()
        self.feature_weights.copy_(torch.tensor([KNOWN_WEIGHTS.get(name, 0.0) for name in self.features]))

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor, features: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H], candidates [b, R, D], features [b, R, F] -> scores [b, R].

        Without clicks only the features count. Raises ValueError for wrong shapes.
        """
        if features.dim() != 3 or features.shape[-1] != len(self.features):
            raise ValueError(f"features must have shape [b, R, {len(self.features)}], got {tuple(features.shape)}")
        fit: Tensor = self.matching(clicks, click_mask, candidates)
        return fit + features @ self.feature_weights  # [b, R]

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor, features: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D] with features [b, 1 + K, F], positive first, mean over the batch."""
        return info_nce(self.matching.sharpness * self(clicks, click_mask, candidates, features))

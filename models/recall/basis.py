"""Uni-FedRec's recall model: a reader's interests told in a few basic interests (ALGORITHMS 2.2-2.3).

Symbols as in models/shapes.py; r is a channel vector, a its scores on the basis, r^ what the server rebuilds, q quotas.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import hardtanh

from models.layers.additive_attention import AdditiveAttention
from models.layers.self_attention import SelfAttention
from models.losses import info_nce


class BasisRecall(nn.Module):
    """Contexts, cluster attention, decomposition on B basic interests, aggregation, unified score.

    Clustering, clipping for release and noise are the device's; they lie between `contexts` and `decompose`, and
    between `decompose` and `aggregate`. Deviations from the paper: padding is masked everywhere; the clip is also in the
    training loss, so that keys learn a scale (the paper clips when serving only); no dropout, as the exported gradient
    is deterministic.

    Args:
        attention: the context model, D -> D.
        cluster_attention: weighs the clicks of a channel.
        basis_size: B.
        dim: D.
        score_clip: delta, the bound of a released score.
    """

    def __init__(
        self,
        attention: SelfAttention,
        cluster_attention: AdditiveAttention,
        *,
        basis_size: int,
        dim: int,
        score_clip: float,
    ) -> None:
        super().__init__()
        if basis_size < 1:
            raise ValueError(f"basis_size must be at least 1, got {basis_size}")
        if not score_clip > 0:
            raise ValueError(f"score_clip must be above 0, got {score_clip}")
        self.attention = attention
        self.cluster_attention = cluster_attention
        self.basis_keys = nn.Parameter(torch.empty(basis_size, dim).uniform_(-0.05, 0.05))
        self.basis_values = nn.Parameter(torch.empty(basis_size, dim).uniform_(-0.05, 0.05))
        self.score_clip = score_clip

    def contexts(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """g = MHSA(clicks): clicks [b, H, D], click_mask [b, H] -> [b, H, D]; padding gives zeros."""
        return self.attention(clicks, click_mask)

    def channels(self, contexts: Tensor, membership: Tensor) -> Tensor:
        """r_c = sum_j gamma_cj g_j over the clicks j of channel c: contexts [b, H, D], membership [b, C, H] -> [b, C, D]."""
        return self.cluster_attention(contexts, membership)

    def decompose(self, contexts: Tensor, membership: Tensor) -> Tensor:
        """a_ci = <r_c, key_i> -> [b, C, B], neither clipped nor noisy; an empty channel gives zeros."""
        return self.channels(contexts, membership) @ self.basis_keys.t()

    def clip(self, scores: Tensor) -> Tensor:
        """Hard tanh to [-delta, delta]."""
        return hardtanh(scores, -self.score_clip, self.score_clip)

    def aggregate(self, scores: Tensor) -> Tensor:
        """r^_c = sum_i softmax_i(a_c) value_i: scores [b, C, B], clipped and noisy already -> [b, C, D]."""
        return scores.softmax(dim=-1) @ self.basis_values

    def unified_score(self, interests: Tensor, quotas: Tensor, candidates: Tensor) -> Tensor:
        """z(d) = sum_c q_c <r^_c, d>: interests [b, C, D], quotas [b, C], candidates [b, R, D] -> [b, R]."""
        user = quotas.unsqueeze(-2) @ interests  # [b, 1, D]
        return (candidates @ user.transpose(-1, -2)).squeeze(-1)

    def forward(
        self, clicks: Tensor, click_mask: Tensor, membership: Tensor, quotas: Tensor, candidates: Tensor
    ) -> Tensor:
        """Unified scores [b, R] as training sees them: clipped, without noise."""
        scores = self.decompose(self.contexts(clicks, click_mask), membership)  # [b, C, B]
        return self.unified_score(self.aggregate(self.clip(scores)), quotas, candidates)

    def loss(
        self, clicks: Tensor, click_mask: Tensor, membership: Tensor, quotas: Tensor, candidates: Tensor
    ) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, mean over the batch."""
        return info_nce(self(clicks, click_mask, membership, quotas, candidates))

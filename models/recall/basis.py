"""Uni-FedRec's recall model: it describes a reader's interests by a few basic interests (section 3).

Symbols as in models/shapes.py; r is a channel vector, a its scores on the basis, r^ the server's reconstruction, q the
quotas.

`ReportedBasis` is Uni-FedRec with reports: a device reports one basic interest by randomised response, and the server
derives lists from the report. Symbols: K basic interests v_k of length 1 [K, D], which are the codebook of
reports; u a reader's unit vector; y the report, with probabilities P(y | k) [K, K]; w_k(y) the server's posterior over
the basic interests; s the sharpness of lists.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import hardtanh

from models.layers.attention import AdditiveAttention, SelfAttention
from models.one_vector import mean_click, require_candidates, require_clicks
from models.scoring import info_nce, inner_products, unit
from models.starts import CONTEXT_SHARPNESS, basic_interests


class BasisRecall(nn.Module):
    """Contexts, cluster attention, decomposition on B basic interests, aggregation, unified score.

    The device clusters between `contexts` and `decompose`, and clips and adds noise between `decompose` and
    `aggregate`. Deviations from the paper: padding is masked everywhere; the training loss clips too, so that keys
    learn a scale (the paper clips only when serving); no dropout, because the exported gradient is deterministic.

    Args:
        attention: the context model, D -> D.
        cluster_attention: weights the clicks of a channel.
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

    @torch.no_grad()
    def cosine_start(self, centroids: Tensor) -> None:
        """Set the parameters so that untrained recall is useful, as `models.starts.basic_interests` says.

        centroids [B, D]: centres of topics among the pool's unit vectors. Raises ValueError for a wrong shape, values
        that are not finite, or centroids that are all equal.
        """
        if centroids.shape != self.basis_values.shape:
            wanted, got = tuple(self.basis_values.shape), tuple(centroids.shape)
            raise ValueError(f"centroids must have shape {wanted}, got {got}")
        keys, values = basic_interests(centroids.numpy(), self.score_clip)
        self.basis_keys.copy_(torch.from_numpy(keys))
        self.basis_values.copy_(torch.from_numpy(values))
        self.attention.start_sharp(CONTEXT_SHARPNESS)
        self.cluster_attention.start_uniform()

    def contexts(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """g = MHSA(clicks): clicks [b, H, D], click_mask [b, H] -> [b, H, D]; padding gives zeros."""
        require_clicks(clicks, click_mask, self.basis_keys.shape[1])
        contexts: Tensor = self.attention(clicks, click_mask)
        return contexts

    def channels(self, contexts: Tensor, membership: Tensor) -> Tensor:
        """r_c = sum_j gamma_cj g_j over the clicks of c: contexts [b, H, D], membership [b, C, H] -> [b, C, D]."""
        if membership.dim() != 3 or membership.shape[-1] != contexts.shape[1]:
            raise ValueError(f"membership must have shape [b, C, {contexts.shape[1]}], got {tuple(membership.shape)}")
        channels: Tensor = self.cluster_attention(contexts, membership)
        return channels

    def decompose(self, contexts: Tensor, membership: Tensor) -> Tensor:
        """a_ci = <r_c, key_i> -> [b, C, B], before clipping and noise; an empty channel gives zeros."""
        return self.channels(contexts, membership) @ self.basis_keys.t()

    def clip(self, scores: Tensor) -> Tensor:
        """Hard tanh to [-delta, delta]."""
        return hardtanh(scores, -self.score_clip, self.score_clip)

    def aggregate(self, scores: Tensor) -> Tensor:
        """r^_c = sum_i softmax_i(a_c) value_i: clipped and noisy scores [b, C, B] -> [b, C, D]."""
        return scores.softmax(dim=-1) @ self.basis_values

    def unified_score(self, interests: Tensor, quotas: Tensor, candidates: Tensor) -> Tensor:
        """z(d) = sum_c q_c <r^_c, d>: interests [b, C, D], quotas [b, C], candidates [b, R, D] -> [b, R]."""
        if quotas.dim() != 2 or quotas.shape[-1] != interests.shape[1]:
            raise ValueError(f"quotas must have shape [b, {interests.shape[1]}], got {tuple(quotas.shape)}")
        require_candidates(candidates, interests.shape[-1])
        return inner_products((quotas.unsqueeze(-2) @ interests).squeeze(-2), candidates)

    def forward(
        self, clicks: Tensor, click_mask: Tensor, membership: Tensor, quotas: Tensor, candidates: Tensor
    ) -> Tensor:
        """Unified scores [b, R] as in training: clipped, without noise."""
        scores = self.decompose(self.contexts(clicks, click_mask), membership)  # [b, C, B]
        return self.unified_score(self.aggregate(self.clip(scores)), quotas, candidates)

    def loss(
        self, clicks: Tensor, click_mask: Tensor, membership: Tensor, quotas: Tensor, candidates: Tensor
    ) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, mean over the batch."""
        return info_nce(self(clicks, click_mask, membership, quotas, candidates))


ASSIGNMENT = 16.0  # soft in training: a basic interest .1 nearer weighs five times as much; reports use the nearest
LIST_SHARPNESS = 4.0  # of the server's lists


class ReportedBasis(nn.Module):
    """Trains the basic interests: the expected likelihood of a click under the list that a report leads to.

    The list of a report y ranks the pool by log P(i | y) = log sum_k w_k(y) P(i | k), where P(i | k) = pop(i) exp(s
    <v_k, d_i>) / Z_k: the server's posterior mixture, popularity included. The loss of a click on d is

        - sum_y P(y | u) log P(d | y),    P(y | u) = sum_k softmax_k(tau <u, v_k>) P(y | k)

    without the term log pop(d), which no parameter changes. The objective thus contains the mechanism's K reports, each
    with its probability, and the whole pool instead of sampled negatives. Z_k is a sum over the pool, which devices
    don't
    hold: the server sends log Z_k and its gradient for v_k at the round's basis, and these are exact at that point.

    The parameter is the step from the round's basis along a few directions: v = unit(basis + steps @ axes).

    Args:
        size: K.
        axes: m, number of directions in which basic interests may move.
        dim: D.
        sharpness: s.
    """

    def __init__(self, size: int, axes: int, dim: int, *, sharpness: float = LIST_SHARPNESS) -> None:
        super().__init__()
        if min(size, axes, dim) < 1:
            raise ValueError(f"size, axes and dim must be at least 1, got {size}, {axes}, {dim}")
        self.dim, self.sharpness = dim, sharpness
        self.steps = nn.Parameter(torch.zeros(size, axes))

    def basis(self, basis: Tensor, axes: Tensor) -> Tensor:
        """Return v [K, D] from the round's basis [K, D], rows of length 1, and axes [m, D], orthonormal."""
        return unit(basis + self.steps @ axes)

    def loss(
        self,
        clicks: Tensor,
        click_mask: Tensor,
        clicked: Tensor,
        basis: Tensor,
        axes: Tensor,
        log_normalisers: Tensor,
        slopes: Tensor,
        chances: Tensor,
        log_posterior: Tensor,
    ) -> Tensor:
        """Mean loss over samples: clicks [b, H, D], click_mask [b, H], clicked [b, D] -> [].

        log_normalisers [K] and slopes [K, D]: log Z_k and s E[d] under P(. | k), at the round's basis. chances [K, K]:
        P(y | k), one row for each k. log_posterior [K, K]: log w_k(y), one row for each y.
        """
        require_clicks(clicks, click_mask, self.dim)
        user = unit(mean_click(clicks, click_mask))  # [b, D]
        moved = self.basis(basis, axes)
        reports = (ASSIGNMENT * user @ moved.t()).softmax(dim=-1) @ chances  # [b, y]
        normalisers = log_normalisers + ((moved - basis) * slopes).sum(dim=-1)  # [K]
        scores = self.sharpness * clicked @ moved.t() - normalisers  # [b, K]
        mixed = log_sum_exp(log_posterior + scores.unsqueeze(-2))  # [b, y]
        return -(reports * mixed).sum(dim=-1).mean()


def log_sum_exp(terms: Tensor) -> Tensor:
    """Log-sum-exp over the last axis, from operators that graphs have: [..., K] -> [...]."""
    return (terms - terms.log_softmax(dim=-1))[..., 0]

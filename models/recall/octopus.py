"""Octopus: a reader activates a few of M global channels (Liu et al., SIGIR 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.attention import masked_softmax
from models.layers.real_rows import by_row
from models.one_vector import require_candidates, require_clicks
from models.scoring import info_nce, inner_products


class Octopus(nn.Module):
    """Each click goes to its nearest channel.

    Every channel with clicks has its own interest vector. With channel vectors E [M, D]: m(j) = argmax_m <E_m, x_j>;
    e_j = E_m(j) . tanh(W x_j + b); the channel's vector u_m = sum_j softmax_{j in m}(e_j) x_j. Loss: InfoNCE of <u_m*,
    d>, m* the active channel that scores the positive best, plus `penalty` ||E E^T - I||_F^2. Assignment and m* are
    choices without a gradient: E learns through the attention and the penalty.

    Sizes: M = 8 (the paper's figure 1), D = 256. Uncertain, because we have secondary sources only: the attention's
    form (this one is ours), the penalty's weight, and whether negatives are scored by the positive's channel (here, as
    in other multi-interest models) or each by its best channel. Serving: `forward` lets the channels compete by score;
    the paper's alternative is a quota for each.

    Args:
        dim: D.
        channels: M, at most D, so that they can be orthogonal.
        penalty: weight of the orthogonality penalty, 0 or more.
    """

    def __init__(self, dim: int, channels: int, penalty: float) -> None:
        super().__init__()
        if not 1 <= channels <= dim:
            raise ValueError(f"channels must be 1 to dim, got {channels} for dim {dim}")
        if not penalty >= 0:
            raise ValueError(f"penalty must be 0 or more, got {penalty}")
        self.dim = dim
        self.penalty = penalty
        self.channels = nn.Parameter(nn.init.orthogonal_(torch.empty(channels, dim)))
        self.hidden = nn.Linear(dim, dim)
        nn.init.xavier_uniform_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Set W = 0, b = 0: uniform attention.

        For unit vectors score(d) is then the mean cosine with the clicks of the active channel where that is largest:
        with one active channel, the mean cosine of the whole history.
        """
        nn.init.zeros_(self.hidden.weight)
        nn.init.zeros_(self.hidden.bias)

    def membership(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> [b, M, H], 1 in the channel of each real click. No gradient."""
        require_clicks(clicks, click_mask, self.dim)
        return one_hot_of_largest(clicks @ self.channels.t()).transpose(1, 2) * click_mask.unsqueeze(1)

    def channel_vectors(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, M, D]; zero for an inactive channel."""
        members = self.membership(clicks, click_mask)  # [b, M, H]
        (hidden,) = by_row(lambda rows: (self.hidden(rows).tanh(),), clicks, click_mask)  # [b, H, D]
        scores = self.channels @ hidden.transpose(1, 2)  # [b, M, H]
        return masked_softmax(scores, members) @ clicks

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """candidates [b, R, D] -> the score of each by its best active channel, [b, R]; no clicks -> zeros."""
        require_candidates(candidates, self.dim)
        active = self.membership(clicks, click_mask).amax(dim=-1)  # [b, M]
        scores = candidates @ self.channel_vectors(clicks, click_mask).transpose(1, 2)  # [b, R, M]
        best = _where_active(scores, active.unsqueeze(1)).amax(dim=-1)
        return best * click_mask.amax(dim=-1, keepdim=True)

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, in the positive's channel, plus the penalty."""
        require_candidates(candidates, self.dim)
        active = self.membership(clicks, click_mask).amax(dim=-1)  # [b, M]
        vectors = self.channel_vectors(clicks, click_mask)  # [b, M, D]
        positive = inner_products(candidates[:, 0], vectors)  # [b, M]
        chosen = one_hot_of_largest(_where_active(positive, active))  # [b, M]
        user = (chosen.unsqueeze(1) @ vectors).squeeze(1)  # [b, D]
        return info_nce(inner_products(user, candidates)) + self.penalty * self.orthogonality()

    def orthogonality(self) -> Tensor:
        """||E E^T - I||_F^2 -> []; 0 for orthonormal channels."""
        gram = self.channels @ self.channels.t()  # [M, M]
        return (gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).square().sum()


def one_hot_of_largest(scores: Tensor) -> Tensor:
    """1 at the largest entry of the last axis, the first among equals, 0 elsewhere; no gradient passes."""
    places = torch.arange(scores.shape[-1], device=scores.device)
    return (scores.argmax(dim=-1, keepdim=True) == places).to(scores.dtype)


def _where_active(scores: Tensor, active: Tensor) -> Tensor:
    return torch.where(active != 0, scores, torch.finfo(scores.dtype).min)

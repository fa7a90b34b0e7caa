"""Uni-FedRec with reports: a device reports one basic interest by randomised response.

The server derives lists from the report. Symbols: K basic interests v_k of length 1 [K, D], which are the codebook of
reports; u a reader's unit vector; y the report, with probabilities P(y | k) [K, K]; w_k(y) the server's posterior over
the basic interests; s the sharpness of lists.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.one_vector import mean_click, require_clicks
from models.scoring import unit

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

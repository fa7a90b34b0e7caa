"""Scores of candidates for a user vector (inner product, or cosine as in FL-MV-DSSM, eq. 4), and InfoNCE."""

from torch import Tensor

TINY_NORM = 1e-6


def inner_products(user: Tensor, candidates: Tensor) -> Tensor:
    """s(d) = <u, d>: user [b, D], candidates [b, R, D] -> [b, R]."""
    return (candidates @ user.unsqueeze(-1)).squeeze(-1)


def unit(x: Tensor) -> Tensor:
    """Rows of length 1: [..., D] -> [..., D].

    Rows shorter than 1e-6 become zero, with zero gradient. The bound is applied under the root, because the root has no
    finite slope at 0. Without zeroing, the slope at tiny rows would be a million.
    """
    squares = x.square().sum(dim=-1, keepdim=True)
    return x / squares.clamp_min(TINY_NORM**2).sqrt() * (squares >= TINY_NORM**2)


def cosines(user: Tensor, candidates: Tensor) -> Tensor:
    """cos(u, d), 0 where u or d is zero: user [b, D], candidates [b, R, D] -> [b, R]."""
    return inner_products(unit(user), unit(candidates))


def info_nce(scores: Tensor) -> Tensor:
    """(K+1)-way cross entropy with the positive in column 0, mean over rows (Efficient-FedRec, eqs. 1 and 2).

    scores: [b, 1 + K] -> []. Written with log_softmax: `cross_entropy` exports gradients b times too large.
    """
    return -scores.log_softmax(dim=-1)[:, 0].mean()

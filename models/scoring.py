"""Scores of candidates for a user vector (inner product, or cosine as in FL-MV-DSSM, eq. 4), and InfoNCE.

`EndToEnd` joins a news encoder and a user model for devices that train the news model too (FedNewsRec, section 3.2).
"""

from typing import Protocol

from torch import Tensor, nn
from torch.nn.functional import embedding

from models.shapes import expect_shape

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


class UserEncoder(Protocol):
    """The interface that `EndToEnd` requires of a user model."""

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H], candidates [b, 1 + K, D] -> scalar."""


class EndToEnd(nn.Module):
    """Encodes each distinct article once; readers refer to articles by row, and repeated rows sum their gradients.

    Args:
        news: a news encoder of n articles.
        user: a user model with `loss`.
    """

    def __init__(self, news: nn.Module, user: nn.Module) -> None:
        super().__init__()
        if not callable(getattr(user, "loss", None)):
            raise ValueError(f"user must have a loss method, got {type(user).__name__}")
        self.news = news
        self.user = user

    def forward(self, *inputs: Tensor) -> Tensor:
        """The encoder's inputs, click_rows int64 [b, H], click_mask [b, H], candidate_rows int64 [b, R] -> [b, R]."""
        scores: Tensor = self.user(*self._vectors(inputs))
        return scores

    def loss(self, *inputs: Tensor) -> Tensor:
        """The inputs of `forward`, candidate_rows [b, 1 + K] with the positive first -> the user model's loss."""
        user: UserEncoder = self.user  # type: ignore[assignment]
        return user.loss(*self._vectors(inputs))

    def _vectors(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """-> clicks [b, H, D], click_mask [b, H], candidates [b, R, D].

        Padding may hold any row, since it is masked.
        """
        if len(inputs) < 4:
            raise ValueError(
                "inputs must be those of the news encoder, then click_rows, click_mask and candidate_rows; "
                f"got {len(inputs)} tensors"
            )
        *news, click_rows, click_mask, candidate_rows = inputs
        expect_shape("click_rows", click_rows, "b", "H")
        expect_shape("click_mask", click_mask, *click_rows.shape)
        expect_shape("candidate_rows", candidate_rows, click_rows.shape[0], "R")
        vectors: Tensor = self.news(*news)  # [n, D]
        clicks = _take("click_rows", vectors, click_rows)
        return clicks, click_mask, _take("candidate_rows", vectors, candidate_rows)


def _take(argument: str, vectors: Tensor, rows: Tensor) -> Tensor:
    """vectors [n, D], rows int64 [b, R] -> [b, R, D]."""
    try:
        return embedding(rows, vectors)
    except IndexError as outside:
        raise ValueError(
            f"{argument} {list(rows.shape)} must be rows of {len(vectors)} articles, got {int(rows.min())} to "
            f"{int(rows.max())}"
        ) from outside

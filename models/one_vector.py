"""Models with one vector per reader, for ranking and recall.

This module has their score, loss, shape checks, and the cosine start.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from models.scoring import info_nce, inner_products


class OneVectorModel(nn.Module, ABC):
    """A reader is one vector u in the space of the news vectors.

    The score is score(d) = <u, d>; the loss is InfoNCE with K negatives. News vectors are inputs; another module
    computes them. The papers' dropout is left out because a device's training graph computes a deterministic function;
    a task that wants dropout removes inputs of the graph instead.

    Args:
        dim: D.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        self.dim = dim

    @abstractmethod
    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], oldest first, click_mask [b, H] -> u [b, D]; no clicks -> zeros."""

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """clicks, click_mask as in `user_vector`, candidates [b, R, D] -> scores [b, R].

        Raises ValueError for wrong shapes.
        """
        require_clicks(clicks, click_mask, self.dim)
        require_candidates(candidates, self.dim)
        return inner_products(self.user_vector(clicks, click_mask), candidates)

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, mean over the batch."""
        return info_nce(self(clicks, click_mask, candidates))


class CosineResidual(OneVectorModel):
    """u = mean_j x_j + W branch(x): any one-vector model as a learned correction of the mean click.

    Not in the papers. Their YoutubeNet, EBNR and SASRec have no weights at which the score is a cosine (ReLU, gates and
    norms stand between), so the paper's form is the unchanged branch here, and W [D, D] starts at zero. The score then
    starts as mean_j <x_j, d>, the mean cosine for unit vectors. W has a gradient from the first step, the branch from
    the second.
    """

    def __init__(self, branch: OneVectorModel) -> None:
        super().__init__(branch.dim)
        self.branch = branch
        self.correction = nn.Linear(branch.dim, branch.dim, bias=False)
        self.cosine_start()

    @torch.no_grad()
    def cosine_start(self) -> None:
        """W = 0; the branch stays as it is."""
        nn.init.zeros_(self.correction.weight)

    def user_vector(self, clicks: Tensor, click_mask: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H] -> u [b, D]; no clicks -> zeros."""
        learnt: Tensor = self.correction(self.branch.user_vector(clicks, click_mask))
        return mean_click(clicks, click_mask) + learnt


def mean_click(clicks: Tensor, click_mask: Tensor) -> Tensor:
    """Mean over the real rows: [b, H, D], [b, H] -> [b, D]; no clicks -> zeros."""
    total = (click_mask.unsqueeze(-2) @ clicks).squeeze(-2)  # [b, D]
    return total / click_mask.sum(dim=-1, keepdim=True).clamp_min(1)


def require_clicks(clicks: Tensor, click_mask: Tensor, dim: int) -> None:
    """Raise ValueError, naming the argument and its shape, unless clicks are [b, H, dim] and click_mask [b, H]."""
    if clicks.dim() != 3 or clicks.shape[-1] != dim:
        raise ValueError(f"clicks must have shape [b, H, {dim}], got {tuple(clicks.shape)}")
    if click_mask.dim() != 2 or click_mask.shape[-1] != clicks.shape[1]:
        raise ValueError(f"click_mask must have shape [b, {clicks.shape[1]}] as clicks, got {tuple(click_mask.shape)}")


def require_candidates(candidates: Tensor, dim: int) -> None:
    """Raise ValueError, naming the argument and its shape, unless candidates are [b, R, dim]."""
    if candidates.dim() != 3 or candidates.shape[-1] != dim:
        raise ValueError(f"candidates must have shape [b, R, {dim}], got {tuple(candidates.shape)}")


class UserModel(OneVectorModel):
    """A ranker with one user vector that can start as the cosine of the frozen news vectors."""

    @abstractmethod
    def cosine_start(self) -> None:
        """Set the parameters so that scores equal the frozen news vectors' cosines and have useful gradients."""

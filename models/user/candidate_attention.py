"""The small rankers: clicks weighed by how well they match each candidate, learnt (docs/decisions/029) or by cosine."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.attention import masked_softmax
from models.one_vector import require_candidates, require_clicks
from models.scoring import info_nce, unit


class CosineRanker(nn.Module):
    """score(d) = sum_j softmax_j(beta s_jd) s_jd, where s_jd is the cosine of click j and candidate d.

    beta = 0 is the mean cosine, beta -> infinity the best matching click. Untrained, beta = 8 had AUC .645 on the
    natural MIND sample of the design study.

    Args:
        beta: sharpness of the softmax, at the start.
        dim: D of the exported graph; vectors of any size are compared in the same way.
    """

    def __init__(self, beta: float = 8.0, *, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.beta = nn.Parameter(torch.tensor(float(beta)))

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H], candidates [b, R, D] -> scores [b, R], in [-1, 1]; no clicks -> 0."""
        cosines = unit(candidates) @ unit(clicks).transpose(-1, -2)  # [b, R, H]
        weights = masked_softmax(self.beta * cosines, click_mask.unsqueeze(-2))  # [b, R, H]
        return (weights * cosines).sum(dim=-1)


START_BETA = 3.0  # best on train impressions, by .009 +- .004 AUC over the study's 8 on dev impressions (experiments)
START_SHARPNESS = 4.0  # training on MIND ends between 2.7 and 7.8, wherever it starts


class CandidateAttention(nn.Module):
    """score(d) = sum_j softmax_j(beta s_jd) s_jd,  s_jd = h_j diag(M) d, for clicks h_j and candidate d of length 1.

    D + 2 parameters, 386 at D = 384 and 258 at D = 256: the metric M [D], beta, and the sharpness of the softmax over
    candidates. Scores of about the size of a cosine are too close together for InfoNCE, so the loss multiplies the
    score by the sharpness, which changes no ranking and is not part of `forward`. Nothing keeps it positive; it starts
    far from 0.

    The model is small enough to train under differential privacy with a few thousand readers; the papers' models are
    not.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        self.dim = dim
        self.metric = nn.Parameter(torch.empty(dim))
        self.beta = nn.Parameter(torch.empty(()))
        self.sharpness = nn.Parameter(torch.empty(()))
        self.cosine_start()

    @torch.no_grad()
    def cosine_start(self) -> None:
        """Set M = 1 and beta = 3: the softmax-weighted cosine, as `CosineRanker`."""
        nn.init.ones_(self.metric)
        self.beta.fill_(START_BETA)
        self.sharpness.fill_(START_SHARPNESS)

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """How well candidates fit the clicks.

        The order of clicks is irrelevant; without clicks scores are 0.

        clicks [b, H, D], click_mask [b, H], candidates [b, R, D] -> scores [b, R]. Vectors may have any length. Raises
        ValueError for wrong shapes.
        """
        require_clicks(clicks, click_mask, self.dim)
        require_candidates(candidates, self.dim)
        matches = unit(candidates) @ (unit(clicks) * self.metric).transpose(-1, -2)  # s_jd [b, R, H]
        weights = masked_softmax(self.beta * matches, click_mask.unsqueeze(-2))  # [b, R, H]
        return (weights * matches).sum(dim=-1)  # [b, R]

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """InfoNCE of candidates [b, 1 + K, D], positive first, mean over the batch."""
        return info_nce(self.sharpness * self(clicks, click_mask, candidates))

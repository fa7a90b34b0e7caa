"""The small rankers: clicks weighted by how well they match each candidate, learned (docs/decisions/029) or by cosine.

The default ranker, `FeatureRanker`, also uses features of a candidate other than its text.
"""

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
        """Set M = 1 and beta = 3: the softmax-weighted cosine, like `CosineRanker`."""
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
        """Set w = 0: the softmax-weighted cosine, which ignores the features."""
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

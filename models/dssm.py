"""FL-MV-DSSM: user and item towers, one model for each view, one item tower for all views (eqs. 3 to 6)."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn

from models.one_vector import require_candidates, require_clicks
from models.scoring import cosines, info_nce, unit
from models.shapes import Scope


class Tower(nn.Module):
    """A dense tower that maps features to a small vector: l_i = tanh(W_i l_{i-1} + b_i) in every layer.

    The paper's eq. 3 has a linear first layer without bias and does not name the activation; tanh is the original
    DSSM's. With biases in every layer the paper's towers have 305,968 (item), 4,144 and 4,592 (user) parameters.

    Args:
        sizes: features, hidden sizes, output size; at least two.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes must be two or more, each at least 1, got {tuple(sizes)}")
        self.feature_count = sizes[0]
        self.layers = nn.ModuleList(nn.Linear(wide, narrow) for wide, narrow in pairwise(sizes))
        for name, each in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(each)
            else:
                nn.init.xavier_uniform_(each)

    def forward(self, features: Tensor) -> Tensor:
        """features [..., F] -> y [..., 16]. Raises ValueError for a wrong number of features."""
        if features.shape[-1] != self.feature_count:
            raise ValueError(f"features must have shape [..., {self.feature_count}], got {tuple(features.shape)}")
        y = features
        for layer in self.layers:
            y = layer(y).tanh()
        return y


class ViewRanker(nn.Module):
    """One view as a ranker of articles: the user's features are the unit mean of the view's vectors.

    The vectors of a reading view are its clicks; those of a search view are the vectors of its queries. Both are in the
    space of news vectors, as items are, so one graph serves every view. Scores are gamma cos(y_u, y_d); their softmax
    over the candidates is P(d | u).

    User tower and item tower start with equal weights (our choice). The score then starts near the cosine of mean click
    and candidate in fewer dimensions; two random towers would start with noise.

    Args:
        dim: D of the news vectors.
        hidden: the towers' layers after D; the last is the size of y.
        gamma: sharpness of the softmax, above 0; the paper does not give it.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {}

    def __init__(self, dim: int, hidden: Sequence[int], gamma: float) -> None:
        super().__init__()
        if not gamma > 0:
            raise ValueError(f"gamma must be above 0, got {gamma}")
        self.dim = dim
        self.gamma = gamma
        self.item_tower = Tower((dim, *hidden))
        self.user_tower = deepcopy(self.item_tower)

    def forward(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """clicks [b, H, D], click_mask [b, H], candidates [b, R, D] -> scores [b, R] in [-gamma, gamma].

        A reader without clicks has zeros as features.
        """
        require_clicks(clicks, click_mask, self.dim)
        require_candidates(candidates, self.dim)
        user = unit((clicks * click_mask.unsqueeze(-1)).sum(dim=-2))
        return self.gamma * cosines(self.user_tower(user), self.item_tower(unit(candidates)))

    def loss(self, clicks: Tensor, click_mask: Tensor, candidates: Tensor) -> Tensor:
        """-log P(d+ | u) of candidates [b, 1 + K, D], clicked article first, mean over the batch."""
        return info_nce(self(clicks, click_mask, candidates))


class SemiViewRanker(ViewRanker):
    """SEMI-FL-MV-DSSM: each view keeps its own user tower, which starts as a copy of the received item tower."""

    SCOPES: ClassVar[Mapping[str, Scope]] = {"user_tower": "private"}


class SharedViewsRanker(ViewRanker):
    """One view of FL-MV-DSSM; its user tower is trained jointly with the same view's towers on other devices.

    A release carries a user tower for each view, `user_towers.<view>.*`, and the graphs of this model, which names its
    parameters `user_tower.*`. All user towers start as the item tower.
    """

"""FL-MV-DSSM: user and item towers, one model for each view, one item tower for all views (eqs. 3 to 6)."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from models.one_vector import require_candidates, require_clicks
from models.scoring import cosines, info_nce, unit
from models.shapes import Scope


class Tower(nn.Module):
    """A dense tower that maps features to a small vector: l_i = tanh(W_i l_{i-1} + b_i) in every layer.

    The paper's eq. 3 has a linear first layer without bias and does not name the activation; tanh is the original
    DSSM's. `strict` builds that form. With biases in every layer the towers have 305,968 (item), 4,144 and 4,592 (user)
    parameters; the strict form lacks the first layer's 64 biases.

    Args:
        sizes: features, hidden sizes, output size; at least two.
        strict: build eq. 3 as published.
    """

    def __init__(self, sizes: Sequence[int], *, strict: bool = False) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes must be two or more, each at least 1, got {tuple(sizes)}")
        self.strict = strict
        self.feature_count = sizes[0]
        self.layers = nn.ModuleList(
            nn.Linear(wide, narrow, bias=not (strict and place == 0))
            for place, (wide, narrow) in enumerate(pairwise(sizes))
        )
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
        for place, layer in enumerate(self.layers):
            y = layer(y)
            if place or not self.strict:
                y = y.tanh()
        return y


class Dssm(nn.Module):
    """One view: R(u, d) = cos(y_u, y_d); P(d | u) = softmax over the candidates of gamma R.

    The paper does not give gamma; 10 is ours. A user or item whose vector is zero has cosine 0 with everything and no
    gradient, so a cold user without features does not disturb the towers.

    Args:
        user_tower: maps features of this view's users to y_u.
        item_tower: maps features of items to y_d; one module for all views of a device.
        gamma: sharpness of the softmax, above 0.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {}

    def __init__(self, user_tower: Tower, item_tower: Tower, gamma: float) -> None:
        super().__init__()
        if not gamma > 0:
            raise ValueError(f"gamma must be above 0, got {gamma}")
        self.user_tower = user_tower
        self.item_tower = item_tower
        self.gamma = gamma

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """users [b, F], items [b, R, F_item] -> R(u, d) [b, R] in [-1, 1]."""
        return cosines(self.user_tower(users), self.item_tower(items))

    def probabilities(self, users: Tensor, items: Tensor) -> Tensor:
        """users [b, F], items [b, R, F_item] -> P(d | u) [b, R]; rows sum to 1."""
        relevance: Tensor = self(users, items)
        return (self.gamma * relevance).softmax(dim=-1)

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        """-log P(d+ | u), mean over the batch: users [b, F], items [b, 1 + N_neg, F_item], clicked item first.

        The paper's eq. 1 lacks the log and compares users; this follows its eqs. 5 and 6 and Algorithm 2.
        """
        return info_nce(self.gamma * self(users, items))


class SemiDssm(Dssm):
    """SEMI: the user tower never leaves its device; only the item tower is trained jointly."""

    SCOPES: ClassVar[Mapping[str, Scope]] = {"user_tower": "private"}


class ViewRanker(nn.Module):
    """One view as a ranker of articles: the user's features are the unit mean of the view's vectors.

    The vectors of a reading view are its clicks, those of a searching view are the vectors of its queries. Both lie in
    the space of news vectors, as items do, so one graph serves every view. Scores are gamma cos(y_u, y_d); their
    softmax over the candidates is P(d | u).

    User tower and item tower start with equal weights (our choice). The score then starts near the cosine of mean click
    and candidate in fewer dimensions; two random towers would start with noise.

    Args:
        dim: D of the news vectors.
        hidden: the towers' layers after D; the last is the size of y.
        gamma: see Dssm.
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


class MultiViewDssm(nn.Module):
    """N views of one device: one user tower each and a common item tower.

    Each view trains alone, on `view(name)`, so that no view sees another view's features or gradient. The gradients of
    the item tower are summed in `local_secure_aggregate`.

    Args:
        user_towers: user towers by view name.
        item_tower: shared by all views.
        gamma: see Dssm.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {}
    VIEW: ClassVar[type[Dssm]] = Dssm

    def __init__(self, user_towers: Mapping[str, Tower], item_tower: Tower, gamma: float) -> None:
        super().__init__()
        if not user_towers:
            raise ValueError("user_towers must contain at least one view")
        self.user_towers = nn.ModuleDict(user_towers)
        self.item_tower = item_tower
        self.gamma = gamma

    def view(self, name: str) -> Dssm:
        """Return the model of one view, which shares this model's towers.

        Raises ValueError for an unknown name.
        """
        if name not in self.user_towers:
            raise ValueError(f"name must be one of {', '.join(self.user_towers)}, got {name!r}")
        tower = self.user_towers[name]
        assert isinstance(tower, Tower)
        return self.VIEW(tower, self.item_tower, self.gamma)

    def forward(self, *users_then_items: Tensor) -> Tensor:
        """Return the mean of the views' probabilities (Algorithm 2 without noise).

        Takes the users of each view [b, F_view] in the order of `user_towers`, then items [b, R, F_item] -> [b, R]. The
        device must trust the component that runs this, because it sees every view.
        """
        *users, items = users_then_items
        if len(users) != len(self.user_towers):
            raise ValueError(f"users must be given for {len(self.user_towers)} views, got {len(users)}")
        each = [self.view(name).probabilities(own, items) for name, own in zip(self.user_towers, users, strict=True)]
        return torch.stack(each).mean(dim=0)


class SemiMultiViewDssm(MultiViewDssm):
    """SEMI-FL-MV-DSSM: all user towers stay on their device."""

    SCOPES: ClassVar[Mapping[str, Scope]] = {"user_towers": "private"}
    VIEW: ClassVar[type[Dssm]] = SemiDssm

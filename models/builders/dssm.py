"""DSSM towers at the sizes of FL-MV-DSSM's Table I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from models.dssm import (
    Dssm,
    MultiViewDssm,
    SemiDssm,
    SemiMultiViewDssm,
    SemiViewRanker,
    SharedViewsRanker,
    Tower,
    ViewRanker,
)
from models.shapes import NEWS_DIM

ITEM_FEATURES = 4_739  # letter 3-grams of the title and 19 genres; a vocabulary made anew may differ
HIDDEN = (64, 32, 16)
GAMMA = 10.0  # not in the paper
NEGATIVES = 4  # N_neg, not in the paper
NEWS_HIDDEN = (64, 32)  # 18,528 parameters a tower at D = 256; Table I's 16 lose what vectors of news still tell apart


def dssm_tower(features: int, *, strict: bool = False) -> Tower:
    """features -> 64 -> 32 -> 16."""
    return Tower((features, *HIDDEN), strict=strict)


def dssm_item() -> Tower:
    """The item tower, 305,968 parameters."""
    return dssm_tower(ITEM_FEATURES)


def dssm_user(features: Literal[23, 30]) -> Tower:
    """The user tower of View-1 (23 features: age, sex, occupation; 4,144) or View-2 (30 user factors; 4,592)."""
    if features not in (23, 30):
        raise ValueError(f"features must be 23 or 30, got {features}")
    return dssm_tower(features)


def dssm_strict(features: int) -> Tower:
    """A tower with the first layer linear and without bias, as eq. 3 is printed."""
    return dssm_tower(features, strict=True)


def fl_dssm(features: Literal[23, 30]) -> Dssm:
    """FL-DSSM: one view."""
    return Dssm(dssm_user(features), dssm_item(), GAMMA)


def dssm_strict_view(features: Literal[23, 30]) -> Dssm:
    """FL-DSSM with towers as eq. 3 is printed."""
    return Dssm(dssm_strict(features), dssm_strict(ITEM_FEATURES), GAMMA)


def semi_fl_dssm(features: Literal[23, 30]) -> SemiDssm:
    """SEMI-FL-DSSM: one view, its user tower private."""
    return SemiDssm(dssm_user(features), dssm_item(), GAMMA)


def fl_mv_dssm() -> MultiViewDssm:
    """FL-MV-DSSM: both views, user towers learnt together."""
    return MultiViewDssm(_views(), dssm_item(), GAMMA)


def semi_fl_mv_dssm() -> SemiMultiViewDssm:
    """SEMI-FL-MV-DSSM: both views, user towers private."""
    return SemiMultiViewDssm(_views(), dssm_item(), GAMMA)


def multi_view_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> SemiViewRanker:
    """SEMI-FL-MV-DSSM over news vectors, as a release offers it: the item tower shared, user towers private."""
    return SemiViewRanker(dim, hidden, GAMMA)


def fl_dssm_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> ViewRanker:
    """FL-DSSM over news vectors: one view, both towers shared."""
    return ViewRanker(dim, hidden, GAMMA)


def fl_mv_dssm_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> SharedViewsRanker:
    """FL-MV-DSSM over news vectors: one view of it; the release has a user tower for each."""
    return SharedViewsRanker(dim, hidden, GAMMA)


def _views() -> dict[str, Tower]:
    return {"view_1": dssm_user(23), "view_2": dssm_user(30)}

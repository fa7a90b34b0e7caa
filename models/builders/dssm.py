"""Builders of DSSM towers and FL-MV-DSSM models, at the sizes of the paper's Table I."""

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

ITEM_FEATURES = 4_739  # letter 3-grams of the title and 19 genres; a rebuilt vocabulary may have another size
HIDDEN = (64, 32, 16)
GAMMA = 10.0  # not in the paper
NEGATIVES = 4  # N_neg, not in the paper
NEWS_HIDDEN = (64, 32)  # 18,528 parameters a tower at D = 256; Table I's 16 is too narrow to separate news vectors


def dssm_tower(features: int, *, strict: bool = False) -> Tower:
    """Return a tower features -> 64 -> 32 -> 16."""
    return Tower((features, *HIDDEN), strict=strict)


def dssm_item() -> Tower:
    """Return the item tower: 305,968 parameters."""
    return dssm_tower(ITEM_FEATURES)


def dssm_user(features: Literal[23, 30]) -> Tower:
    """Return the user tower of View-1 or View-2.

    View-1 has 23 features (age, sex, occupation) and 4,144 parameters; View-2 has 30 user factors and 4,592 parameters.
    """
    if features not in (23, 30):
        raise ValueError(f"features must be 23 or 30, got {features}")
    return dssm_tower(features)


def dssm_strict(features: int) -> Tower:
    """Return a tower whose first layer is linear and without bias, as eq. 3 is published."""
    return dssm_tower(features, strict=True)


def fl_dssm(features: Literal[23, 30]) -> Dssm:
    """Return FL-DSSM: one view."""
    return Dssm(dssm_user(features), dssm_item(), GAMMA)


def dssm_strict_view(features: Literal[23, 30]) -> Dssm:
    """Return FL-DSSM with towers as eq. 3 is published."""
    return Dssm(dssm_strict(features), dssm_strict(ITEM_FEATURES), GAMMA)


def semi_fl_dssm(features: Literal[23, 30]) -> SemiDssm:
    """Return SEMI-FL-DSSM: one view whose user tower is private."""
    return SemiDssm(dssm_user(features), dssm_item(), GAMMA)


def fl_mv_dssm() -> MultiViewDssm:
    """Return FL-MV-DSSM: both views, user towers trained jointly across devices."""
    return MultiViewDssm(_views(), dssm_item(), GAMMA)


def semi_fl_mv_dssm() -> SemiMultiViewDssm:
    """Return SEMI-FL-MV-DSSM: both views, user towers private."""
    return SemiMultiViewDssm(_views(), dssm_item(), GAMMA)


def multi_view_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> SemiViewRanker:
    """Return SEMI-FL-MV-DSSM over news vectors, as releases carry it: shared item tower, private user towers."""
    return SemiViewRanker(dim, hidden, GAMMA)


def fl_dssm_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> ViewRanker:
    """Return FL-DSSM over news vectors: one view, both towers shared."""
    return ViewRanker(dim, hidden, GAMMA)


def fl_mv_dssm_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> SharedViewsRanker:
    """Return one view of FL-MV-DSSM over news vectors; a release has a user tower for each view."""
    return SharedViewsRanker(dim, hidden, GAMMA)


def _views() -> dict[str, Tower]:
    return {"view_1": dssm_user(23), "view_2": dssm_user(30)}

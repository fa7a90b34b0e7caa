"""Builders of DSSM towers at the sizes of the paper's Table I, and of FL-MV-DSSM rankers of news."""

from collections.abc import Sequence

from models.dssm import (
    SemiViewRanker,
    SharedViewsRanker,
    Tower,
    ViewRanker,
)
from models.shapes import NEWS_DIM

HIDDEN = (64, 32, 16)
GAMMA = 10.0  # not in the paper
NEWS_HIDDEN = (64, 32)  # 18,528 parameters a tower at D = 256; Table I's 16 is too narrow to separate news vectors


def dssm_tower(features: int) -> Tower:
    """Return a tower features -> 64 -> 32 -> 16."""
    return Tower((features, *HIDDEN))


def multi_view_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> SemiViewRanker:
    """Return SEMI-FL-MV-DSSM over news vectors, as in releases: shared item tower, private user towers."""
    return SemiViewRanker(dim, hidden, GAMMA)


def fl_dssm_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> ViewRanker:
    """Return FL-DSSM over news vectors: one view, both towers shared."""
    return ViewRanker(dim, hidden, GAMMA)


def fl_mv_dssm_ranker(dim: int = NEWS_DIM, hidden: Sequence[int] = NEWS_HIDDEN) -> SharedViewsRanker:
    """Return one view of FL-MV-DSSM over news vectors; a release has a user tower for each view."""
    return SharedViewsRanker(dim, hidden, GAMMA)

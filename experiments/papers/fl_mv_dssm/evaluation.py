"""Precision, recall, nDCG at 10 and AUC of ranked films, mean over users (FL-MV-DSSM, section V)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.papers.fl_mv_dssm.protocols import MovieLensSplit
from models.metrics import by_impression, top_k

K = 10


@dataclass(frozen=True)
class Figures:
    """Means over the users with test items.

    nDCG has its usual definition, which the paper's can't have.
    """

    precision: float
    recall: float
    ndcg: float
    auc: float
    users: int


def evaluate(
    scores: NDArray[np.float32], split: MovieLensSplit, candidates: NDArray[np.int64] | None = None
) -> Figures:
    """Rank each asked user's test items among the candidates, without the user's own training items.

    scores [n, m]; candidates: columns, the protocol's own by default. Raises ValueError for a wrong shape.
    """
    if scores.shape != split.test.shape:
        raise ValueError(f"scores must have shape {split.test.shape}, got {scores.shape}")
    among = split.candidates if candidates is None else candidates
    asked = split.asked
    shown = np.ones((len(asked), scores.shape[1]), dtype=bool)
    shown[split.train[asked].nonzero()] = False
    shown = shown[:, among]
    wanted = split.test[asked].toarray()[:, among][shown] > 0
    owners = np.repeat(np.arange(len(asked)), shown.sum(axis=1))
    labels, flat = wanted.astype(np.int64), scores[asked][:, among][shown]
    top, ranked = top_k(owners, labels, flat, K), by_impression(owners, labels, flat)
    return Figures(top.precision, top.recall, top.ndcg, ranked.auc, top.impressions)

"""Ranking and recall metrics, computed for each impression and then averaged.

Ties: AUC counts a tied pair as 1/2. MRR and nDCG need one order and keep the input order among equal scores, so pass
candidates in an order that does not depend on their labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class RankingMetrics:
    """Means over the impressions with clicked and skipped articles.

    `skipped` counts the other impressions.
    """

    auc: float
    mrr: float
    ndcg5: float
    ndcg10: float
    impressions: int
    skipped: int


@dataclass(frozen=True)
class TopMetrics:
    """Means over the impressions with clicked articles; `skipped` counts the other impressions."""

    precision: float
    recall: float
    ndcg: float
    impressions: int
    skipped: int


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Share of (positive, negative) pairs in the right order; ties count 1/2."""
    ranked = _Ranked(np.zeros(np.size(labels), int), labels, scores)
    ranked.require_both_classes()
    return float(ranked.auc()[0])


def mrr(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean of 1/rank over all positives (many definitions use only the first)."""
    return by_impression(np.zeros(np.size(labels), int), labels, scores).mrr


def ndcg(labels: ArrayLike, scores: ArrayLike, k: int) -> float:
    """DCG@k with gains 2^y - 1 and discounts log2(rank + 1), divided by the ideal DCG@k."""
    _require_k(k)
    ranked = _Ranked(np.zeros(np.size(labels), int), labels, scores)
    ranked.require_both_classes()
    return float(ranked.ndcg(k)[0])


def by_impression(impressions: ArrayLike, labels: ArrayLike, scores: ArrayLike) -> RankingMetrics:
    """Metrics from flat arrays of one length: each candidate's impression, label 0 or 1, and score.

    Raises ValueError if no impression has both classes, a label is neither 0 nor 1, or a score is NaN.
    """
    ranked = _Ranked(impressions, labels, scores)
    ranked.require_both_classes()
    keep = ranked.both_classes
    return RankingMetrics(
        auc=float(ranked.auc()[keep].mean()),
        mrr=float(ranked.mrr()[keep].mean()),
        ndcg5=float(ranked.ndcg(5)[keep].mean()),
        ndcg10=float(ranked.ndcg(10)[keep].mean()),
        impressions=int(keep.sum()),
        skipped=int((~keep).sum()),
    )


def top_k(impressions: ArrayLike, labels: ArrayLike, scores: ArrayLike, k: int = 10) -> TopMetrics:
    """Precision, recall and nDCG at k from flat arrays as in `by_impression`.

    Precision divides by k, even if an impression has fewer candidates. Impressions without a positive have no recall
    and are skipped; impressions with positives only do count. Raises ValueError like `by_impression`, and for k below
    1.
    """
    _require_k(k)
    ranked = _Ranked(impressions, labels, scores)
    keep = ranked.positives > 0
    if not keep.any():
        raise ValueError("labels must contain a 1 in at least one impression")
    hits = ranked.hits(k)[keep]
    return TopMetrics(
        precision=float(hits.mean() / k),
        recall=float((hits / ranked.positives[keep]).mean()),
        ndcg=float(ranked.ndcg(k)[keep].mean()),
        impressions=int(keep.sum()),
        skipped=int((~keep).sum()),
    )


def _require_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")


class _Ranked:
    """Candidates sorted by impression, then by falling score; equal scores keep the input order."""

    def __init__(self, impressions: ArrayLike, labels: ArrayLike, scores: ArrayLike) -> None:
        group, label, score = np.asarray(impressions), np.asarray(labels), np.asarray(scores, float)
        if not (group.shape == label.shape == score.shape and group.ndim == 1 and len(group)):
            raise ValueError(
                "impressions, labels and scores must be flat, of one length and not empty, got shapes "
                f"{group.shape}, {label.shape}, {score.shape}"
            )
        if not np.isin(label, (0, 1)).all():
            raise ValueError("labels must be 0 or 1")
        if np.isnan(score).any():
            raise ValueError("scores must not be NaN")
        order = np.lexsort((-score, group))  # stable
        self._label, self._score = label[order].astype(float), score[order]
        _, self._starts, self._group = np.unique(group[order], return_index=True, return_inverse=True)
        self._rank = np.arange(len(order)) - self._starts[self._group] + 1
        self._sizes = np.bincount(self._group)
        self.positives = self._sum(self._label)
        self.both_classes = (self.positives > 0) & (self.positives < self._sizes)

    def require_both_classes(self) -> None:
        if not self.both_classes.any():
            raise ValueError("labels must contain a 0 and a 1 in at least one impression")

    def _sum(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(self._group, weights=values, minlength=len(self._sizes)).astype(np.float64)

    def auc(self) -> NDArray[np.float64]:
        """Mann-Whitney AUC, from the mean rank of each block of ties, counted from the lowest score."""
        new_block = np.ones(len(self._score), bool)
        new_block[1:] = (self._score[1:] != self._score[:-1]) | (self._group[1:] != self._group[:-1])
        block = np.cumsum(new_block) - 1
        mean_rank = np.bincount(block, weights=self._rank) / np.bincount(block)
        from_worst = self._sizes[self._group] + 1 - mean_rank[block]
        pairs = np.maximum(self.positives * (self._sizes - self.positives), 1)
        return (self._sum(self._label * from_worst) - self.positives * (self.positives + 1) / 2) / pairs

    def hits(self, k: int) -> NDArray[np.float64]:
        """Positives among the first k."""
        return self._sum(self._label * (self._rank <= k))

    def mrr(self) -> NDArray[np.float64]:
        return self._sum(self._label / self._rank) / np.maximum(self.positives, 1)

    def ndcg(self, k: int) -> NDArray[np.float64]:
        discount = np.where(self._rank <= k, 1 / np.log2(self._rank + 1), 0)
        ideal = np.where(self._rank <= self.positives[self._group], discount, 0)
        best = self._sum(ideal)
        return np.divide(self._sum(self._label * discount), best, out=np.zeros_like(best), where=best > 0)

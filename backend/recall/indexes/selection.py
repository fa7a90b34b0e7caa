"""Chooses the index that answers recall.

`IndexRules.under` decides first: with the setting `index = auto` and a narrow basis, as by default, the scan of the
basis (`basis.py`) answers reports, and the vectors have no index. Otherwise `choose_index` builds an exact or an
approximate one by its recall. An index that the operator names serves at any recall.

Recall@400 over held-out queries must reach 0.99. Two kinds of queries are measured separately, and the lower figure
decides: near queries, an article's vector moved slightly; and wide queries, softmax mixtures of centroids under Laplace
noise, as `decode.compose` makes them from reports. Wide queries lie between the inverted lists and are much harder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from backend.recall.indexes.faiss import FaissIndex
from backend.recall.indexes.fastscan import ScanIndex
from backend.recall.indexes.index import NO_KEY, ExactIndex, Keys, VectorIndex, Vectors

RECALL_DEPTH = 400
RECALL_REQUIRED = 0.99
QUERIES_OF_A_SORT = 64
AUTO, BASIS = "auto", "basis"
NARROW = 2
"""The basis is scanned if vectors have at least this many times as many dimensions as it has interests."""
FEWEST_APPROXIMATE = 64
"""Below this number of articles every index is the exact one: neither inverted lists nor codes can be trained on
fewer."""
_CENTROIDS, _SCORE_SPREAD, _SCORE_NOISE = 30, 0.2, 1.2  # B, delta and lambda_I of the paper

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexRules:
    """The settings of indexes.

    exact_limit: the number of articles up to which the index is exact, if `name` is AUTO and not one of `INDEXES`;
    threads: FAISS threads within one search. With name BASIS, reports are answered by a scan of the release's basis
    (`basis.py`), so the vectors have no index of their own.
    """

    exact_limit: int = 20_000
    threads: int = 1
    name: str = AUTO

    @property
    def recall_required(self) -> float:
        """Recall that an approximate index must reach to serve.

        Any recall suffices for an index named by the operator.
        """
        return RECALL_REQUIRED if self.name == AUTO else 0.0

    def under(self, basis_size: int, dimensions: int) -> IndexRules:
        """These rules for a release with such a basis: AUTO becomes BASIS if a scan of it reads less."""
        return replace(self, name=BASIS) if self.name == AUTO and NARROW * basis_size <= dimensions else self

    def suit(self, index: VectorIndex, count: int, *, fell_short: bool) -> bool:
        """Return whether a pool of this size may keep this index.

        fell_short: whether other indexes were tried without success.
        """
        if count < FEWEST_APPROXIMATE:
            return index.exact
        if self.name != AUTO:
            return index.name == self.name and index.suits(count)
        if index.exact:
            return count <= self.exact_limit or fell_short
        return count > self.exact_limit and index.suits(count)


@dataclass(frozen=True)
class IndexStatus:
    """Which index serves and how it was chosen, for the console.

    recall_at_400 is None for an exact index.
    """

    kind: str
    news: int
    recall_at_400: float | None
    refused: tuple[str, ...] = ()


def held_out_queries(vectors: Vectors, seed: int = 2) -> dict[str, Vectors]:
    """Queries by kind, each [QUERIES_OF_A_SORT, D].

    The draw is seeded, so that a build is reproducible.
    """
    draw = np.random.default_rng(seed)
    count, dimensions = vectors.shape
    picked = vectors[draw.integers(count, size=QUERIES_OF_A_SORT)]
    lengths = np.linalg.norm(picked, axis=1, keepdims=True)
    moved = picked + 0.3 * lengths / np.sqrt(dimensions) * draw.standard_normal(picked.shape)
    pivots = vectors[draw.integers(count, size=_CENTROIDS)]
    sample = vectors[draw.integers(count, size=min(count, 4_000))]
    nearest = (sample @ pivots.T).argmax(axis=1)
    centroids = np.stack(
        [sample[nearest == c].mean(axis=0) if (nearest == c).any() else pivots[c] for c in range(_CENTROIDS)]
    )
    shape = (QUERIES_OF_A_SORT, _CENTROIDS)
    scores = draw.uniform(-_SCORE_SPREAD, _SCORE_SPREAD, shape) + draw.laplace(0.0, _SCORE_NOISE, shape)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    wide = weights / weights.sum(axis=1, keepdims=True) @ centroids
    return {"near": moved.astype(np.float32), "wide": wide.astype(np.float32)}


class IndexRecall:
    """Measures a pool's indexes against exact search, whose answers are computed once."""

    def __init__(self, keys: Keys, vectors: Vectors, depth: int = RECALL_DEPTH) -> None:
        self._depth = min(depth, len(keys))
        self._queries = held_out_queries(vectors)
        oracle = ExactIndex.over(keys, vectors)
        self._truth = {sort: oracle.search(queries, self._depth)[1] for sort, queries in self._queries.items()}

    def recall(self, index: VectorIndex) -> float:
        """Share of the true nearest neighbours that the index finds, for the worst kind of queries: 0 to 1."""
        return min(
            overlap(self._truth[sort], index.search(queries, self._depth)[1]) for sort, queries in self._queries.items()
        )


def overlap(truth: Keys, found: Keys) -> float:
    """Mean share of each row of `truth` that the same row of `found` contains."""
    shares = [np.isin(true[true != NO_KEY], row).mean() for true, row in zip(truth, found, strict=True)]
    return float(np.mean(shares))


def tune(index: VectorIndex, gate: IndexRecall) -> float:
    """Raise the effort until the recall suffices or no effort is left; returns the recall reached."""
    recall = gate.recall(index)
    for effort in index.efforts:
        if recall >= RECALL_REQUIRED:
            break
        if effort > index.effort:
            index.effort = effort
            recall = gate.recall(index)
    return recall


def choose_index(
    keys: Keys, vectors: Vectors, *, exact_limit: int, threads: int, name: str = AUTO
) -> tuple[VectorIndex, IndexStatus]:
    """Build the index that serves this pool: exact up to `exact_limit` articles, else the first with enough recall.

    Candidates are tried in the order of `_APPROXIMATE`, then exact search. Candidates with too little recall are logged
    and stay in the status.

    name: one of INDEXES, to use that index at any pool size, tuned as far as possible. It serves even if its recall is
    too low, and the status shows its recall. A pool smaller than FEWEST_APPROXIMATE is always searched exactly.
    """
    if len(keys) < FEWEST_APPROXIMATE or (name == AUTO and len(keys) <= exact_limit):
        name = "exact"
    if name != AUTO:
        return _named(name, keys, vectors, threads)
    gate = IndexRecall(keys, vectors)
    refused: list[str] = []
    for kind in _APPROXIMATE:
        index = INDEXES[kind](keys, vectors, threads)
        recall = tune(index, gate)
        if recall >= RECALL_REQUIRED:
            _log.info("%s passed the gate with recall@%d %.4f", index.kind, RECALL_DEPTH, recall)
            return index, IndexStatus(index.kind, len(keys), recall, tuple(refused))
        refused.append(f"{index.kind}: recall@{RECALL_DEPTH} {recall:.4f}, wanted {RECALL_REQUIRED}")
        _log.warning("the gate refused %s", refused[-1])
    _log.warning("no approximate index passed the gate: searching %d articles exactly", len(keys))
    return _flat(keys, vectors, threads), IndexStatus("exact", len(keys), None, tuple(refused))


def _named(name: str, keys: Keys, vectors: Vectors, threads: int) -> tuple[VectorIndex, IndexStatus]:
    index = INDEXES[name](keys, vectors, threads)
    if index.exact:
        return index, IndexStatus(index.kind, len(keys), None)
    recall = tune(index, IndexRecall(keys, vectors))
    if recall < RECALL_REQUIRED:
        _log.warning(
            "%s reaches recall@%d %.4f only; it serves since the settings name it", index.kind, RECALL_DEPTH, recall
        )
    return index, IndexStatus(index.kind, len(keys), recall)


def _flat(keys: Keys, vectors: Vectors, threads: int) -> VectorIndex:
    return FaissIndex.flat(keys, vectors, threads=threads)


def _inverted(keys: Keys, vectors: Vectors, threads: int) -> VectorIndex:
    return FaissIndex.inverted(keys, vectors, storage="SQ8", threads=threads)


def _scanned(keys: Keys, vectors: Vectors, threads: int) -> VectorIndex:
    return ScanIndex.over(keys, vectors, threads=threads)


INDEXES: Mapping[str, Callable[[Keys, Vectors, int], VectorIndex]] = {
    "exact": _flat,
    "ivf": _inverted,
    "fastscan": _scanned,
}
"""Builders by their name in the setting `index`."""
_APPROXIMATE = ("ivf", "fastscan")

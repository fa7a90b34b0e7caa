"""Which index serves the next catalogue: the last one with the changes worked in, the kept one, or a new one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.errors import IndexBroken
from backend.recall.exact_index import ExactIndex
from backend.recall.index import Keys, VectorIndex, VectorRows, Vectors
from backend.recall.index_selection import (
    AUTO,
    BASIS,
    FEWEST_APPROXIMATE,
    RECALL_REQUIRED,
    IndexRecall,
    IndexStatus,
    choose_index,
    tune,
)
from backend.recall.index_store import IndexStore, content_digest
from backend.storage.object_store import StorageUnavailable

NARROW = 2
"""A basis is scanned where vectors have at least so many times as many dimensions as it has interests."""
REBUILD_SHARE = 0.25
"""Beyond this share of new and gone news the lists of an IVF index no longer fit: it is trained anew."""

ASK_AGAIN_SEC = 0.5
"""Between two looks for an index that another process builds."""
Turn = Callable[[], AbstractContextManager[bool]]
"""Whether a piece of work is this process's while the block runs."""

_log = logging.getLogger(__name__)


class IndexBeingBuilt(Exception):
    """Another process builds the index of this pool: it can be taken soon, and the one before serves meanwhile."""


@dataclass(frozen=True)
class IndexRules:
    """exact_limit: up to so many news the index is exact, if `name` is AUTO and not of `index_selection.INDEXES`;
    threads: FAISS threads within one search. name BASIS: reports are answered by a scan of the release's basis
    (`basis_scan.py`), so the vectors get no index of their own."""

    exact_limit: int = 20_000
    threads: int = 1
    name: str = AUTO

    @property
    def recall_required(self) -> float:
        """Which an approximate index has to reach to serve: whatever one reaches that is named."""
        return RECALL_REQUIRED if self.name == AUTO else 0.0

    def under(self, basis_size: int, dimensions: int) -> IndexRules:
        """These rules where a release has such a basis: AUTO becomes BASIS where a scan of it looks at less."""
        return replace(self, name=BASIS) if self.name == AUTO and narrow(basis_size, dimensions) else self

    def suit(self, index: VectorIndex, count: int, *, fell_short: bool) -> bool:
        """Whether a pool of so many news may go on with this index; fell_short: others were tried for it in vain."""
        if count < FEWEST_APPROXIMATE:
            return index.exact
        if self.name != AUTO:
            return index.name == self.name and index.suits(count)
        if index.exact:
            return count <= self.exact_limit or fell_short
        return count > self.exact_limit and index.suits(count)


@dataclass(frozen=True)
class Indexed:
    """An index and what it holds: keys [n] ascending, and vectors [n, D] as the catalogue has them, not a copy."""

    keys: Keys
    vectors: VectorRows
    index: VectorIndex
    status: IndexStatus


def grow(previous: Indexed, keys: Keys, vectors: Vectors, rules: IndexRules) -> Indexed | None:
    """Work the difference into a copy of the previous index; None where building anew is better.

    The previous index is left as it is, for searches under way. An approximate index passes the gate again, with more
    probes if need be, or is built anew.
    """
    if previous.vectors.shape[1] != vectors.shape[1] or not len(keys) or not len(previous.keys):
        return None
    stays_old, stays_new = _unchanged(previous, keys, vectors)
    gone, new = previous.keys[~stays_old], ~stays_new
    if len(gone) + int(new.sum()) > REBUILD_SHARE * len(keys) or _outgrown(previous, len(keys), rules):
        return None
    index = previous.index.copy()
    index.remove(gone)
    index.add(keys[new], vectors[new])
    status = replace(previous.status, kind=index.kind, news=len(keys))
    if not index.exact:
        recall = tune(index, IndexRecall(keys, vectors))
        if recall < rules.recall_required:
            _log.warning("after changes %s reaches recall@400 %.4f only: building anew", index.kind, recall)
            return None
        status = replace(status, kind=index.kind, recall_at_400=recall)
    return Indexed(keys, vectors, index, status)


def index_news(
    keys: Keys,
    rows: VectorRows,
    *,
    previous: Indexed | None,
    kept: IndexStore,
    encoder: str,
    pool_version: int,
    rules: IndexRules,
    turn: Turn = lambda: nullcontext(True),
) -> Indexed:
    """The index over these vectors, by the cheapest way that is right; a changed one is kept for the other processes.

    A full disk, or a storage that doesn't answer, is logged, and the server goes on with the index in memory.
    turn: whether no other process builds one while its block runs. Where one does, this raises IndexBeingBuilt, or
    waits where there is no previous index to serve meanwhile.
    """
    if rules.name == BASIS:
        return Indexed(keys, rows, ExactIndex.over(keys, rows), IndexStatus(BASIS, len(keys), None))
    vectors = np.asarray(rows)
    content = content_digest(keys, vectors)  # once: a second of a processor for a million news
    while True:
        found = _kept(kept, content, keys, vectors, encoder, rules)
        if isinstance(found, Indexed):
            return replace(found, vectors=rows)
        with turn() as mine:
            if mine:
                indexed = None if previous is None else grow(previous, keys, vectors, rules)
                if indexed is None:
                    _log.info("building the index over %d news: %s", len(keys), found)
                    index, status = choose_index(
                        keys, vectors, exact_limit=rules.exact_limit, threads=rules.threads, name=rules.name
                    )
                    indexed = Indexed(keys, vectors, index, status)
                _keep(kept, content, indexed, encoder, pool_version)
                return replace(indexed, vectors=rows)
        if previous is not None:
            raise IndexBeingBuilt
        time.sleep(ASK_AGAIN_SEC)


def _kept(
    kept: IndexStore, content: str, keys: Keys, vectors: Vectors, encoder: str, rules: IndexRules
) -> Indexed | str:
    """What another process, or an earlier start, has built over these vectors; or why there is nothing to take."""
    try:
        index, status = kept.load(content=content, keys=keys, vectors=vectors, encoder=encoder, threads=rules.threads)
    except IndexBroken as broken:
        return broken.detail
    except (OSError, StorageUnavailable) as refused:
        return str(refused)
    found = Indexed(keys, vectors, index, status)
    return "The settings ask for another kind." if _outgrown(found, len(keys), rules) else found


def _keep(kept: IndexStore, content: str, indexed: Indexed, encoder: str, pool_version: int) -> None:
    try:
        kept.keep(indexed.index, indexed.status, content=content, encoder=encoder, pool_version=pool_version)
    except (OSError, StorageUnavailable) as refused:
        why = refused.strerror if isinstance(refused, OSError) else None
        _log.warning("the index could not be kept (%s); it serves from memory", why or refused)


def narrow(basis_size: int, dimensions: int) -> bool:
    """Whether the coordinates in the span of a basis are much less than the vectors."""
    return NARROW * basis_size <= dimensions


def _outgrown(indexed: Indexed, count: int, rules: IndexRules) -> bool:
    """Whether a pool of this size, or the settings, call for another kind of index than this one."""
    return not rules.suit(indexed.index, count, fell_short=bool(indexed.status.refused))


def _unchanged(previous: Indexed, keys: Keys, vectors: Vectors) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which old rows and which new rows hold the same vector under the same key."""
    _, old_rows, new_rows = np.intersect1d(previous.keys, keys, assume_unique=True, return_indices=True)
    same = (previous.vectors[old_rows] == vectors[new_rows]).all(axis=1)
    old, new = np.zeros(len(previous.keys), dtype=bool), np.zeros(len(keys), dtype=bool)
    old[old_rows[same]] = True
    new[new_rows[same]] = True
    return old, new

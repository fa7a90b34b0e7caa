"""Gets the next catalogue's index: the previous one updated, a stored one, or a new one.

`indexes/selection.py` says which kind of index it is.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.errors import IndexBroken
from backend.recall.indexes.index import ExactIndex, Keys, VectorIndex, VectorRows, Vectors
from backend.recall.indexes.selection import (
    BASIS,
    IndexRecall,
    IndexRules,
    IndexStatus,
    choose_index,
    tune,
)
from backend.recall.indexes.store import IndexStore, content_digest
from backend.storage.object_store import StorageUnavailable

REBUILD_SHARE = 0.25
"""Beyond this share of new and removed articles the lists of an IVF index no longer fit, and it is trained again."""

ASK_AGAIN_SEC = 0.5
"""Seconds between two polls for an index that another process builds."""
Turn = Callable[[], AbstractContextManager[bool]]
"""A lock that yields whether this process holds it while the block runs."""

_log = logging.getLogger(__name__)


class IndexBeingBuilt(Exception):
    """Another process builds this pool's index.

    It can be loaded soon, and the previous index serves meanwhile.
    """


@dataclass(frozen=True)
class Indexed:
    """An index and its content: keys [n] ascending, and vectors [n, D], shared with the catalogue."""

    keys: Keys
    vectors: VectorRows
    index: VectorIndex
    status: IndexStatus


def grow(previous: Indexed, keys: Keys, vectors: Vectors, rules: IndexRules) -> Indexed | None:
    """Apply the difference to a copy of the previous index; None if a new build is better.

    The previous index is unchanged, for searches in progress. An approximate index must pass the recall check again,
    with more effort if needed, or is rebuilt.
    """
    if previous.vectors.shape[1] != vectors.shape[1] or not len(keys) or not len(previous.keys):
        return None
    stays_old, stays_new = _unchanged(previous, keys, vectors)
    removed, new = previous.keys[~stays_old], ~stays_new
    if len(removed) + int(new.sum()) > REBUILD_SHARE * len(keys) or _outgrown(previous, len(keys), rules):
        return None
    index = previous.index.copy()
    index.remove(removed)
    index.add(keys[new], vectors[new])
    status = replace(previous.status, kind=index.kind, news=len(keys))
    if not index.exact:
        recall = tune(index, IndexRecall(keys, vectors))
        if recall < rules.recall_required:
            _log.warning("after changes %s reaches only recall@400 %.4f: rebuilding", index.kind, recall)
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
    """Return the index over these vectors by the cheapest correct way.

    A changed one is stored for the other processes.

    A full disk, or a storage that doesn't answer, is logged, and the server continues with the index in memory.

    turn: the indexing lock. If another process builds an index, this raises IndexBeingBuilt, or waits if there is no
    previous index to serve meanwhile.
    """
    if rules.name == BASIS:
        return Indexed(keys, rows, ExactIndex.over(keys, rows), IndexStatus(BASIS, len(keys), None))
    vectors = np.asarray(rows)
    content = content_digest(keys, vectors)  # once: a second of processor time for a million articles
    while True:
        found = _kept(kept, content, keys, vectors, encoder, rules)
        if isinstance(found, Indexed):
            return replace(found, vectors=rows)
        with turn() as mine:
            if mine:
                indexed = None if previous is None else grow(previous, keys, vectors, rules)
                if indexed is None:
                    _log.info("building the index over %d articles: %s", len(keys), found)
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
    """The index that another process or an earlier start has stored for these vectors; else the reason for having
    none."""
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
        _log.warning("the index could not be stored (%s); it serves from memory", why or refused)


def _outgrown(indexed: Indexed, count: int, rules: IndexRules) -> bool:
    """Whether this pool size, or the settings, require another kind of index."""
    return not rules.suit(indexed.index, count, fell_short=bool(indexed.status.refused))


def _unchanged(previous: Indexed, keys: Keys, vectors: Vectors) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the old rows and of the new rows that hold the same vector under the same key."""
    _, old_rows, new_rows = np.intersect1d(previous.keys, keys, assume_unique=True, return_indices=True)
    same = (previous.vectors[old_rows] == vectors[new_rows]).all(axis=1)
    old, new = np.zeros(len(previous.keys), dtype=bool), np.zeros(len(keys), dtype=bool)
    old[old_rows[same]] = True
    new[new_rows[same]] = True
    return old, new

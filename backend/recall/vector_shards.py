"""The live catalogue's vectors in shards of whole days.

With them a device can refresh the vectors of its clicked articles.

A shard is a publishing day (UTC), or a part of it; a whole month or year of older articles, of which a feed's newest
are kept at any age. A request for one reveals that the device has some article of that
day, as does every device that had the default list that day.
"""

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC
from weakref import ref as weak_ref

import numpy as np
from numpy.typing import NDArray

from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.releases.blobs import digest
from backend.releases.errors import UnknownShard
from protocol.ids import Sha256, ShardName
from protocol.releases import BlobRef, ShardRef
from protocol.tensors import pack, quantise

SHARD_ROWS = 4_096
BLOBS_KEPT = 16


@dataclass(frozen=True)
class _Shards:
    """The shards of one catalogue, without a reference to it: their rows, and the blobs' hashes."""

    catalogue: weak_ref[Catalogue]
    rows: dict[ShardName, NDArray[np.intp]]
    refs: dict[ShardName, ShardRef]


class VectorShardStore:
    """Makes shards when they are first requested; the last few blobs stay in memory by their hash."""

    def __init__(self, live: LiveCatalogue) -> None:
        self._live = live
        self._cut: _Shards | None = None
        self._blobs: OrderedDict[Sha256, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def list(self) -> tuple[str, tuple[ShardRef, ...]]:
        """The encoder's digest and all shards, oldest day first."""
        catalogue, shards = self._current()
        return catalogue.encoder, tuple(shards.refs[name] for name in sorted(shards.refs, key=by_day))

    def blob(self, name: ShardName) -> tuple[ShardRef, bytes]:
        """One shard: `codes` int8 [n, D] and `scales` float32 [n]. Raises UnknownShard."""
        catalogue, shards = self._current()
        ref = _known(shards, name)
        kept = self.by_hash(ref.blob.sha256)
        return ref, kept if kept is not None else self._keep(_cut(catalogue, shards.rows[name]))

    def ids(self, name: ShardName) -> tuple[ShardRef, bytes]:
        """The ids of one shard's rows, in row order, as a JSON list. Raises UnknownShard."""
        catalogue, shards = self._current()
        ref = _known(shards, name)
        return ref, json.dumps([catalogue.ids[row] for row in shards.rows[name]]).encode()

    def by_hash(self, sha256: Sha256) -> bytes | None:
        """A shard's bytes by their hash, if they are still in memory."""
        with self._lock:
            if sha256 in self._blobs:
                self._blobs.move_to_end(sha256)
            return self._blobs.get(sha256)

    def _current(self) -> tuple[Catalogue, _Shards]:
        catalogue = self._live.current
        cut = self._cut
        if cut is None or cut.catalogue() is not catalogue:
            rows = days_of(catalogue)
            refs = {name: self._ref(name, _cut(catalogue, mine), len(mine)) for name, mine in rows.items()}
            self._cut = cut = _Shards(weak_ref(catalogue), rows, refs)
        return catalogue, cut

    def _ref(self, name: ShardName, blob: bytes, count: int) -> ShardRef:
        self._keep(blob)
        return ShardRef(name=name, blob=BlobRef(sha256=digest(blob), size_bytes=len(blob)), count=count)

    def _keep(self, blob: bytes) -> bytes:
        with self._lock:
            self._blobs[digest(blob)] = blob
            while len(self._blobs) > BLOBS_KEPT:
                self._blobs.popitem(last=False)
        return blob


def days_of(catalogue: Catalogue) -> dict[ShardName, NDArray[np.intp]]:
    """Rows by shard.

    Rows of one day keep the catalogue's order, so articles that arrive later change only its end.
    """
    if not len(catalogue.ids):
        return {}  # numpy.split would return one part for no days
    published = _periods(catalogue.published_at, np.datetime64(catalogue.built_at.astimezone(UTC).date()))
    order = np.argsort(published, kind="stable")
    days, starts = np.unique(published[order], return_index=True)
    return {
        f"{day}.{part}": rows[start : start + SHARD_ROWS]
        for day, rows in zip(days, np.split(order, starts[1:]), strict=True)
        for part, start in enumerate(range(0, len(rows), SHARD_ROWS))
    }


def _periods(published_at: NDArray[np.datetime64], today: np.datetime64) -> NDArray[np.datetime64]:
    """The day of each article [n]; before the previous month its month's first day, before the previous year its
    year's."""
    days = published_at.astype("datetime64[D]")
    months, years = days.astype("datetime64[M]"), days.astype("datetime64[Y]")
    by_day = months >= today.astype("datetime64[M]") - 1
    by_month = years >= today.astype("datetime64[Y]") - 1
    return np.where(by_day, days, np.where(by_month, months.astype(days.dtype), years.astype(days.dtype)))


def _cut(catalogue: Catalogue, rows: NDArray[np.intp]) -> bytes:
    return pack(quantise(catalogue.vectors[rows]))


def _known(shards: _Shards, name: ShardName) -> ShardRef:
    if name not in shards.refs:
        raise UnknownShard
    return shards.refs[name]


def by_day(name: ShardName) -> tuple[str, int]:
    day, part = name.split(".")
    return day, int(part)

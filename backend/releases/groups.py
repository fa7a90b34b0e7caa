"""The group models of a release's ranker (`ModelEntry.groups`): how they begin, and their blobs as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.releases.codebooks import topic_centroids
from backend.releases.errors import ReleaseNotPublished
from device_app.wire.releases import BlobRef, Groups, ModelEntry
from device_app.wire.tensors import TensorSpec, pack, unpack

if TYPE_CHECKING:
    from backend.releases.store import ReleaseStore

CENTROIDS = "centroids"
CENTROIDS_LIMIT_BYTES = 16 * 1024 * 1024
DIRECTIONS = "basis_values"
"""Of the recall model: its basic interests [B, D] among the news, which begin as topic centroids of the pool."""


def first_groups(store: ReleaseStore, entry: ModelEntry, recall: ModelEntry, *, size: int, seed: int) -> ModelEntry:
    """The ranker with `size` groups that all begin at its own weights.

    The centroids are K-means of the recall model's basic interests, so the first groups are topics of the news and tell
    nothing about any reader. Raises ReleaseNotPublished if there are fewer interests than groups, or no weights.
    """
    if entry.weights is None or recall.weights is None:
        raise ReleaseNotPublished("Groups need a ranker and a recall model with weights.", field="weights")
    weights = store.read_weights(entry.weights)
    directions = store.read_weights(recall.weights)[DIRECTIONS]
    found, _ = topic_centroids(directions, basis_size=size, seed=seed)
    centroids = put_centroids(store, found / np.linalg.norm(found, axis=1, keepdims=True))
    groups = Groups(
        size=size,
        weights=put_weights(store, {name: np.repeat(value[None], size, axis=0) for name, value in weights.items()}),
        centroids=centroids,
        vectors=entry.weights,
        next_centroids=centroids,
        next_vectors=entry.weights,
    )
    return entry.model_copy(update={"groups": groups})


def put_weights(store: ReleaseStore, weights: Mapping[str, NDArray[np.float32]]) -> BlobRef:
    """Each parameter [K, *shape] as a blob."""
    return store.add_blob(pack({name: np.asarray(value, dtype=np.float32) for name, value in weights.items()}))


def put_centroids(store: ReleaseStore, centroids: NDArray[np.floating[Any]]) -> BlobRef:
    """[K, D] as a blob."""
    return store.add_blob(pack({CENTROIDS: np.asarray(centroids, dtype=np.float32)}))


def read_centroids(store: ReleaseStore, ref: BlobRef, size: int) -> NDArray[np.float32]:
    """[K, D]. Raises TensorError for another blob."""
    specs = {CENTROIDS: TensorSpec("float32", (size, None))}
    return unpack(store.read_blob(ref.sha256), specs, limit_bytes=CENTROIDS_LIMIT_BYTES)[CENTROIDS]

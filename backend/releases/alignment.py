"""What a release holds in the space of its news vectors, carried over when another encoder makes them.

Training the news model turns the space. Directions that were found in it once (prototypes of reports, the projection,
the values of basic interests, centroids of groups) would age, and those that were learned can't be found anew. So the
space's own turn is read off the pool, which has vectors by both encoders, and everything is turned with it.

A turn and not the best linear map: it keeps lengths and angles, so the reader nearest to a prototype stays nearest to
it, a code keeps its meaning and need not be paid for again, projections stay orthonormal, and thousands of releases
don't wear the directions out. What of the change is no turn is what the encoder learned, and stays a change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.releases.groups import CENTROIDS, put_centroids, read_centroids
from device_app.wire.releases import BlobRef, Codebook, ModelEntry, Projection
from device_app.wire.tensors import pack

if TYPE_CHECKING:
    from backend.releases.draft import ReleaseDraft
    from backend.releases.store import ReleaseStore

Floats = NDArray[np.float64]

PULL = 1e-4
"""How strongly directions in which the pool has next to nothing are held where they are, in parts of the mean one."""
RECALL = "recall"
FOLDED = ("attention.query.weight", "attention.key.weight", "attention.value.weight")
"""Of the recall model: the maps that read click vectors. Turned, they give the contexts they gave before, so channels,
cluster distance, keys and scores stay as they are."""
VALUES, KEYS = "basis_values", "basis_keys"
"""Of the recall model: what is compared with news, and what is compared with contexts."""


@dataclass(frozen=True)
class ProcrustesAlignment:
    """matrix Q [D, D], orthogonal: the space's new vectors are nearly its old ones times Q.

    moved: mean squared distance of old and new vectors. left: the share of it that the turn doesn't explain.
    """

    matrix: Floats
    moved: float
    left: float

    @classmethod
    def between(cls, old: NDArray[np.floating[Any]], new: NDArray[np.floating[Any]]) -> ProcrustesAlignment:
        """Orthogonal Procrustes (Schoenemann 1966) over the same news' vectors [n, D] by two encoders.

        Raises ValueError unless both are finite and of one shape with at least a row.
        """
        if old.shape != new.shape or old.ndim != 2 or not len(old):
            raise ValueError(f"old, new: [n, D] of the same news, got {old.shape} and {new.shape}")
        before, after = old.astype(np.float64), new.astype(np.float64)
        if not (np.isfinite(before).all() and np.isfinite(after).all()):
            raise ValueError("old, new: not finite")
        n, D = before.shape
        held = PULL * float(np.square(before).sum()) / D
        left, _, right = np.linalg.svd(before.T @ after + held * np.eye(D))
        matrix = left @ right
        moved = float(np.square(after - before).sum())
        unexplained = float(np.square(after - before @ matrix).sum())
        return cls(matrix, moved / n, unexplained / moved if moved else 0.0)

    def __call__(self, rows: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Directions [.., D] in the new space."""
        return np.asarray(rows.astype(np.float64) @ self.matrix, dtype=np.float32)


def aligned(draft: ReleaseDraft, alignment: ProcrustesAlignment, store: ReleaseStore) -> ReleaseDraft:
    """The draft with codebooks, projection, recall model and centroids of groups in the turned space.

    Weights of rankers stay as they are: an inner product of what their heads give with a candidate has no turn that can
    be folded into them. One that was trained by the same round has followed; others follow in rounds of their own.
    """
    recall = draft.recall
    projection = recall.projection
    changes = {
        "codebooks": tuple(_codebook(book, alignment, store) for book in recall.codebooks),
        "projection": None if projection is None else _projection(projection, alignment, store),
    }
    return replace(
        draft,
        recall=recall.model_copy(update=changes),
        models={name: _model(name, entry, alignment, store) for name, entry in draft.models.items()},
    )


def _codebook(book: Codebook, alignment: ProcrustesAlignment, store: ReleaseStore) -> Codebook:
    blob = _turned(book.prototypes, ("prototypes",), alignment, store)
    return book.model_copy(update={"prototypes": blob, "lineage": book.origin})


def _projection(projection: Projection, alignment: ProcrustesAlignment, store: ReleaseStore) -> Projection:
    blob = _turned(projection.matrix, ("projection",), alignment, store)
    return projection.model_copy(update={"matrix": blob, "lineage": projection.origin})


def _model(name: str, entry: ModelEntry, alignment: ProcrustesAlignment, store: ReleaseStore) -> ModelEntry:
    if name == RECALL and entry.weights is not None:
        # Without such maps the contexts are the clicks themselves, which have turned.
        reads = FOLDED if set(FOLDED) <= set(store.read_weights(entry.weights)) else (KEYS,)
        return entry.model_copy(update={"weights": _turned(entry.weights, (*reads, VALUES), alignment, store)})
    if (groups := entry.groups) is None:
        return entry
    centroids = {
        which: put_centroids(store, alignment(read_centroids(store, getattr(groups, which), groups.size)))
        for which in (CENTROIDS, f"next_{CENTROIDS}")
    }
    return entry.model_copy(update={"groups": groups.model_copy(update=centroids)})


def _turned(ref: BlobRef, names: tuple[str, ...], alignment: ProcrustesAlignment, store: ReleaseStore) -> BlobRef:
    """A blob of tensors with those of these names turned."""
    tensors = store.read_weights(ref)
    return store.add_blob(pack({name: alignment(each) if name in names else each for name, each in tensors.items()}))

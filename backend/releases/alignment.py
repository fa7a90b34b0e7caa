"""Rotate a release's directions in the space of news vectors when the encoder changes.

Training the news model rotates the space. Directions found in it earlier (prototypes of reports, the values of basic
interests, centroids of groups) would become outdated, and learned ones can't be computed again. So the rotation of the
space is estimated from the pool, which has vectors by both encoders, and everything is rotated with it.

It is a rotation and not the best linear map, because it keeps lengths and angles: the reader nearest to a prototype
stays nearest to it, a code keeps its meaning and needs no new payment, and thousands of releases don't degrade the
directions. The part of the change that isn't a rotation is what the encoder learned, and remains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.releases.codebooks import CENTROIDS, put_centroids, read_centroids
from protocol.releases import BlobRef, Codebook, ModelEntry
from protocol.tensors import pack

if TYPE_CHECKING:
    from backend.releases.blobs import ReleaseDraft
    from backend.releases.store import ReleaseStore

Floats = NDArray[np.float64]

PULL = 1e-4
"""How strongly directions with almost no variance in the pool are kept in place, relative to the mean direction."""
RECALL = "recall"
FOLDED = ("attention.query.weight", "attention.key.weight", "attention.value.weight")
"""Parameters of the recall model: the maps that read click vectors. Rotated, they give the same contexts as before, so
channels, cluster distance, keys and scores stay the same.
"""
VALUES, KEYS = "basis_values", "basis_keys"
"""Parameters of the recall model: those that are compared with articles, and those that are compared with contexts."""


@dataclass(frozen=True)
class ProcrustesAlignment:
    """matrix Q [D, D], orthogonal: the new vectors are approximately the old ones times Q.

    moved: mean squared distance of old and new vectors. left: the share of it that the rotation doesn't explain.
    """

    matrix: Floats
    moved: float
    left: float

    @classmethod
    def between(cls, old: NDArray[np.floating[Any]], new: NDArray[np.floating[Any]]) -> ProcrustesAlignment:
        """Return the orthogonal Procrustes alignment of the same articles' vectors [n, D].

        Source: Schoenemann 1966.

        old, new: by the two encoders. Raises ValueError unless both are finite and have the same shape with at least
        one row.
        """
        if old.shape != new.shape or old.ndim != 2 or not len(old):
            raise ValueError(f"old, new: must be [n, D] of the same articles, got {old.shape} and {new.shape}")
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
        """Return directions [.., D] in the new space."""
        return np.asarray(rows.astype(np.float64) @ self.matrix, dtype=np.float32)


def aligned(draft: ReleaseDraft, alignment: ProcrustesAlignment, store: ReleaseStore) -> ReleaseDraft:
    """Return the draft with everything that lies in the news space rotated.

    That is codebooks, recall model and group centroids. Weights of rankers stay unchanged: the rotation can't be folded
    into them, because their heads' outputs are compared with candidates by an inner product. A ranker that was trained
    in the same round already fits; others adapt in their own rounds.
    """
    recall = draft.recall
    codebooks = tuple(_codebook(book, alignment, store) for book in recall.codebooks)
    return replace(
        draft,
        recall=recall.model_copy(update={"codebooks": codebooks}),
        models={name: _model(name, entry, alignment, store) for name, entry in draft.models.items()},
    )


def _codebook(book: Codebook, alignment: ProcrustesAlignment, store: ReleaseStore) -> Codebook:
    blob = _turned(book.prototypes, ("prototypes",), alignment, store)
    return book.model_copy(update={"prototypes": blob, "lineage": book.origin})


def _model(name: str, entry: ModelEntry, alignment: ProcrustesAlignment, store: ReleaseStore) -> ModelEntry:
    if name == RECALL and entry.weights is not None:
        # Without such maps the contexts are the clicks themselves, which have been rotated.
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
    """Return the blob with the tensors of these names rotated."""
    tensors = store.read_weights(ref)
    return store.add_blob(pack({name: alignment(each) if name in names else each for name, each in tensors.items()}))

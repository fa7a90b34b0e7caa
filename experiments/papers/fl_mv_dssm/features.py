"""The towers' inputs: two views of a user, and films as title trigrams and genres (FL-MV-DSSM, section V-A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from experiments.datasets.movielens import GENRES, MovieLens

FACTORS = 30
"""Rank of the SVD behind View-2."""


def demographics(data: MovieLens, trained: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return View-1 [n, 2 + 21]: age over the greatest age, at most 1; 1 for "F"; occupation one-hot.

    The greatest age is that of the users in `trained`; otherwise a held-out user would affect everyone's features.
    """
    age = np.minimum(data.ages / data.ages[trained].max(), 1)
    occupation = np.eye(len(data.occupation_names))[data.occupations]
    female = np.array([gender == "F" for gender in data.genders], dtype=float)
    return np.column_stack([age, female, occupation]).astype(np.float32)


def trigrams(title: str) -> frozenset[str]:
    """Return letter 3-grams of each word of the lower-case title, with # at both ends and the year as a word (DSSM).

    The paper does not describe its method and has 4,720; this way MovieLens-100K has 3,916.
    """
    words = (f"#{word}#" for word in title.lower().split())
    return frozenset(word[at : at + 3] for word in words for at in range(len(word) - 2))


@dataclass(frozen=True)
class Vocabulary:
    """Trigrams in the order of their columns, sorted, so that the same titles give the same columns."""

    grams: tuple[str, ...]

    @classmethod
    def of(cls, titles: tuple[str, ...]) -> Vocabulary:
        return cls(tuple(sorted(frozenset[str]().union(*map(trigrams, titles)))))

    @property
    def features(self) -> int:
        """The number of columns of a film: trigrams, then 19 genres."""
        return len(self.grams) + GENRES

    def films(self, data: MovieLens) -> csr_array:
        """Return films as bits, [m, features]. Trigrams outside the vocabulary are left out."""
        column = {gram: place for place, gram in enumerate(self.grams)}
        rows = [sorted(column[gram] for gram in trigrams(title) if gram in column) for title in data.titles]
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        places = np.array([place for row in rows for place in row], dtype=np.int64)
        films, genres = np.nonzero(data.genres)
        owners, places = np.concatenate([owners, films]), np.concatenate([places, len(self.grams) + genres])
        bits = csr_array((np.ones(len(owners), np.float32), (owners, places)), shape=(data.films, self.features))
        bits.sort_indices()
        return bits


@dataclass(frozen=True)
class ItemFactors:
    """What the server releases so that a device can compute View-2 itself: V [m, 30] of R ~ U S V'.

    V has orthonormal columns, so r V = U S for a row r of R. Folding in needs only the user's own ratings, and gives
    training users and new ones the same kind of vector. `scale` is the root mean square length of r V over the training
    users; features are divided by it (the paper gives no scaling, and r V has length 6 on average, beside a demographic
    view of 1.5).

    strengths are S, the lengths of r V's columns over the training users.

    Made from the interactions of training users alone: whoever releases V must have them, or their sums, in one place.
    """

    V: NDArray[np.float32]
    scale: float
    strengths: NDArray[np.float32]

    @classmethod
    def of(cls, seen: csr_array, rank: int = FACTORS) -> ItemFactors:
        """Return the truncated SVD of training interactions [n, m].

        Signs are fixed: the largest entry of a column is > 0.
        """
        if not 1 <= rank < min(seen.shape):
            raise ValueError(f"rank must be between 1 and {min(seen.shape) - 1}, got {rank}")
        start = np.full(min(seen.shape), min(seen.shape) ** -0.5)
        _, strengths, Vt = svds(seen.astype(np.float64), k=rank, v0=start)
        V = Vt[np.argsort(-strengths)].T
        V = V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(rank)])
        lengths = np.linalg.norm(seen @ V, axis=1)
        active = lengths[np.asarray(seen.sum(axis=1)).ravel() > 0]
        return cls(
            V.astype(np.float32), float(np.sqrt(np.mean(active**2))), np.sort(strengths)[::-1].astype(np.float32)
        )

    def fold_in(self, seen: csr_array) -> NDArray[np.float32]:
        """Return View-2 of users from their own ratings [k, m]: [k, 30]; zeros for a user without any."""
        folded: NDArray[np.float32] = np.asarray(seen @ self.V / self.scale, dtype=np.float32)
        return folded

    def left_vectors(self, seen: csr_array) -> NDArray[np.float32]:
        """Return View-2 without the strengths, U = r V / S, as some libraries return users: [k, 30].

        A training user's row has a length of about sqrt(30 / n), .18 here. For comparison only: the paper may have
        meant these.
        """
        found: NDArray[np.float32] = np.asarray(seen @ self.V / self.strengths, dtype=np.float32)
        return found

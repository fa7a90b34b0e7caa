"""Training and test splits: two warm protocols and three cold starts (FL-MV-DSSM, section V)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.datasets.movielens import MovieLens

TEST_SHARE, HELD_OUT_SHARE = 0.2, 0.1


@dataclass(frozen=True)
class MovieLensSplit:
    """One drawn split.

    train, test: interactions [n, m], disjoint. trained: rows of the users that take part in training; the others send
    nothing. asked: rows of the users whose test items are ranked. candidates: columns that are ranked, except a user's
    own training items. catalogue: columns that training may use as unseen films.
    """

    name: str
    train: csr_array
    test: csr_array
    trained: NDArray[np.int64]
    asked: NDArray[np.int64]
    candidates: NDArray[np.int64]
    catalogue: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.train.multiply(self.test).sum():
            raise ValueError("train and test must share no interaction")
        silent = np.setdiff1d(np.arange(self.train.shape[0]), self.trained)
        if self.train[silent].sum():
            raise ValueError("train must not contain data of users who are not in training")
        unknown = np.setdiff1d(np.arange(self.train.shape[1]), self.catalogue)
        if self.train[:, unknown].sum():
            raise ValueError("train must not contain films outside the catalogue")


def warm(data: MovieLens, rng: np.random.Generator) -> MovieLensSplit:
    """Test on a random fifth of each user's items; train on all others."""
    return _of_interactions("warm", data.seen, rng)


def first_fold(data: MovieLens, rng: np.random.Generator) -> MovieLensSplit:
    """Test on u1.test of the dataset, the first fifth of u.data.

    Without random draws, all builds have the same split. MovieLens-100K comes with 80/20 splits into training and test
    data, made from u.data by its mku.sh. The first has test items of the users 1 to 462 only, 44 of each on average and
    nearly half of what they have seen.
    """
    tested = data.places < round(data.seen.nnz * TEST_SHARE)
    train, test = _kept(data.seen, ~tested), _kept(data.seen, tested)
    films = np.arange(data.films)
    return MovieLensSplit("u1", train, test, _with_any(train), _with_any(test), films, films)


def validation(split: MovieLensSplit, rng: np.random.Generator) -> MovieLensSplit:
    """Hold out a fifth of each user's training items to choose settings on.

    Test items are in neither part.
    """
    return _of_interactions("validation", split.train, rng)


def cold_users(data: MovieLens, rng: np.random.Generator) -> MovieLensSplit:
    """Hold out a tenth of the users from training; test on all their items, among all films."""
    held = _tenth(data.users, rng)
    rows = np.isin(np.arange(data.users), held)
    films = np.arange(data.films)
    return MovieLensSplit(
        "cold users", _rows(data.seen, ~rows), _rows(data.seen, rows), np.flatnonzero(~rows), held, films, films
    )


def cold_items(data: MovieLens, rng: np.random.Generator) -> MovieLensSplit:
    """Hold out a tenth of the films from training; test users on their items among these."""
    held = _tenth(data.films, rng)
    columns = np.isin(np.arange(data.films), held)
    train, test = _columns(data.seen, ~columns), _columns(data.seen, columns)
    return MovieLensSplit(
        "cold items", train, test, np.arange(data.users), _with_any(test), held, np.flatnonzero(~columns)
    )


def cold_users_items(data: MovieLens, rng: np.random.Generator) -> MovieLensSplit:
    """Hold out a tenth of the users and of the films; test held-out users on held-out films."""
    users, films = _tenth(data.users, rng), _tenth(data.films, rng)
    rows, columns = np.isin(np.arange(data.users), users), np.isin(np.arange(data.films), films)
    train = _rows(_columns(data.seen, ~columns), ~rows)
    test = _rows(_columns(data.seen, columns), rows)
    return MovieLensSplit(
        "cold users and items", train, test, np.flatnonzero(~rows), _with_any(test), films, np.flatnonzero(~columns)
    )


PROTOCOLS: dict[str, Callable[[MovieLens, np.random.Generator], MovieLensSplit]] = {
    "warm": warm,
    "cold users": cold_users,
    "cold items": cold_items,
    "cold users and items": cold_users_items,
    "u1": first_fold,
}


def _of_interactions(name: str, seen: csr_array, rng: np.random.Generator) -> MovieLensSplit:
    tested = np.zeros(seen.nnz, dtype=bool)
    for start, end in zip(seen.indptr[:-1], seen.indptr[1:], strict=True):
        tested[start + rng.permutation(end - start)[: round((end - start) * TEST_SHARE)]] = True
    train, test = _kept(seen, ~tested), _kept(seen, tested)
    films = np.arange(seen.shape[1])
    return MovieLensSplit(name, train, test, _with_any(train), _with_any(test), films, films)


def _tenth(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.permutation(count)[: round(count * HELD_OUT_SHARE)])


def _rows(seen: csr_array, wanted: NDArray[np.bool_]) -> csr_array:
    return _kept(seen, np.repeat(wanted, np.diff(seen.indptr)))


def _columns(seen: csr_array, wanted: NDArray[np.bool_]) -> csr_array:
    return _kept(seen, wanted[seen.indices])


def _kept(seen: csr_array, wanted: NDArray[np.bool_]) -> csr_array:
    rows = np.repeat(np.arange(seen.shape[0]), np.diff(seen.indptr))[wanted]
    return csr_array((np.ones(len(rows), np.float32), (rows, seen.indices[wanted])), shape=seen.shape)


def _with_any(seen: csr_array) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(seen.indptr) > 0)

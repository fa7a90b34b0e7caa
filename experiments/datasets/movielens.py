"""MovieLens-100K as columns (Harper and Konstan, "The MovieLens Datasets", ACM TiiS 2015).

A folder holds u.user (id|age|gender|occupation|zip), u.occupation (one a line), u.item (id|title|...|19 genre flags)
and u.data (user, film, rating, time; tab-separated), in Latin-1. Users and films are numbered from 1 without a gap;
here they are rows from 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.datasets.mind import MalformedRow
from experiments.records import DataMissing

FOLDER = "ml-100k"
GENRES = 19
USER_COLUMNS, FILM_COLUMNS, RATING_COLUMNS = 5, 5 + GENRES, 4
FLAGS = {"0": 0, "1": 1}


@dataclass(frozen=True)
class MovieLens:
    """n users, m films, and who has rated what.

    ages, genders ("F" or "M") and occupations (a row of `occupation_names`) have one value for each user, titles one
    for each film; genres are 0 or 1, [m, 19]; seen [n, m] is 1 where a user has given any rating. places: for each
    rating, in `seen`'s order by user and film, its line in u.data, from 0; the dataset's folds are ranges of these.
    """

    ages: NDArray[np.int64]
    genders: tuple[str, ...]
    occupations: NDArray[np.int64]
    occupation_names: tuple[str, ...]
    titles: tuple[str, ...]
    genres: NDArray[np.int64]
    seen: csr_array
    places: NDArray[np.int64]

    @property
    def users(self) -> int:
        return len(self.ages)

    @property
    def films(self) -> int:
        return len(self.titles)


def load_movielens(folder: Path) -> MovieLens:
    """Load the dataset of a folder. Raises DataMissing and MalformedRow."""
    names = tuple(text for _, (text,) in _rows(folder / "u.occupation", "|", 1))
    ages, genders, occupations = _users(folder / "u.user", {name: row for row, name in enumerate(names)})
    titles, genres = _films(folder / "u.item")
    seen, places = _ratings(folder / "u.data", len(ages), len(titles))
    return MovieLens(ages, genders, occupations, names, titles, genres, seen, places)


def _users(path: Path, rows: dict[str, int]) -> tuple[NDArray[np.int64], tuple[str, ...], NDArray[np.int64]]:
    ages: list[int] = []
    genders: list[str] = []
    occupations: list[int] = []
    for line, (number, age, gender, occupation, _) in _rows(path, "|", USER_COLUMNS):
        _check_number(number, len(ages) + 1, path, line)
        if not age.isdecimal() or int(age) == 0:
            raise MalformedRow(path, line, f"age {age!r}: expected a number above 0")
        if gender not in ("F", "M"):
            raise MalformedRow(path, line, f"gender {gender!r}: expected F or M")
        if occupation not in rows:
            raise MalformedRow(path, line, f"occupation {occupation!r} is not in u.occupation")
        ages.append(int(age))
        genders.append(gender)
        occupations.append(rows[occupation])
    return np.array(ages, dtype=np.int64), tuple(genders), np.array(occupations, dtype=np.int64)


def _films(path: Path) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    titles: list[str] = []
    genres: list[list[int]] = []
    for line, row in _rows(path, "|", FILM_COLUMNS):
        _check_number(row[0], len(titles) + 1, path, line)
        if not row[1].strip():
            raise MalformedRow(path, line, "the title is empty")
        if odd := [flag for flag in row[-GENRES:] if flag not in FLAGS]:
            raise MalformedRow(path, line, f"genre flag {odd[0]!r}: expected 0 or 1")
        titles.append(row[1])
        genres.append([FLAGS[flag] for flag in row[-GENRES:]])
    return tuple(titles), np.array(genres, dtype=np.int64)


def _ratings(path: Path, users: int, films: int) -> tuple[csr_array, NDArray[np.int64]]:
    pairs: dict[tuple[int, int], int] = {}
    for line, (user, film, rating, _) in _rows(path, "\t", RATING_COLUMNS):
        for name, text, limit in (("user", user, users), ("film", film, films), ("rating", rating, 5)):
            if not text.isdecimal() or not 1 <= int(text) <= limit:
                raise MalformedRow(path, line, f"{name} {text!r}: expected a number from 1 to {limit}")
        pair = int(user) - 1, int(film) - 1
        if pair in pairs:
            raise MalformedRow(path, line, f"user {user} has rated film {film} already, in line {pairs[pair]}")
        pairs[pair] = line
    ratings = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    places = np.lexsort((ratings[:, 1], ratings[:, 0]))
    rows, columns = ratings[places].T
    return csr_array((np.ones(len(places), np.float32), (rows, columns)), shape=(users, films)), places


def _check_number(text: str, expected: int, path: Path, line: int) -> None:
    if text != str(expected):
        raise MalformedRow(path, line, f"number {text!r}: expected {expected}, since the numbers have no gaps")


def _rows(path: Path, separator: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    if not path.is_file():
        raise DataMissing(f"research data: {path} does not exist; name the folder with --data or OWNFEED_DATA")
    found = False
    for line, text in enumerate(path.read_text(encoding="latin-1").splitlines(), start=1):
        if not text:
            continue
        row = text.split(separator)
        if len(row) != columns:
            raise MalformedRow(path, line, f"{len(row)} columns, {columns} expected")
        found = True
        yield line, row
    if not found:
        raise MalformedRow(path, 1, "the file is empty")

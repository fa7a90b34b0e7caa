"""EB-NeRD as columns (Kruse et al., "EB-NeRD: A Large-Scale Dataset for News Recommendation", RecSys Challenge 2024).

A folder holds train/ and validation/, each one week of a Danish newspaper with behaviors.tsv (impression, user, time,
read time, scroll, device, session, articles in view, articles clicked) and history.tsv (user, articles clicked, times,
read times, scrolls), tab-separated, without a header; lists are separated by spaces. Users and articles are rows of two
lists that both weeks share.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import MalformedRow, RaggedArray
from experiments.records import DataMissing

FOLDER = "ebnerd-demo"
BEHAVIOR_COLUMNS, HISTORY_COLUMNS = 9, 5

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Week:
    """m impressions, and k clicks of the three weeks before them.

    users [m] and history_users [k] are rows of `EbNerd.users`; candidates and history_articles [k] are rows of
    `EbNerd.articles`. clicked has one 0 or 1 for each value of `candidates`. Times are seconds since 1970, read as UTC.
    """

    users: Integers
    times_sec: Integers
    candidates: RaggedArray
    clicked: Integers
    history_users: Integers
    history_articles: Integers
    history_times_sec: Integers

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True)
class EbNerd:
    """Two weeks in a row, and the ids of their users and articles."""

    users: tuple[str, ...]
    articles: tuple[str, ...]
    train: Week
    validation: Week


def load_ebnerd(folder: Path) -> EbNerd:
    """Load a folder with train/ and validation/.

    Raises DataMissing, and MalformedRow for a wrong column count, an id that is no number, a time that can't be parsed,
    an article that is in view twice, a clicked article that isn't in view, an impression without candidates, or
    history lists of different lengths.
    """
    users, articles = _Rows(), _Rows()
    train, validation = (_week(folder / split, users, articles) for split in ("train", "validation"))
    return EbNerd(tuple(users.row), tuple(articles.row), train, validation)


class _Rows:
    """Numbers ids in the order of their first use."""

    def __init__(self) -> None:
        self.row: dict[str, int] = {}

    def of(self, text: str, path: Path, line: int, field: str) -> int:
        if not text.isdecimal():
            raise MalformedRow(path, line, f"{field} {text!r}: expected a number")
        return self.row.setdefault(text, len(self.row))


def _week(folder: Path, users: _Rows, articles: _Rows) -> Week:
    path = folder / "behaviors.tsv"
    who: list[int] = []
    times: list[int] = []
    candidates: list[list[int]] = []
    clicked: list[int] = []
    for line, row in _lines(path, BEHAVIOR_COLUMNS):
        who.append(users.of(row[1], path, line, "user"))
        times.append(_seconds(row[2], path, line))
        shown, opened = row[7].split(), row[8].split()
        if not shown:
            raise MalformedRow(path, line, "articles in view: expected at least one")
        if len(set(shown)) < len(shown):
            raise MalformedRow(path, line, "articles in view: an article is named twice")
        if lost := set(opened) - set(shown):
            raise MalformedRow(path, line, f"clicked article {min(lost)} is not among the articles in view")
        candidates.append([articles.of(each, path, line, "article in view") for each in shown])
        clicked += [int(each in opened) for each in shown]
    return Week(
        np.array(who, dtype=np.int64),
        np.array(times, dtype=np.int64),
        RaggedArray.of(candidates),
        np.array(clicked, dtype=np.int64),
        *_history(folder / "history.tsv", users, articles),
    )


def _history(path: Path, users: _Rows, articles: _Rows) -> tuple[Integers, Integers, Integers]:
    who: list[int] = []
    which: list[int] = []
    times: list[int] = []
    for line, row in _lines(path, HISTORY_COLUMNS):
        read, at = row[1].split(), row[2].split()
        if len(read) != len(at):
            raise MalformedRow(path, line, f"times: {len(at)} for {len(read)} articles")
        who += [users.of(row[0], path, line, "user")] * len(read)
        which += [articles.of(each, path, line, "article") for each in read]
        times += [_seconds(each, path, line) for each in at]
    return np.array(who, dtype=np.int64), np.array(which, dtype=np.int64), np.array(times, dtype=np.int64)


def _lines(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    if not path.is_file():
        raise DataMissing(f"research data: {path} does not exist; name the folder with --data or OWNFEED_DATA")
    found = False
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row = text.split("\t")
        if len(row) != columns:
            raise MalformedRow(path, line, f"{len(row)} columns, {columns} expected")
        found = True
        yield line, row
    if not found:
        raise MalformedRow(path, 1, "the file is empty")


def _seconds(text: str, path: Path, line: int) -> int:
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise MalformedRow(path, line, f"time {text!r}: expected a time such as 2023-05-18T07:00:03") from None

"""Microsoft's MIND as columns (Wu et al., "MIND: A Large-scale Dataset for News Recommendation", ACL 2020).

A folder holds train/ and dev/, each with news.tsv (id, category, subcategory, title, abstract, url, entities, entities)
and behaviors.tsv (impression, user, time, history, impressions), tab-separated, without a header. Everything else
refers to articles by their row in one catalogue. `RaggedArray` holds rows of different lengths in two flat arrays.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.records import DataMissing


@dataclass(frozen=True)
class RaggedArray:
    """Row i is values[offsets[i] : offsets[i + 1]]; values int64 [total], offsets int64 [n + 1] from 0 to total."""

    values: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        steps = np.diff(self.offsets)
        if not len(self.offsets) or self.offsets[0] != 0 or self.offsets[-1] != len(self.values) or (steps < 0).any():
            raise ValueError(f"offsets must rise from 0 to the {len(self.values)} values")

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | NDArray[np.int64]]) -> RaggedArray:
        """Return flat arrays from rows of integers."""
        kept = [np.asarray(row, dtype=np.int64) for row in rows]
        offsets = np.concatenate(([0], np.cumsum([len(row) for row in kept]))).astype(np.int64)
        return cls(np.concatenate([*kept, np.zeros(0, np.int64)]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int64]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [n]: the length of each row."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> NDArray[np.int64]:
        """Return the row of each value, [total]."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def last(self, most: int, *, padding: int) -> NDArray[np.int64]:
        """Return the last `most` values of each row, left-padded: int64 [n, most]."""
        places = self.offsets[1:, None] - np.arange(most, 0, -1)  # [n, most]
        real = places >= self.offsets[:-1, None]
        if not len(self.values):
            return np.full(places.shape, padding, dtype=np.int64)
        return np.where(real, self.values[np.where(real, places, 0)], padding)


FOLDER = "mind-subset"
NEWS_COLUMNS_USED = 5
BEHAVIOR_COLUMNS = 5
TIME_FORMAT = "%m/%d/%Y %I:%M:%S %p"
LABELS = {"0": 0, "1": 1}


class MalformedRow(ValueError):
    """A line of a data file that can't be parsed. The message names file, line and field."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path.parent.name}/{path.name}, line {line}: {problem}")


@dataclass(frozen=True)
class NewsTable:
    """A catalogue of n articles, one tuple for each column; `row` finds an id."""

    ids: tuple[str, ...]
    categories: tuple[str, ...]
    subcategories: tuple[str, ...]
    titles: tuple[str, ...]
    abstracts: tuple[str, ...]
    row: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", {news_id: row for row, news_id in enumerate(self.ids)})

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Impressions:
    """m impressions: histories and candidates are rows of the catalogue, in order, the newest click last.

    clicked has one 0 or 1 for each value of `candidates`; times are seconds since 1970, read as UTC.
    """

    ids: tuple[str, ...]
    users: tuple[str, ...]
    times_sec: NDArray[np.int64]
    histories: RaggedArray
    candidates: RaggedArray
    clicked: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def longest_histories(self) -> dict[str, NDArray[np.int64]]:
        """Return each user's longest history, by user in the file's order."""
        longest: dict[str, NDArray[np.int64]] = {}
        for user, history in zip(self.users, self.histories, strict=True):
            if user not in longest or len(history) > len(longest[user]):
                longest[user] = history
        return longest


@dataclass(frozen=True)
class Mind:
    """One catalogue for both splits: the articles of train, then those that only dev has."""

    news: NewsTable
    train: Impressions
    dev: Impressions


def load_mind(folder: Path) -> Mind:
    """Load a folder with train/ and dev/. Raises DataMissing and MalformedRow."""
    catalogues = [load_news(folder / split / "news.tsv") for split in ("train", "dev")]
    news = _joined(*catalogues)
    train, dev = (load_behaviors(folder / split / "behaviors.tsv", news) for split in ("train", "dev"))
    return Mind(news, train, dev)


def load_news(path: Path) -> NewsTable:
    """Load a news.tsv.

    Raises DataMissing, and MalformedRow for too few columns, an empty or repeated id, or no title.
    """
    seen: dict[str, int] = {}
    rows = []
    for line, row in _lines(path):
        if len(row) < NEWS_COLUMNS_USED:
            raise MalformedRow(path, line, f"{len(row)} columns, at least {NEWS_COLUMNS_USED} expected")
        news_id, title = row[0], row[3]
        if not news_id:
            raise MalformedRow(path, line, "the news id is empty")
        if news_id in seen:
            raise MalformedRow(path, line, f"news {news_id} already appears in line {seen[news_id]}")
        if not title.strip():
            raise MalformedRow(path, line, f"news {news_id} has no title")
        seen[news_id] = line
        rows.append(tuple(row[:NEWS_COLUMNS_USED]))
    if not rows:
        raise MalformedRow(path, 1, "the file is empty")
    return NewsTable(*zip(*rows, strict=True))


@dataclass(frozen=True)
class MindEntity:
    """A Wikidata entity named in an article: its id, label and type, and the characters [start, end) that name it."""

    key: str
    label: str
    kind: str
    places: tuple[tuple[int, int], ...]


def load_entities(path: Path) -> list[tuple[tuple[MindEntity, ...], tuple[MindEntity, ...]]]:
    """Load the entities of a news.tsv: those of each article's title and of its abstract, mostly none.

    Raises DataMissing, and MalformedRow for a column that isn't MIND's JSON.
    """
    return [(_entities(row[6:7], path, line), _entities(row[7:8], path, line)) for line, row in _lines(path)]


def _entities(column: list[str], path: Path, line: int) -> tuple[MindEntity, ...]:
    try:
        return tuple(
            MindEntity(
                each["WikidataId"],
                each["Label"],
                each["Type"],
                tuple(
                    (start, start + len(form))
                    for start, form in zip(each["OccurrenceOffsets"], each["SurfaceForms"], strict=True)
                ),
            )
            for text in column
            for each in json.loads(text or "[]")
        )
    except (ValueError, KeyError, TypeError) as broken:
        raise MalformedRow(path, line, f"entities: expected MIND's JSON ({broken})") from None


def load_behaviors(path: Path, news: NewsTable) -> Impressions:
    """Load a behaviors.tsv over a catalogue.

    Raises DataMissing, and MalformedRow for a wrong column count, a time that can't be parsed, an article that the
    catalogue lacks, or a candidate that is not `<id>-0` or `<id>-1`.
    """
    ids, users, times, histories, candidates, clicked = [], [], [], [], [], []
    for line, row in _lines(path):
        if len(row) != BEHAVIOR_COLUMNS:
            raise MalformedRow(path, line, f"{len(row)} columns, {BEHAVIOR_COLUMNS} expected")
        ids.append(row[0])
        users.append(row[1])
        times.append(_seconds(row[2], path, line))
        histories.append([_row_of(news_id, news, path, line, "history") for news_id in row[3].split()])
        shown = [each.rpartition("-") for each in row[4].split()]
        for news_id, _, label in shown:
            if label not in LABELS:
                raise MalformedRow(path, line, f"candidate {news_id}-{label}: expected a label of 0 or 1")
        candidates.append([_row_of(news_id, news, path, line, "candidate") for news_id, _, _ in shown])
        clicked += [LABELS[label] for _, _, label in shown]
    return Impressions(
        tuple(ids),
        tuple(users),
        np.array(times, dtype=np.int64),
        RaggedArray.of(histories),
        RaggedArray.of(candidates),
        np.array(clicked, dtype=np.int64),
    )


def _joined(first: NewsTable, second: NewsTable) -> NewsTable:
    fresh = [row for row, news_id in enumerate(second.ids) if news_id not in first.row]
    columns = ("ids", "categories", "subcategories", "titles", "abstracts")
    return NewsTable(*(getattr(first, name) + tuple(getattr(second, name)[row] for row in fresh) for name in columns))


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    if not path.is_file():
        raise DataMissing(f"research data: {path} does not exist; name the folder with --data or OWNFEED_DATA")
    with path.open(encoding="utf-8", newline="") as file:
        try:
            yield from enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1)
        except UnicodeDecodeError as broken:
            raise MalformedRow(path, 1, f"the file is not UTF-8 ({broken.reason})") from None


def _seconds(text: str, path: Path, line: int) -> int:
    try:
        return int(datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise MalformedRow(path, line, f"time {text!r}: expected a time such as 11/15/2019 12:00:00 PM") from None


def _row_of(news_id: str, news: NewsTable, path: Path, line: int, field_name: str) -> int:
    row = news.row.get(news_id)
    if row is None:
        raise MalformedRow(path, line, f"{field_name} {news_id} is not in the catalogue")
    return row

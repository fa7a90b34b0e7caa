"""Measures the size of one minute's changes of the default list, for the capacity model's numbers of articles per
month.

Articles are MIND's headlines, repeated as often as needed, with random editorial weights and vectors. Each scenario
runs for two days of news, which is four half-lives of an article's score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from backend.popularity.estimate import Moments, utc_moments
from backend.recall.catalogue import Catalogue
from backend.recall.default_list import default_order
from backend.recall.service import EarlierLists, compress
from experiments.datasets.mind import FOLDER, load_news
from experiments.records import Cell, Table
from models.shapes import NEWS_DIM
from protocol.news import NewsCard
from protocol.recall import DEFAULT_LIST_LENGTH

TABLE = "What a minute's change of the default list weighs"
ARTICLES_A_MONTH = (50_000, 200_000, 1_000_000, 5_000_000)
HOURS, MINUTES = 48, 12
SEED = 7


@dataclass(frozen=True)
class NewsStream:
    """Articles by time, with the columns that `default_order` reads."""

    ids: Sequence[str]
    titles: Sequence[str]
    sections: Sequence[str]
    stories: Sequence[None]
    published_at: Moments
    weights: NDArray[np.float64]

    def first(self, count: int) -> NewsStream:
        """Return the stream up to this article."""
        kept = (column[:count] for column in vars(self).values())
        return NewsStream(*kept)


class ListedRows:
    """The part of a catalogue that its default list needs."""

    encode = Catalogue.encode
    encoder = "0" * 16

    def __init__(self, stream: NewsStream) -> None:
        self.ids, self._stream = stream.ids, stream
        self.cards: dict[int, bytes] = {}
        self._codes: dict[int, NDArray[np.float32]] = {}
        self.vectors = self

    def __getitem__(self, rows: int | NDArray[np.intp]) -> NDArray[np.float32]:
        if isinstance(rows, int):
            return self._codes[rows]
        return np.array([self._codes[row] for row in rows.tolist()], dtype=np.float32).reshape(-1, NEWS_DIM)

    def hold(self, rows: Sequence[int]) -> None:
        """Load the cards and vectors of these rows."""
        for row in rows:
            if row in self.cards:
                continue
            vector = np.random.default_rng((SEED, row)).standard_normal(NEWS_DIM).astype(np.float32)
            self._codes[row] = vector / np.linalg.norm(vector)
            card = NewsCard(
                id=self.ids[row],
                title=self._stream.titles[row],
                abstract="",
                url=f"https://news.example/{self.ids[row]}",
                publisher="Publisher",
                section=self._stream.sections[row],
                topic=self._stream.sections[row],
                published_at=self._stream.published_at[row].astype("datetime64[ms]").item().replace(tzinfo=UTC),
                weight=float(self._stream.weights[row]),
            )
            self.cards[row] = card.model_dump_json().encode()


def run(data: Path) -> list[Table]:
    """Return the table. Raises DataMissing without MIND."""
    news = load_news(data / FOLDER / "train" / "news.tsv")
    columns = (
        "articles a month",
        "new a minute",
        "of them listed",
        "kB of changes",
        "kB of the whole list",
        "times less",
    )
    rows = [_row(monthly, news.titles, news.categories) for monthly in ARTICLES_A_MONTH]
    note = f"Compressed, mean of {MINUTES} minutes after {HOURS} hours of news; lists of {DEFAULT_LIST_LENGTH}."
    return [Table(TABLE, columns, rows, (note,), (SEED,))]


def _row(monthly: int, titles: Sequence[str], sections: Sequence[str]) -> tuple[Cell, ...]:
    every = timedelta(days=30) / monthly
    count = int(timedelta(hours=HOURS) / every)
    minute = timedelta(minutes=1)
    began = datetime(2026, 11, 1, tzinfo=UTC)
    number = count + int(MINUTES * minute / every) + 1
    stream = NewsStream(
        [f"mind-{at}" for at in range(number)],
        [titles[at % len(titles)] for at in range(number)],
        [sections[at % len(sections)] for at in range(number)],
        [None] * number,
        utc_moments([began + at * every for at in range(number)]),
        np.random.default_rng(SEED).random(number),
    )
    listed, earlier = ListedRows(stream), EarlierLists()
    now, before, entered, weights, whole_kb = began + count * every, "", [], [], 0.0
    for _ in range(MINUTES + 1):
        upto = min(number, int((now - began) / every))
        order = default_order(stream.first(upto), now, DEFAULT_LIST_LENGTH)
        listed.hold(order)
        changes = earlier.changes(before, now.isoformat(), "r1", listed, order)  # type: ignore[arg-type]
        if changes is None:
            whole_kb = len(compress(listed.encode(order, "r1"))) / 1_000  # type: ignore[misc]
        else:
            weights.append(len(compress(changes)) / 1_000)
            entered.append(changes.count(b'"id":'))
        before, now = now.isoformat(), now + minute
    kb = mean(weights)
    return (
        f"{monthly:,}",
        f"{minute / every:.1f}",
        f"{mean(entered):.1f}",
        f"{kb:.1f}",
        f"{whole_kb:.0f}",
        f"{whole_kb / kb:.0f}",
    )

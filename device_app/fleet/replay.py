"""Replays MIND's readers as devices.

Their histories and impressions are written as a device would have written them.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from device_app.errors import DeviceError
from device_app.stores import DeviceStores
from device_app.sync.encoder_takeover import pull_all
from device_app.uplink.http import HttpClient
from protocol.ids import ReleaseId
from protocol.news import NewsCard

BEHAVIORS, NEWS = "behaviors.tsv", "news.tsv"
TIME_FORMAT = "%m/%d/%Y %I:%M:%S %p"
BETWEEN_CLICKS = timedelta(minutes=10)
"""MIND gives the order of a history, but no times; this only preserves the order."""


class ReplayRefused(DeviceError):
    """The folder isn't MIND's, or the server's pool has none of its articles."""


@dataclass(frozen=True)
class Impression:
    """A list of articles shown to a reader, and which of them were opened."""

    number: str
    at: datetime
    shown: tuple[str, ...]
    clicked: tuple[str, ...]


@dataclass(frozen=True)
class RealReader:
    """One MIND user: the longest history, oldest first, and every list shown to the user."""

    user: str
    history: tuple[str, ...]
    first_at: datetime
    impressions: tuple[Impression, ...]


def real_readers(folder: Path, limit: int) -> list[RealReader]:
    """Return the first `limit` users.

    Those with a click in a shown list come first, then the others, each by user id.

    Raises ReplayRefused, naming the file and the line.
    """
    histories: dict[str, tuple[str, ...]] = {}
    shown: dict[str, list[Impression]] = {}
    for line, row in enumerate(_rows(folder / BEHAVIORS), start=1):
        if len(row) != 5:
            raise ReplayRefused(f"{folder / BEHAVIORS}, line {line}: {len(row)} columns; 5 are needed.")
        number, user, time, history, candidates = row
        clicks = tuple(history.split())
        if len(clicks) >= len(histories.get(user, ())):
            histories[user] = clicks
        marks = [candidate.rpartition("-") for candidate in candidates.split()]
        try:
            at = datetime.strptime(time, TIME_FORMAT).replace(tzinfo=UTC)
        except ValueError:
            raise ReplayRefused(
                f"{folder / BEHAVIORS}, line {line}: {time!r} is not a time in MIND's format."
            ) from None
        shown.setdefault(user, []).append(
            Impression(
                number,
                at,
                tuple(news for news, _, _ in marks),
                tuple(news for news, _, mark in marks if mark == "1"),
            )
        )
    order = sorted(histories, key=lambda user: (not any(one.clicked for one in shown[user]), user))
    return [
        RealReader(user, histories[user], min(one.at for one in shown[user]), tuple(shown[user]))
        for user in order[:limit]
    ]


class ReplayCatalogue:
    """Cards from the folder and all vectors from the server.

    Requesting all of them reveals nothing about any reader.
    """

    def __init__(self, folder: Path, client: HttpClient, release: ReleaseId, encoder: str, dimensions: int) -> None:
        """Load both.

        Raises ReplayRefused if the server has none of the folder's articles, and HttpClient's errors.
        """
        vectors = {
            news_id: vector
            for ids, rows in pull_all(client, release, encoder, dimensions)
            for news_id, vector in zip(ids, rows, strict=True)
        }
        self.encoder = encoder
        self._cards = {card.id: card for card in _cards(folder) if card.id in vectors}
        self._vectors = vectors
        if not self._cards:
            raise ReplayRefused(
                f"The server has none of the articles in {folder / NEWS}: run `ownfeed ingest mind` first."
            )

    def write_past(self, stores: DeviceStores, reader: RealReader, now: datetime) -> int:
        """Write one reader's past into a device's store; return how many clicks are known.

        Idempotent.
        """
        named = dict.fromkeys((*reader.history, *(news for one in reader.impressions for news in one.shown)))
        cards = [self._cards[news_id] for news_id in named if news_id in self._cards]
        rows: NDArray[np.float32] = np.stack([self._vectors[card.id] for card in cards])
        stores.news.put(cards, rows, self.encoder, now)
        known = {card.id for card in cards}
        history = [news_id for news_id in reader.history if news_id in known]
        clicks = 0
        for back, news_id in enumerate(reversed(history), start=1):
            stores.clicks.add(news_id, None, reader.first_at - back * BETWEEN_CLICKS)
            clicks += 1
        for one in reader.impressions:
            feed_id = f"mind-{one.number}"
            stores.impressions.record(feed_id, [news_id for news_id in one.shown if news_id in known], one.at)
            for news_id in one.clicked:
                if news_id in known:
                    stores.clicks.add(news_id, feed_id, one.at)
                    clicks += 1
        return clicks


def _cards(folder: Path) -> Iterator[NewsCard]:
    for row in _rows(folder / NEWS):
        if len(row) >= 5 and row[3].strip():
            yield NewsCard(
                id=row[0],
                title=row[3][:1_000],
                abstract=row[4][:5_000],
                url="",
                publisher="",
                section=row[1][:80],
                topic=row[2][:80],
                published_at=datetime(2019, 11, 9, tzinfo=UTC),
                weight=0.5,
            )


def _rows(path: Path) -> Iterator[list[str]]:
    if not path.is_file():
        raise ReplayRefused(f"{path} is not there; --replay takes a folder with {BEHAVIORS} and {NEWS}.")
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)

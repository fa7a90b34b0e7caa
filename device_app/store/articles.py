"""List and count all articles with a card on this device.

They come from its lists and from the pool's copy. Triggers maintain the table `article`, so nothing here writes to it.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from device_app.store.database import Database
from device_app.store.news import Naming
from device_app.store.rows import to_us
from protocol.news import NewsCard

_WIDE = "SELECT value FROM json_each(?)"
_SAVED = "id IN (SELECT news_id FROM reaction WHERE kind = 'save')"
_KINDS: tuple[Naming, ...] = ("topic", "section", "publisher")
_ANY_NAME = " OR ".join(f"{kind} IN ({_WIDE})" for kind in _KINDS)
RATE_WEEKS = 4.0
SOURCES_SHOWN = 5
_WEEK_US = 7 * 86_400 * 1_000_000
Named = tuple[Naming, str]
"""A kind of name, and the name."""


class Place(NamedTuple):
    """A place in a list ordered by time.

    published_us is the article's publication time in microseconds since 1970.
    """

    published_us: int
    id: str


class Source(NamedTuple):
    """Another publisher's report of an event. here: whether it is on this device and can be opened."""

    publisher: str
    id: str
    here: bool


class Counts(NamedTuple):
    """How many articles there are, and how many of them are unread."""

    stories: int
    unread: int


@dataclass(frozen=True)
class Selection:
    """Which articles a list contains.

    publishers: only of these; None: of all. unread_since: only unread ones and those read since this time (None: all).
    hidden: also those that a mute rule hides.
    """

    publishers: tuple[str, ...] | None = None
    hidden: bool = False
    unread_since: datetime | None = None

    def where(self) -> tuple[list[str], list[object]]:
        """Return SQL conditions on `article`, and their values."""
        tests = [] if self.hidden else ["hidden_by IS NULL"]
        values: list[object] = []
        if self.publishers is not None:
            tests.append("publisher = ?" if len(self.publishers) == 1 else f"publisher IN ({_WIDE})")
            values.append(self.publishers[0] if len(self.publishers) == 1 else json.dumps(self.publishers))
        if self.unread_since is not None:
            tests.append("(is_read = 0 OR id IN (SELECT news_id FROM read_story WHERE at >= ?))")
            values.append(to_us(self.unread_since))
        return tests, values


class Articles:
    """Finds articles by publisher, section, topic or story, and counts them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self) -> Mapping[str, Counts]:
        """Return how many articles each publisher has here, and how many are unread."""
        unread: dict[str, int] = dict(
            self._database.rows(
                "SELECT publisher, count(*) FROM article WHERE is_read = 0 AND hidden_by IS NULL GROUP BY publisher"
            )
        )
        stories = self._database.rows(
            "SELECT publisher, count(*) FROM article WHERE hidden_by IS NULL GROUP BY publisher"
        )
        return {publisher: Counts(count, unread.get(publisher, 0)) for publisher, count in stories}

    def page(self, selection: Selection, limit: int, after: Place | None = None) -> list[Place]:
        """Return the newest articles of a selection, newest first.

        after: only those that follow this place.
        """
        tests, values = selection.where()
        if after is not None:
            tests.append("(published_at, id) < (?, ?)")
            values += after
        found = self._database.rows(
            f"SELECT published_at, id FROM article WHERE {' AND '.join(['1', *tests])} "
            "ORDER BY published_at DESC, id DESC LIMIT ?",
            (*values, limit),
        )
        return [Place(*row) for row in found]

    def count_hidden(self, selection: Selection) -> int:
        """Return how many articles of a selection a mute rule hides."""
        tests, values = replace(selection, hidden=True).where()
        return self._database.number(
            f"SELECT count(*) FROM article WHERE {' AND '.join(['hidden_by IS NOT NULL', *tests])}", values
        )

    def by_name(self, names: Iterable[Named], without: Iterable[Named] = (), *, events: bool = False) -> list[str]:
        """Return the ids of articles with one of `names` and none of `without`, newest first.

        events: only the newest of those that report one event.
        """
        found = self._database.rows(
            f"""SELECT id, story FROM article WHERE hidden_by IS NULL AND ({_ANY_NAME}) AND NOT ({_ANY_NAME})
                ORDER BY published_at DESC, id DESC""",
            (*_by_kind(names), *_by_kind(without)),
        )
        reported: set[str] = set()
        ids = []
        for news_id, story in found:
            if not (events and story and story in reported):
                ids.append(news_id)
            reported.add(story)
        return ids

    def leads(self, news_ids: Iterable[str]) -> dict[str, str]:
        """Return the article whose card lists each of these articles, for those without their own card."""
        return dict(
            self._database.rows(
                f"SELECT id, lead FROM article WHERE lead IS NOT NULL AND id IN ({_WIDE})",
                (json.dumps(list(news_ids)),),
            )
        )

    def other_sources(self, card: NewsCard) -> list[Source]:
        """Return the newest report of each other publisher on a card's event, newest first."""
        ids = json.dumps([one.id for one in card.also])
        found = self._database.rows(
            """SELECT publisher, id, EXISTS (SELECT 1 FROM news WHERE news.id = article.id) FROM article
               WHERE (story = ? OR id IN (SELECT value FROM json_each(?))) AND publisher NOT IN ('', ?)
                 AND hidden_by IS NULL
               ORDER BY published_at DESC, id DESC""",
            (card.story, ids, card.publisher),
        )
        newest: dict[str, Source] = {}
        for publisher, news_id, here in found:
            newest.setdefault(publisher, Source(publisher, news_id, bool(here)))
        return list(newest.values())[:SOURCES_SHOWN]

    def a_week(self, now: datetime) -> Mapping[str, float]:
        """Return how many articles a week each publisher has published recently.

        Publishers without any article here are left out. Counts the last four weeks, or less if the oldest article here
        is younger, but at least one week.
        """
        now_us = to_us(now)
        oldest = self._database.number("SELECT min(published_at) FROM article WHERE published_at > 0")
        weeks = min(max((now_us - oldest) / _WEEK_US, 1.0), RATE_WEEKS)
        found = self._database.rows(
            "SELECT publisher, sum(published_at > ?) FROM article GROUP BY publisher",
            (now_us - int(weeks * _WEEK_US),),
        )
        return {publisher: count / weeks for publisher, count in found}

    def topic_sizes(self) -> dict[tuple[str, str], int]:
        """Return how many articles each topic has, by section and topic; '' is an article's topic if it has none."""
        found = self._database.rows(
            "SELECT section, topic, count(*) FROM article WHERE lead IS NULL GROUP BY section, topic"
        )
        return {(section, topic): count for section, topic, count in found}

    def count_by_name(self, kind: Naming, name: str) -> int:
        """Return how many articles a topic, section or publisher has."""
        return self._database.number(f"SELECT count(*) FROM article WHERE hidden_by IS NULL AND {kind} = ?", (name,))


def _by_kind(names: Iterable[Named]) -> list[str]:
    """Return the values of _ANY_NAME."""
    all_names = list(names)
    return [json.dumps([name for one, name in all_names if one == kind]) for kind in _KINDS]


@dataclass(frozen=True)
class Stream:
    """Which articles a list contains.

    publishers: only of these; None: of all. read, saved: True: only those that are; False: only those that aren't;
    None: both.
    since, before: published from this time on, and before this one.
    """

    publishers: Collection[str] | None = None
    read: bool | None = None
    saved: bool | None = None
    since: datetime | None = None
    before: datetime | None = None

    def where(self) -> tuple[list[str], list[object]]:
        """Return SQL conditions on `article`, and their values.

        Mute rules do not hide saved articles.
        """
        tests = [] if self.saved else ["hidden_by IS NULL"]
        values: list[object] = []
        if self.publishers is not None:
            tests.append(f"publisher IN ({_WIDE})")
            values.append(json.dumps(sorted(self.publishers)))
        if self.read is not None:
            tests.append(f"is_read = {int(self.read)}")
        if self.saved is not None:
            tests.append(_SAVED if self.saved else f"NOT {_SAVED}")
        for moment, order in ((self.since, ">="), (self.before, "<")):
            if moment is not None:
                tests.append(f"published_at {order} ?")
                values.append(to_us(moment))
        return tests, values


class Streams:
    """Lists articles in order of time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, stream: Stream, limit: int, after: Place | None = None, *, oldest_first: bool = False
    ) -> list[Place]:
        """Return a page of a stream, newest first unless asked otherwise.

        after: the last place of the previous page.
        """
        tests, values = stream.where()
        order, follows = ("ASC", ">") if oldest_first else ("DESC", "<")
        if after is not None:
            tests.append(f"(published_at, id) {follows} (?, ?)")
            values += after
        found = self._database.rows(
            f"SELECT published_at, id FROM article WHERE {' AND '.join(['1', *tests])} "
            f"ORDER BY published_at {order}, id {order} LIMIT ?",
            (*values, limit),
        )
        return [Place(*row) for row in found]

    def ids(self) -> Sequence[str]:
        return [row[0] for row in self._database.rows("SELECT id FROM article WHERE hidden_by IS NULL")]

    def read_among(self, news_ids: Collection[str]) -> frozenset[str]:
        """Return those of these articles that are read."""
        found = self._database.rows(
            f"SELECT id FROM article WHERE is_read = 1 AND id IN ({_WIDE})", (json.dumps(list(news_ids)),)
        )
        return frozenset(row[0] for row in found)

    def newest_by_publisher(self) -> dict[str, int]:
        """Return when the newest unread article of each publisher was published, in microseconds."""
        found = self._database.rows(
            """SELECT publisher, max(published_at) FROM article
               WHERE is_read = 0 AND hidden_by IS NULL GROUP BY publisher"""
        )
        return dict(found)

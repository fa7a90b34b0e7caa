"""Impressions: articles that feeds served, and which of them were viewed.

Viewed articles rank lower in later feeds, and those viewed but not clicked are the negatives of training samples. Terms
follow the industry: an impression is served when its feed is made, and viewable once half of its card was in view for a
second (Media Rating Council, Viewable Ad Impression Measurement Guidelines, 2014).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, to_us


@dataclass(frozen=True)
class Shown:
    """One feed with at least one click: its viewed articles in order, and the clicked ones."""

    feed_id: str
    at: datetime
    shown: tuple[str, ...]
    clicked: tuple[str, ...]


class ImpressionStore:
    """Articles served in each feed, and when each was viewed there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._views = RowCache(database, self._read)

    def serve(
        self,
        feed_id: str,
        news_ids: Sequence[str],
        at: datetime,
        popularity: Sequence[float] | None = None,
        *,
        first: int = 0,
    ) -> None:
        """Store the articles that a feed serves, with their current popularity.

        Already served ones stay unchanged. first: the position of the first article.
        """
        figures = [None] * len(news_ids) if popularity is None else list(popularity)
        with self._database.quick_transaction():
            self._database.write_many(
                """INSERT INTO impression (feed_id, news_id, position, at, popularity) VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT DO NOTHING""",
                [
                    (feed_id, news_id, position, to_us(at), figure)
                    for position, (news_id, figure) in enumerate(zip(news_ids, figures, strict=True), start=first)
                ],
            )

    def served(self, feed_id: str) -> bool:
        """Return whether any article of this feed is stored."""
        return self._database.row("SELECT 1 FROM impression WHERE feed_id = ? LIMIT 1", (feed_id,)) is not None

    def view(self, feed_id: str, news_ids: Iterable[str], at: datetime) -> int:
        """Record that articles of a feed were viewed.

        Returns how many were viewed for the first time. The time of the first view is kept. Articles that the feed did
        not serve are ignored.
        """
        with self._database.quick_transaction():
            found = self._database.write(
                """UPDATE impression SET viewed_at = ?
                   WHERE feed_id = ? AND viewed_at IS NULL AND news_id IN (SELECT value FROM json_each(?))""",
                (to_us(at), feed_id, json.dumps(list(news_ids))),
            ).rowcount
            if found:
                self._views.forget()
            return found

    def record(
        self, feed_id: str, news_ids: Sequence[str], at: datetime, popularity: Sequence[float] | None = None
    ) -> None:
        """Store a feed whose articles were all viewed when served.

        It is for feeds replayed from a data set.
        """
        with self._database.quick_transaction():
            self.serve(feed_id, news_ids, at, popularity)
            self.view(feed_id, news_ids, at)

    def seen(self, since: datetime) -> set[str]:
        """Return ids of articles viewed at or after `since`."""
        since_us = to_us(since)
        with self._database.alone():
            return {news_id for news_id, (_, at_us) in self._views.get().items() if at_us >= since_us}

    def times_seen(self, news_ids: Iterable[str], since: datetime) -> dict[str, int]:
        """Return in how many feeds each of `news_ids` was viewed.

        Articles last viewed before `since` are left out.
        """
        since_us, never = to_us(since), (0, -1)
        with self._database.alone():
            views = self._views.get()
            found = ((news_id, views.get(news_id, never)) for news_id in news_ids)
            return {news_id: feeds for news_id, (feeds, at_us) in found if at_us >= since_us}

    def for_training(self, limit: int) -> list[Shown]:
        """Return the newest feeds with clicks, newest first, each with its viewed articles.

        Articles that never came into view are left out: not clicking them says nothing about the reader.
        """
        found = self._database.rows(
            """SELECT impression.feed_id, max(impression.at) AS last_at,
                      json_group_array(json_array(impression.position, impression.news_id, click.id IS NOT NULL))
               FROM impression LEFT JOIN click USING (feed_id, news_id)
               WHERE impression.feed_id IN (SELECT feed_id FROM click)
                     AND (impression.viewed_at IS NOT NULL OR click.id IS NOT NULL)
               GROUP BY impression.feed_id HAVING count(click.id) > 0
               ORDER BY last_at DESC, impression.feed_id LIMIT ?""",
            (limit,),
        )
        return [_shown(*row) for row in found]

    def popularity_at(self, news_ids: Iterable[str], at: datetime) -> dict[str, float]:
        """Return the popularity of these articles when last served, at or before a time.

        Those not served by then are left out.
        """
        found = self._database.rows(
            """SELECT news_id, popularity, max(at) FROM impression
               WHERE at <= ? AND popularity IS NOT NULL AND news_id IN (SELECT value FROM json_each(?))
               GROUP BY news_id""",
            (to_us(at), json.dumps(list(news_ids))),
        )
        return {news_id: figure for news_id, figure, _ in found}

    def prune(self, before: datetime) -> int:
        """Delete impressions served before a time; returns how many."""
        with self._database.quick_transaction():
            self._views.forget()
            return self._database.write("DELETE FROM impression WHERE at < ?", (to_us(before),)).rowcount

    def _read(self) -> dict[str, tuple[int, int]]:
        """In how many feeds each article was viewed, and when last."""
        found = self._database.rows(
            """SELECT news_id, count(*), max(viewed_at) FROM impression
               WHERE viewed_at IS NOT NULL GROUP BY news_id"""
        )
        return {news_id: (feeds, at_us) for news_id, feeds, at_us in found}


def _shown(feed_id: str, at_us: int, items: str) -> Shown:
    ordered = sorted(json.loads(items))
    return Shown(
        feed_id=feed_id,
        at=from_us(at_us),
        shown=tuple(news_id for _, news_id, _ in ordered),
        clicked=tuple(news_id for _, news_id, clicked in ordered if clicked),
    )

"""What was shown: for not showing it again, and as the other half of training samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, to_us


@dataclass(frozen=True)
class Shown:
    """One feed with at least one click: all news it showed, in order, and those of them that were clicked."""

    feed_id: str
    at: datetime
    shown: tuple[str, ...]
    clicked: tuple[str, ...]


class ImpressionStore:
    """News shown in each feed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_shown = RowCache(database, self._read)

    def record(
        self, feed_id: str, news_ids: Sequence[str], at: datetime, popularity: Sequence[float] | None = None
    ) -> None:
        """Keep what a feed shows, and how popular each was then; news recorded before for this feed stays as it was."""
        figures = [None] * len(news_ids) if popularity is None else list(popularity)
        with self._database.quick_transaction():
            last_shown = self._last_shown.get()
            if self._database.row("SELECT 1 FROM impression WHERE feed_id = ? LIMIT 1", (feed_id,)):
                self._last_shown.forget()
            self._database.write_many(
                """INSERT INTO impression (feed_id, news_id, position, at, popularity) VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT DO NOTHING""",
                [
                    (feed_id, news_id, position, to_us(at), figure)
                    for position, (news_id, figure) in enumerate(zip(news_ids, figures, strict=True))
                ],
            )
            for news_id in news_ids:
                last_shown[news_id] = max(last_shown.get(news_id, 0), to_us(at))

    def seen(self, since: datetime) -> set[str]:
        """Ids of news shown at or after `since`."""
        since_us = to_us(since)
        with self._database.alone():
            return {news_id for news_id, at_us in self._last_shown.get().items() if at_us >= since_us}

    def seen_among(self, news_ids: Iterable[str], since: datetime) -> set[str]:
        """Those of `news_ids` that were shown at or after `since`."""
        since_us = to_us(since)
        with self._database.alone():
            last_shown = self._last_shown.get()
            return {news_id for news_id in news_ids if last_shown.get(news_id, -1) >= since_us}

    def for_training(self, limit: int) -> list[Shown]:
        """The newest feeds that were clicked in, newest first, at most `limit`."""
        found = self._database.rows(
            """SELECT impression.feed_id, max(impression.at) AS last_at,
                      json_group_array(json_array(impression.position, impression.news_id, click.id IS NOT NULL))
               FROM impression LEFT JOIN click USING (feed_id, news_id)
               WHERE impression.feed_id IN (SELECT feed_id FROM click)
               GROUP BY impression.feed_id HAVING count(click.id) > 0
               ORDER BY last_at DESC, impression.feed_id LIMIT ?""",
            (limit,),
        )
        return [_shown(*row) for row in found]

    def popularity_at(self, news_ids: Iterable[str], at: datetime) -> dict[str, float]:
        """How popular these news were when last shown, at or before a time; those never shown by then are left out."""
        found = self._database.rows(
            """SELECT news_id, popularity, max(at) FROM impression
               WHERE at <= ? AND popularity IS NOT NULL AND news_id IN (SELECT value FROM json_each(?))
               GROUP BY news_id""",
            (to_us(at), json.dumps(list(news_ids))),
        )
        return {news_id: figure for news_id, figure, _ in found}

    def prune(self, before: datetime) -> int:
        """Forget what was shown before a time; returns how many rows."""
        with self._database.quick_transaction():
            self._last_shown.forget()
            return self._database.write("DELETE FROM impression WHERE at < ?", (to_us(before),)).rowcount

    def _read(self) -> dict[str, int]:
        """When each piece of news was shown last."""
        return dict(self._database.rows("SELECT news_id, max(at) FROM impression GROUP BY news_id"))


def _shown(feed_id: str, at_us: int, items: str) -> Shown:
    ordered = sorted(json.loads(items))
    return Shown(
        feed_id=feed_id,
        at=from_us(at_us),
        shown=tuple(news_id for _, news_id, _ in ordered),
        clicked=tuple(news_id for _, news_id, clicked in ordered if clicked),
    )

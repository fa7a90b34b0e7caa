"""The reader's clicks: stored before the article is shown, never sent."""

from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import PAGE_SIZE, Page, from_us, offset, to_us
from device_app.store.searches import all_words

_COLUMNS = "click.id, click.news_id, click.feed_id, click.at"


@dataclass(frozen=True)
class Click:
    """One opened article; feed_id is empty if it was opened outside a feed."""

    id: int
    news_id: str
    feed_id: str
    at: datetime


class Clicks:
    """Every click of this reader, until the reader deletes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, news_id: str, feed_id: str | None, at: datetime) -> int:
        """Store a click and return its id once it's on the disk.

        Opening the same article twice from one feed is one click; outside feeds, one click in total.
        """
        with self._database.transaction():
            kept = self._database.write(
                "INSERT INTO click (news_id, feed_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
                (news_id, feed_id or "", to_us(at)),
            ).fetchone()
            if kept is None:
                kept = self._database.row(
                    "SELECT id FROM click WHERE feed_id = ? AND news_id = ?", (feed_id or "", news_id)
                )
        if kept is None:
            raise RuntimeError("the click that caused the conflict was not found")
        return int(kept[0])

    def recent(self, limit: int = 50) -> list[Click]:
        """Return the newest clicks, in chronological order."""
        found = self._database.rows(f"SELECT {_COLUMNS} FROM click ORDER BY at DESC, id DESC LIMIT ?", (limit,))
        return [_click(row) for row in reversed(found)]

    def count(self) -> int:
        """Return how many clicks are stored."""
        return self._database.number("SELECT count(*) FROM click")

    def latest_id(self) -> int:
        """Return the highest id ever assigned, including deleted clicks.

        It is used to tell how outdated a report is.
        """
        return self._database.number("SELECT seq FROM sqlite_sequence WHERE name = 'click'")

    def count_up_to(self, click_id: int) -> int:
        """Return how many clicks with this id or a lower one are stored.

        The number falls when one is deleted.
        """
        return self._database.number("SELECT count(*) FROM click WHERE id <= ?", (click_id,))

    def search(self, text: str = "", page: int = 1) -> Page[Click]:
        """Clicks newest first whose card has every word of `text`; all clicks if it is blank."""
        tests, values = all_words(text)
        source = "FROM click LEFT JOIN news ON news.id = click.news_id WHERE " + " AND ".join(["1", *tests])
        rows = self._database.rows(
            f"SELECT {_COLUMNS} {source} ORDER BY click.at DESC, click.id DESC LIMIT ? OFFSET ?",
            (*values, PAGE_SIZE, offset(page)),
        )
        total = self._database.number(f"SELECT count(*) {source}", values)
        return Page(tuple(_click(row) for row in rows), page, total)

    def news_of(self, click_id: int) -> str | None:
        """Return the id of the clicked article; None if there is no such click."""
        found = self._database.row("SELECT news_id FROM click WHERE id = ?", (click_id,))
        return found[0] if found else None

    def delete(self, click_id: int) -> bool:
        """Delete a click permanently; False if there was none."""
        with self._database.transaction():
            return self._database.write("DELETE FROM click WHERE id = ?", (click_id,)).rowcount > 0

    def delete_news(self, news_ids: set[str]) -> int:
        """Delete every click on these articles (when an interest is forgotten); returns how many."""
        with self._database.transaction():
            return sum(
                self._database.write("DELETE FROM click WHERE news_id = ?", (news_id,)).rowcount
                for news_id in sorted(news_ids)
            )


def _click(row: tuple[int, str, str, int]) -> Click:
    return Click(row[0], row[1], row[2], from_us(row[3]))

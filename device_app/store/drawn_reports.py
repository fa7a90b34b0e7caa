"""Reports drawn once and sent for good: the second time a reader is at a value, nothing is drawn nor charged."""

from __future__ import annotations

from datetime import datetime

from device_app.store.database import Database
from device_app.store.moment import to_us


class DrawnReports:
    """The noisy report (JSON) of every true value that was ever reported, by mechanism and book of prototypes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, mechanism: str, book: str, value: int) -> str | None:
        """What was drawn for this value, or None."""
        row = self._database.row(
            "SELECT report FROM drawn_report WHERE mechanism = ? AND book = ? AND value = ?", (mechanism, book, value)
        )
        return row[0] if row else None

    def keep(self, mechanism: str, book: str, value: int, report: str, at: datetime) -> None:
        """Keep a first drawing, inside the transaction of its charge. Raises sqlite3.IntegrityError for a second."""
        with self._database.transaction():
            self._database.write(
                "INSERT INTO drawn_report (mechanism, book, value, report, drawn_at) VALUES (?, ?, ?, ?, ?)",
                (mechanism, book, value, report, to_us(at)),
            )

    def distinct(self, mechanism: str) -> int:
        """How many values were reported by a mechanism, over all books."""
        return self._database.number("SELECT count(*) FROM drawn_report WHERE mechanism = ?", (mechanism,))

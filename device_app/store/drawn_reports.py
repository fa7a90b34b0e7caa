"""Reports drawn once and sent for good: the second time a reader is at a value, nothing is drawn nor charged."""

from __future__ import annotations

from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import to_us


class DrawnReports:
    """The noisy report (JSON) of every true value that was ever reported, by mechanism and meaning of the value.

    A meaning is named by `ReportMeaning` (the column `book`); when one first had a report drawn is kept
    here too, also by `erase`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, mechanism: str, meaning: str, value: int) -> str | None:
        """What was drawn for this value, or None."""
        row = self._database.row(
            "SELECT report FROM drawn_report WHERE mechanism = ? AND book = ? AND value = ?",
            (mechanism, meaning, value),
        )
        return row[0] if row else None

    def keep(self, mechanism: str, meaning: str, value: int, report: str, at: datetime) -> None:
        """Keep a first drawing, inside the transaction of its charge. Raises sqlite3.IntegrityError for a second."""
        with self._database.transaction():
            self._database.write(
                "INSERT INTO drawn_report (mechanism, book, value, report, drawn_at) VALUES (?, ?, ?, ?, ?)",
                (mechanism, meaning, value, report, to_us(at)),
            )

    def distinct(self, mechanism: str) -> int:
        """How many values were reported by a mechanism, under all meanings."""
        return self._database.number("SELECT count(*) FROM drawn_report WHERE mechanism = ?", (mechanism,))

    def begin(self, meaning: str, at: datetime) -> None:
        """A report is drawn under this meaning, perhaps for the first time; inside the transaction of its charge."""
        with self._database.transaction():
            self._database.write(
                "INSERT INTO report_meaning (meaning, first_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (meaning, to_us(at)),
            )

    def begun(self, meaning: str) -> bool:
        """Whether a report was ever drawn under this meaning."""
        return self._database.row("SELECT 1 FROM report_meaning WHERE meaning = ?", (meaning,)) is not None

    def begun_since(self, at: datetime) -> int:
        """Under how many meanings the first report was drawn at or after this time."""
        return self._database.number("SELECT count(*) FROM report_meaning WHERE first_at >= ?", (to_us(at),))

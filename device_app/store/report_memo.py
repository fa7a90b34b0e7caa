"""Store the report in use and the draw for each reported value.

Sending a stored draw again costs nothing. When a reader has a value again under the same meaning, the stored draw is
sent: nothing is drawn or charged.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, to_us


@dataclass(frozen=True)
class Memo:
    """The noisy request that was paid for, and the scores without noise, which never leave the device.

    payload is the exact JSON of the RecallRequest; clear is C x B, after clipping; clicks is the Clicks.latest_id() at
    that time, -1 for a cover. meaning, mechanism, encoder, directions and gram ([n, n] float32) are those of the
    `ReportMeaning` by which the report was made.
    """

    release: str
    payload: bytes
    clear: tuple[tuple[float, ...], ...]
    clicks: int
    made_at: datetime
    meaning: str
    mechanism: str
    encoder: str
    directions: str = ""
    gram: bytes = b""


class ReportMemo:
    """At most one report is in use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._latest = RowCache(database, self._read)

    def current(self, release: str) -> Memo | None:
        """Return the report in use if it was made under `release`."""
        found = self.latest()
        return found if found is not None and found.release == release else None

    def latest(self) -> Memo | None:
        """Return the current report, under any release."""
        return self._latest.get()

    def by_another_process(self) -> Memo | None:
        """Return a report that another process of this profile has stored; None if there is none.

        This process compares the stored report with the one it last saw. Call it inside the transaction that would pay
        for a new one, so that the two processes don't both pay.
        """
        remembered, stored = self._latest.get(), self._read()
        if stored == remembered:
            return None
        self._latest.forget()
        return stored

    def keep(self, memo: Memo) -> None:
        """Store a new report as the current one."""
        with self._database.transaction():
            self._database.write(
                """INSERT OR REPLACE INTO report_memo
                   (only, release, payload, clear, clicks, made_at, meaning, law, encoder, directions, gram)
                   VALUES (1, :release, :payload, :clear, :clicks, :made_at, :meaning, :mechanism, :encoder,
                           :directions, :gram)""",
                vars(memo) | {"clear": json.dumps(memo.clear), "made_at": to_us(memo.made_at)},
            )
            self._latest.forget()

    def clear(self) -> None:
        """Drop the current report: the next one is drawn and charged again."""
        with self._database.transaction():
            self._database.write("DELETE FROM report_memo")
            self._latest.forget()

    def _read(self) -> Memo | None:
        row = self._database.row(
            "SELECT release, payload, clear, clicks, made_at, meaning, law, encoder, directions, gram FROM report_memo"
        )
        if row is None:
            return None
        clear = tuple(tuple(channel) for channel in json.loads(row[2]))
        return Memo(row[0], row[1], clear, row[3], from_us(row[4]), *row[5:])


class DrawnReports:
    """The noisy report (JSON) of every true value ever reported, by mechanism and meaning.

    A meaning is named by `ReportMeaning` (the column `book`); the time of its first draw is stored here too, and
    `erase` keeps it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, mechanism: str, meaning: str, value: int) -> str | None:
        """Return the stored draw for this value, or None."""
        row = self._database.row(
            "SELECT report FROM drawn_report WHERE mechanism = ? AND book = ? AND value = ?",
            (mechanism, meaning, value),
        )
        return row[0] if row else None

    def keep(self, mechanism: str, meaning: str, value: int, report: str, at: datetime) -> None:
        """Store a first draw, inside the transaction of its charge.

        Raises sqlite3.IntegrityError for a second draw.
        """
        with self._database.transaction():
            self._database.write(
                "INSERT INTO drawn_report (mechanism, book, value, report, drawn_at) VALUES (?, ?, ?, ?, ?)",
                (mechanism, meaning, value, report, to_us(at)),
            )

    def distinct(self, mechanism: str) -> int:
        """Return how many values were reported by a mechanism, under all meanings."""
        return self._database.number("SELECT count(*) FROM drawn_report WHERE mechanism = ?", (mechanism,))

    def begin(self, meaning: str, at: datetime) -> None:
        """Record that a report is drawn under this meaning, perhaps the first.

        Call it in the transaction of its charge.
        """
        with self._database.transaction():
            self._database.write(
                "INSERT INTO report_meaning (meaning, first_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (meaning, to_us(at)),
            )

    def begun(self, meaning: str) -> bool:
        """Return whether a report was ever drawn under this meaning."""
        return self._database.row("SELECT 1 FROM report_meaning WHERE meaning = ?", (meaning,)) is not None

    def begun_since(self, at: datetime) -> int:
        """Return how many meanings had their first report drawn at or after this time."""
        return self._database.number("SELECT count(*) FROM report_meaning WHERE first_at >= ?", (to_us(at),))

"""The report in use: sent again and again, so that only the first sending costs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, to_us


@dataclass(frozen=True)
class Memo:
    """The noisy request as it was paid for, and the clear scores it was made from (these never leave).

    payload is the exact JSON of the RecallRequest; clear is C x B, after clipping; clicks is Clicks.latest_id() then.
    meaning, mechanism, encoder, directions and gram ([n, n] float32) are those of `ReportMeaning`, by
    which the report was made; empty in one that an older version of Ownfeed kept, which is sent while its
    encoder is in use.
    """

    release: str
    payload: bytes
    clear: tuple[tuple[float, ...], ...]
    clicks: int
    made_at: datetime
    meaning: str = ""
    mechanism: str = ""
    encoder: str = ""
    directions: str = ""
    gram: bytes = b""


class ReportMemo:
    """At most one report is in use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._latest = RowCache(database, self._read)

    def current(self, release: str) -> Memo | None:
        """The report in use if it was made under `release`."""
        found = self.latest()
        return found if found is not None and found.release == release else None

    def latest(self) -> Memo | None:
        """The report in use, whatever its release."""
        return self._latest.get()

    def by_another_process(self) -> Memo | None:
        """A report that another process of this profile put in use since this one last looked; None if none did.

        Asked inside the transaction that would pay for a new one, so that two processes don't both pay.
        """
        remembered, stored = self._latest.get(), self._read()
        if stored == remembered:
            return None
        self._latest.forget()
        return stored

    def keep(self, memo: Memo) -> None:
        """Put a new report in use."""
        with self._database.transaction():
            self._database.write(
                """INSERT OR REPLACE INTO report_memo
                   (only, release, payload, clear, clicks, made_at, meaning, law, encoder, directions, gram)
                   VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    memo.release,
                    memo.payload,
                    json.dumps(memo.clear),
                    memo.clicks,
                    to_us(memo.made_at),
                    memo.meaning,
                    memo.mechanism,
                    memo.encoder,
                    memo.directions,
                    memo.gram,
                ),
            )
            self._latest.forget()

    def clear(self) -> None:
        """Take the report out of use: the next one is drawn and paid for anew."""
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

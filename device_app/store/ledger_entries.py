"""The ledger's rows, append-only: what each release of data cost.

`accounting.ledger.Ledger` decides on charges.
"""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from device_app.store.database import Database
from device_app.store.rows import PAGE_SIZE, Page, from_us, offset, to_us

_COLUMNS = "at, channel, mechanism, parameters, epsilon, delta, payload_sha256, subject, id"
LAST_US = 2**63 - 1


@dataclass(frozen=True)
class LedgerEntry:
    """One charge. parameters holds the mechanism's numbers by name; id is 0 until it's stored."""

    at: datetime
    channel: str
    mechanism: str
    parameters: dict[str, float]
    epsilon: float
    delta: float
    payload_sha256: str
    subject: str
    id: int = 0


@dataclass(frozen=True)
class DaySum:
    """What one channel cost on one UTC day."""

    day: date
    channel: str
    epsilon: float
    charges: int


class LedgerRepository:
    """Charges in the order they were made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def transaction(self) -> AbstractContextManager[None]:
        """Return a transaction; reading the remaining budget and appending must happen inside one."""
        return self._database.transaction()

    def append(self, entry: LedgerEntry) -> int:
        """Store a charge; it is on the disk when the transaction around it (or this call) ends.

        Returns its id.
        """
        with self._database.transaction():
            kept = self._database.write(
                """INSERT INTO charge (at, channel, mechanism, parameters, epsilon, delta, payload_sha256, subject)
                   VALUES (:at, :channel, :mechanism, :parameters, :epsilon, :delta, :payload_sha256, :subject)
                   RETURNING id""",
                vars(entry)
                | {
                    "at": to_us(entry.at),
                    "parameters": json.dumps(entry.parameters, sort_keys=True, allow_nan=False),
                },
            ).fetchone()
        return int(kept[0])

    def spent(self, channel: str, since: datetime, before: datetime | None = None) -> float:
        """Return the pure epsilon of this channel's charges from `since` on, before `before`."""
        found = self._database.row(
            "SELECT total(epsilon) FROM charge WHERE channel = ? AND at >= ? AND at < ?",
            (channel, to_us(since), LAST_US if before is None else to_us(before)),
        )
        return float(found[0]) if found else 0.0

    def total(self, channel: str) -> float:
        """Return the pure epsilon of this channel's charges over the lifetime of the device."""
        found = self._database.row("SELECT total(epsilon) FROM charge WHERE channel = ?", (channel,))
        return float(found[0]) if found else 0.0

    def charges_since(self, channel: str, since: datetime) -> int:
        """Return how many charges of this channel there are since this time."""
        found = "SELECT count(*) FROM charge WHERE channel = ? AND at >= ?"
        return self._database.number(found, (channel, to_us(since)))

    def rho_alone(self, since: datetime | None = None, before: datetime | None = None) -> float:
        """Return the total rho of the noisy sums if every other device was fake, of all charges or a period's."""
        found = self._database.row(
            "SELECT total(json_extract(parameters, '$.rho_alone')) FROM charge WHERE at >= ? AND at < ?",
            (0 if since is None else to_us(since), LAST_US if before is None else to_us(before)),
        )
        return float(found[0]) if found else 0.0

    def of_sums(self) -> dict[str, LedgerEntry]:
        """Return the newest charge of each round that was a noisy sum, by its subject."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM charge WHERE json_extract(parameters, '$.rho') IS NOT NULL ORDER BY id"
        )
        return {entry.subject: entry for entry in map(_entry, rows)}

    def days(self, limit: int = 60) -> list[DaySum]:
        """Return the sums by UTC day and channel, newest day first."""
        found = self._database.rows(
            """SELECT date(at / 1000000, 'unixepoch') AS day, channel, total(epsilon), count(*) FROM charge
               GROUP BY day, channel ORDER BY day DESC, channel LIMIT ?""",
            (limit,),
        )
        return [DaySum(date.fromisoformat(day), channel, epsilon, charges) for day, channel, epsilon, charges in found]

    def charged_by(self, mechanisms: Sequence[str], since: datetime) -> bool:
        """Return whether there is a charge of one of these mechanisms from `since` on."""
        marks = ", ".join("?" * len(mechanisms))
        sql = f"SELECT count(*) FROM charge WHERE mechanism IN ({marks}) AND at >= ?"
        return self._database.number(sql, (*mechanisms, to_us(since))) > 0

    def all(self) -> list[LedgerEntry]:
        """Return every charge, in the order they were made."""
        return [_entry(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM charge ORDER BY id")]

    def entries(self, page: int = 1) -> Page[LedgerEntry]:
        """Charges newest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM charge ORDER BY id DESC LIMIT ? OFFSET ?", (PAGE_SIZE, offset(page))
        )
        return Page(tuple(_entry(row) for row in rows), page, self._database.number("SELECT count(*) FROM charge"))

    def grouped(self) -> list[tuple[str, str, dict[str, float], float, float, int]]:
        """Return charges grouped by channel, mechanism, parameters, epsilon and delta, with their number."""
        found = self._database.rows(
            """SELECT channel, mechanism, parameters, epsilon, delta, count(*) FROM charge
               GROUP BY channel, mechanism, parameters, epsilon, delta ORDER BY min(id)"""
        )
        return [(row[0], row[1], json.loads(row[2]), row[3], row[4], row[5]) for row in found]

    def charged(self, payload_sha256: str) -> LedgerEntry | None:
        """Return the charge that paid for exactly these bytes, or None."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM charge WHERE payload_sha256 = ? LIMIT 1", (payload_sha256,))
        return _entry(row) if row else None


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    at, channel, mechanism, parameters, *rest = row
    return LedgerEntry(from_us(at), channel, mechanism, json.loads(parameters), *rest)

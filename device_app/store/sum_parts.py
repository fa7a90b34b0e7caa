"""Where this device stands in secure sums, so that a kill at any point neither loses nor repeats a message."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.moment import to_us


@dataclass(frozen=True)
class SumPart:
    """One sum. offer and state are JSON; state holds the round's secrets. sent: its present message has arrived.

    payload: the masked vector, until it has arrived; a second, other one must never be made.
    """

    round: str
    offer: str
    state: str
    payload: bytes | None = None
    sent: bool = False


class SumParts:
    """Sums by round; at most one is usually under way."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, part: SumPart, at: datetime) -> None:
        """Keep a part, in the place of what stood there."""
        with self._database.transaction():
            self._database.write(
                """INSERT OR REPLACE INTO sum_part (round, offer, state, payload, sent, changed_at)
                   VALUES (?, ?, ?, ?, ?, ?)""",
                (part.round, part.offer, part.state, part.payload, int(part.sent), to_us(at)),
            )

    def under_way(self) -> SumPart | None:
        """The part that waits to be gone on with, the oldest first."""
        row = self._database.row(
            "SELECT round, offer, state, payload, sent FROM sum_part ORDER BY changed_at, round LIMIT 1"
        )
        return None if row is None else SumPart(row[0], row[1], row[2], row[3], bool(row[4]))

    def drop(self, round_id: str) -> None:
        """Forget a part, its keys and its vector."""
        with self._database.transaction():
            self._database.write("DELETE FROM sum_part WHERE round = ?", (round_id,))

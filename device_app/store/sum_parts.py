"""Where this device stands in secure sums, so that a kill at any point neither loses nor repeats a message."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.errors import RoundTakenOver
from device_app.store.database import Database
from device_app.store.rows import to_us


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
    """Sums by round; several are under way where rounds are side by side.

    Every change names the state it comes from: a process that holds an older one changes nothing, and sends nothing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, part: SumPart, at: datetime) -> None:
        """Keep the first state of a part. Raises RoundTakenOver if the round has one."""
        with self._database.transaction():
            kept = self._database.write(
                """INSERT INTO sum_part (round, offer, state, payload, sent, changed_at) VALUES (?, ?, ?, ?, ?, ?)
                   ON CONFLICT (round) DO NOTHING""",
                (part.round, part.offer, part.state, part.payload, int(part.sent), to_us(at)),
            )
            if kept.rowcount != 1:
                raise RoundTakenOver(part.round)

    def go_on(self, before: SumPart, after: SumPart, at: datetime) -> None:
        """Keep `after` in the place of `before`, if that is what still stands there. Raises RoundTakenOver if not.

        Compared inside the transaction that writes (BEGIN IMMEDIATE), so that of several processes that come from one
        state, one gets to the next; a state holds keys of its own, so no two of them are alike by chance.
        """
        with self._database.transaction():
            kept = self._database.write(
                """UPDATE sum_part SET offer = ?, state = ?, payload = ?, sent = ?, changed_at = ?
                   WHERE round = ? AND state = ?""",
                (after.offer, after.state, after.payload, int(after.sent), to_us(at), before.round, before.state),
            )
            if kept.rowcount != 1:
                raise RoundTakenOver(before.round)

    def under_way(self) -> list[SumPart]:
        """The parts that wait to be gone on with, the oldest first."""
        rows = self._database.rows("SELECT round, offer, state, payload, sent FROM sum_part ORDER BY changed_at, round")
        return [SumPart(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]

    def drop(self, part: SumPart) -> None:
        """Forget a part, its keys and its vector. Raises RoundTakenOver if it stands elsewhere by now."""
        with self._database.transaction():
            gone = self._database.write("DELETE FROM sum_part WHERE round = ? AND state = ?", (part.round, part.state))
            if gone.rowcount != 1:
                raise RoundTakenOver(part.round)

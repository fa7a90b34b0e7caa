"""Training rounds this device took part in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.errors import RoundTakenOver
from device_app.store.database import Database
from device_app.store.moment import from_us, to_us


@dataclass(frozen=True)
class Participation:
    """One round.

    state is the participant's last word: 'joined', 'uploaded', 'declined', 'not needed', 'failed'; detail says why.
    """

    round: str
    system: str
    task: str
    release: str
    state: str
    joined_at: datetime
    changed_at: datetime
    detail: str | None = None
    sent_bytes: int = 0
    epsilon: float = 0.0


class Participations:
    """Rounds by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, participation: Participation) -> None:
        """Keep a round that was just joined. Raises RoundTakenOver if it is known: a device has one part in a round."""
        with self._database.transaction():
            kept = self._database.write(
                """INSERT INTO participation
                   (round, system, task, release, state, detail, sent_bytes, epsilon, joined_at, changed_at)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (round) DO NOTHING""",
                (
                    participation.round,
                    participation.system,
                    participation.task,
                    participation.release,
                    participation.state,
                    participation.detail,
                    participation.sent_bytes,
                    participation.epsilon,
                    to_us(participation.joined_at),
                    to_us(participation.changed_at),
                ),
            )
            if kept.rowcount != 1:
                raise RoundTakenOver(participation.round)

    def update(
        self,
        round_id: str,
        *,
        state: str,
        at: datetime,
        detail: str | None = None,
        sent_bytes: int | None = None,
        epsilon: float | None = None,
    ) -> bool:
        """Change a round's state; None leaves bytes and epsilon as they are. False if the round isn't known."""
        with self._database.transaction():
            return (
                self._database.write(
                    """UPDATE participation SET state = ?, detail = ?, changed_at = ?,
                       sent_bytes = coalesce(?, sent_bytes), epsilon = coalesce(?, epsilon) WHERE round = ?""",
                    (state, detail, to_us(at), sent_bytes, epsilon, round_id),
                ).rowcount
                > 0
            )

    def get(self, round_id: str) -> Participation | None:
        """One round, or None."""
        return next((one for one in self.list() if one.round == round_id), None)

    def list(self) -> list[Participation]:
        """All rounds, newest first."""
        found = self._database.rows(
            """SELECT round, system, task, release, state, joined_at, changed_at, detail, sent_bytes, epsilon
               FROM participation ORDER BY joined_at DESC, round DESC"""
        )
        return [_participation(*row) for row in found]


def _participation(
    round_id: str,
    system: str,
    task: str,
    release: str,
    state: str,
    joined_us: int,
    changed_us: int,
    detail: str | None,
    sent_bytes: int,
    epsilon: float,
) -> Participation:
    return Participation(
        round_id, system, task, release, state, from_us(joined_us), from_us(changed_us), detail, sent_bytes, epsilon
    )

"""Training rounds this device took part in, the one upload of each, and what its views handed over inside of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.errors import RoundTakenOver
from device_app.store.count_log import PASSED_OVER
from device_app.store.database import Database
from device_app.store.rows import from_us, to_us


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

    def may_have(self, round_id: str, opened_at: datetime) -> bool:
        """Whether this device has had to do with a round. One that goes on from a copy can't know of those that were
        opened before the copy was put back, and may have."""
        put_back = self._database.number("SELECT max(until) FROM count_taken WHERE round LIKE ?", (f"{PASSED_OVER}%",))
        return to_us(opened_at) <= put_back or self.get(round_id) is not None

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


class RoundUploads:
    """Hashes of updates and masked vectors by round.

    Formal guarantees: of all processes and connections that have this database open, and over all restarts, at most one
    upload a round is ever bound. Whoever sends only what it has bound, or what is kept from the transaction that bound
    it, sends no two uploads of one round that differ.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def bind(self, round_id: str, payload_sha256: str, at: datetime) -> None:
        """Bind the round to these bytes, in the transaction that pays for them. Raises RoundTakenOver if it's bound."""
        with self._database.transaction():
            bound = self._database.write(
                """INSERT INTO round_upload (round, payload_sha256, bound_at) VALUES (?, ?, ?)
                   ON CONFLICT (round) DO NOTHING""",
                (round_id, payload_sha256, to_us(at)),
            )
            if bound.rowcount != 1:
                raise RoundTakenOver(round_id)


class ViewLog:
    """One row a view and round, on the disk before the view's process starts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, round_id: str, views: Sequence[str], *, clip: float, sigma: float, at: datetime) -> None:
        """These views are about to hand over a gradient each. Once more in the same round counts as one
        gradient with the noise that both together leave."""
        with self._database.transaction():
            for view in views:
                self._database.write(
                    """INSERT INTO view_round (round, view, clip, sigma, at) VALUES (?, ?, ?, ?, ?)
                       ON CONFLICT (round, view) DO UPDATE
                       SET sigma = 1 / sqrt(1 / (sigma * sigma) + 1 / (excluded.sigma * excluded.sigma))""",
                    (round_id, view, clip, sigma, to_us(at)),
                )

    def sigmas(self, view: str) -> list[float]:
        """The noise multiplier of each round this view took part in, oldest first."""
        found = self._database.rows("SELECT sigma FROM view_round WHERE view = ? ORDER BY at, round", (view,))
        return [row[0] for row in found]

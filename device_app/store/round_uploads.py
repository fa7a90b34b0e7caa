"""The one upload of each round, by its hash: bound before its first byte leaves, and never bound again."""

from __future__ import annotations

from datetime import datetime

from device_app.errors import RoundTakenOver
from device_app.store.database import Database
from device_app.store.moment import to_us


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

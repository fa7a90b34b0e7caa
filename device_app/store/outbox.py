"""Uploads that must arrive: kept before the first try, sent again byte for byte, dropped when too late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from device_app.store.database import Database
from device_app.store.rows import from_us, to_us

_COLUMNS = "id, subject, method, path, content_type, payload, sha256, words, expires_at, attempts, trouble"


@dataclass(frozen=True)
class OutboxItem:
    """One upload on its way. subject is unique ('round-3'); trouble says why the last try failed."""

    id: int
    subject: str
    method: str
    path: str
    content_type: str
    payload: bytes
    sha256: str
    words: str
    expires_at: datetime
    attempts: int
    trouble: str | None


class Outbox:
    """Durable uploads, oldest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        *,
        subject: str,
        method: str,
        path: str,
        content_type: str,
        payload: bytes,
        words: str,
        at: datetime,
        expires_at: datetime,
    ) -> int:
        """Keep an upload and return its id once it's on the disk; a waiting subject keeps its first bytes."""
        with self._database.transaction():
            self._database.write(
                """INSERT INTO parcel (subject, method, path, content_type, payload, sha256, words, put_at, due_at,
                                       expires_at, attempts)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (subject) DO NOTHING""",
                (
                    subject,
                    method,
                    path,
                    content_type,
                    payload,
                    sha256(payload).hexdigest(),
                    words,
                    to_us(at),
                    to_us(at),
                    to_us(expires_at),
                ),
            )
            return self._database.number("SELECT id FROM parcel WHERE subject = ?", (subject,))

    def due(self, now: datetime) -> list[OutboxItem]:
        """What should be sent now, oldest first; what came too late is dropped first."""
        with self._database.transaction():
            self._database.write("DELETE FROM parcel WHERE expires_at <= ?", (to_us(now),))
            rows = self._database.rows(
                f"SELECT {_COLUMNS} FROM parcel WHERE due_at <= ? ORDER BY put_at, id", (to_us(now),)
            )
        return [_item(row) for row in rows]

    def waiting(self) -> list[OutboxItem]:
        """All that hasn't arrived, oldest first."""
        return [_item(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM parcel ORDER BY put_at, id")]

    def done(self, item_id: int) -> None:
        """The upload arrived or is no longer wanted."""
        with self._database.transaction():
            self._database.write("DELETE FROM parcel WHERE id = ?", (item_id,))

    def fail(self, item_id: int, why: str, again_at: datetime) -> None:
        """The try failed; the same bytes are due again at `again_at`."""
        with self._database.transaction():
            self._database.write(
                "UPDATE parcel SET attempts = attempts + 1, trouble = ?, due_at = ? WHERE id = ?",
                (why, to_us(again_at), item_id),
            )


def _item(row: tuple[int, str, str, str, str, bytes, str, str, int, int, str | None]) -> OutboxItem:
    return OutboxItem(*row[:8], expires_at=from_us(row[8]), attempts=row[9], trouble=row[10])

"""Store this device's part in rounds: uploads, secure sums, views and the outbox.

Uploads and the state of secure sums are stored before they are sent, so that a crash neither loses a message nor sends
a different one: an upload is sent again byte for byte, or dropped when it is too late.

Contributions to private counts are logged, so that none is made twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from device_app.errors import RoundTakenOver
from device_app.store.database import Database
from device_app.store.rows import from_us, to_us

PASSED_OVER = "passed over until "
"""Stored in place of a round for a window that was skipped without contributing anything."""


@dataclass(frozen=True)
class PaidCount:
    """One count that this device paid for.

    It covers the reader's displays and clicks after `since`, up to `until`.
    """

    round: str
    since: datetime
    until: datetime
    displayed: int
    clicked: int


@dataclass(frozen=True)
class CountWindow:
    """Displays and clicks after `since`, up to `until`: ids of articles, each once."""

    since: datetime
    until: datetime
    displayed: frozenset[str]
    clicked: frozenset[str]


class CountLog:
    """The time windows already spent.

    A display or click belongs to one window, regardless of how its round ends.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def window(self, now: datetime, longest: timedelta) -> CountWindow:
        """Return what may be contributed now.

        That is everything in feeds since the last window, but nothing older than `longest`. An article is displayed
        when it first comes into view in a feed; articles that never came into view are left out, since they would lower
        the click rate at the end of every page. Clicks outside feeds (from a search, say) are left out too: such
        displays aren't counted, so these clicks would raise the click rate.
        """
        with self._database.alone():
            spent = self._database.number("SELECT max(until) FROM count_taken")
            since_us, until_us = max(spent, to_us(now - longest)), to_us(now)
            displayed = self._database.rows(
                "SELECT DISTINCT news_id FROM impression WHERE viewed_at > ? AND viewed_at <= ?", (since_us, until_us)
            )
            clicked = self._database.rows(
                """SELECT DISTINCT click.news_id FROM click JOIN impression USING (feed_id, news_id)
                   WHERE click.at > ? AND click.at <= ?""",
                (since_us, until_us),
            )
        return CountWindow(
            from_us(since_us),
            from_us(until_us),
            frozenset(row[0] for row in displayed),
            frozenset(row[0] for row in clicked),
        )

    def take(self, taken: PaidCount) -> None:
        """Mark a window as counted; call it in the transaction that charges.

        Raises ValueError if part of it was already counted.
        """
        with self._database.transaction():
            spent = self._database.number("SELECT max(until) FROM count_taken")
            if to_us(taken.since) < spent:
                raise ValueError(
                    f"since: {taken.since.isoformat()} is before {from_us(spent).isoformat()}, a day that "
                    "was already counted"
                )
            self._database.write(
                "INSERT INTO count_taken (round, since, until, displayed, clicked) VALUES (?, ?, ?, ?, ?)",
                (taken.round, to_us(taken.since), to_us(taken.until), taken.displayed, taken.clicked),
            )

    def pass_over(self, until: datetime) -> None:
        """Skip everything up to `until`: it is never contributed.

        It may have been contributed before data was lost.
        """
        with self._database.transaction():
            spent = self._database.number("SELECT max(until) FROM count_taken")
            if spent < to_us(until):
                self.take(PaidCount(f"{PASSED_OVER}{until.isoformat()}", from_us(spent), until, 0, 0))

    def list(self, limit: int = 20) -> list[PaidCount]:
        """Return the counts paid for, newest first."""
        found = self._database.rows(
            "SELECT round, since, until, displayed, clicked FROM count_taken WHERE round NOT LIKE ? "
            "ORDER BY until DESC, round DESC LIMIT ?",
            (f"{PASSED_OVER}%", limit),
        )
        return [PaidCount(row[0], from_us(row[1]), from_us(row[2]), row[3], row[4]) for row in found]


@dataclass(frozen=True)
class Participation:
    """One round.

    state is the last state of this device's part: 'joined', 'uploaded', 'declined', 'not needed', 'failed'; detail says
    why.
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
        """Store a round that was just joined.

        Raises RoundTakenOver if it is stored: a device has one part in a round.
        """
        with self._database.transaction():
            kept = self._database.write(
                """INSERT INTO participation
                   (round, system, task, release, state, detail, sent_bytes, epsilon, joined_at, changed_at)
                   VALUES (:round, :system, :task, :release, :state, :detail, :sent_bytes, :epsilon, :joined_at,
                           :changed_at)
                   ON CONFLICT (round) DO NOTHING""",
                vars(participation)
                | {"joined_at": to_us(participation.joined_at), "changed_at": to_us(participation.changed_at)},
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
        """Change a round's state; None leaves bytes and epsilon as they are.

        False if the round isn't known.
        """
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
        return next((one for one in self.list() if one.round == round_id), None)

    def may_have(self, round_id: str, opened_at: datetime) -> bool:
        """Return whether this device has taken part in a round, or may have done so.

        A device restored from a copy may have taken part in any round opened before the copy was restored.
        """
        put_back = self._database.number("SELECT max(until) FROM count_taken WHERE round LIKE ?", (f"{PASSED_OVER}%",))
        return to_us(opened_at) <= put_back or self.get(round_id) is not None

    def list(self) -> list[Participation]:
        """Return all rounds, newest first."""
        found = self._database.rows(
            """SELECT round, system, task, release, state, joined_at, changed_at, detail, sent_bytes, epsilon
               FROM participation ORDER BY joined_at DESC, round DESC"""
        )
        return [Participation(*row[:5], from_us(row[5]), from_us(row[6]), *row[7:]) for row in found]  # type: ignore[call-arg]


class RoundUploads:
    """Hashes of updates and masked vectors by round.

    Formal guarantees: across all processes and connections that have this database open, and over all restarts, at most
    one upload is ever bound to a round. Code that sends only what it has bound, or what that transaction stored, never
    sends two different uploads in one round.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def bind(self, round_id: str, payload_sha256: str, at: datetime) -> None:
        """Bind the round to these bytes, in the transaction that charges for them.

        Raises RoundTakenOver if it's bound.
        """
        with self._database.transaction():
            bound = self._database.write(
                """INSERT INTO round_upload (round, payload_sha256, bound_at) VALUES (?, ?, ?)
                   ON CONFLICT (round) DO NOTHING""",
                (round_id, payload_sha256, to_us(at)),
            )
            if bound.rowcount != 1:
                raise RoundTakenOver(round_id)


class ViewLog:
    """One row per view and round, on the disk before the view's process starts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, round_id: str, views: Sequence[str], *, clip: float, sigma: float, at: datetime) -> None:
        """Record that these views are about to contribute a gradient each.

        Two contributions in the same round count as one gradient with the joint noise of both.
        """
        with self._database.transaction():
            for view in views:
                self._database.write(
                    """INSERT INTO view_round (round, view, clip, sigma, at) VALUES (?, ?, ?, ?, ?)
                       ON CONFLICT (round, view) DO UPDATE
                       SET sigma = 1 / sqrt(1 / (sigma * sigma) + 1 / (excluded.sigma * excluded.sigma))""",
                    (round_id, view, clip, sigma, to_us(at)),
                )

    def sigmas(self, view: str) -> list[float]:
        """Return the noise multiplier of each round this view took part in, oldest first."""
        found = self._database.rows("SELECT sigma FROM view_round WHERE view = ? ORDER BY at, round", (view,))
        return [row[0] for row in found]


@dataclass(frozen=True)
class SumPart:
    """This device's part in one sum. offer and state are JSON.

    state holds the round's secrets. sent: the current message has arrived. payload: the masked vector, until it has
    arrived; a second, different one must never be made.
    """

    round: str
    offer: str
    state: str
    payload: bytes | None = None
    sent: bool = False


class SumParts:
    """Parts in sums by round; several are active if rounds run in parallel.

    Every change names the state it starts from: a process with an older state changes nothing and sends nothing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, part: SumPart, at: datetime) -> None:
        """Store the first state of a part. Raises RoundTakenOver if the round has one."""
        with self._database.transaction():
            kept = self._database.write(
                """INSERT INTO sum_part (round, offer, state, payload, sent, changed_at) VALUES (?, ?, ?, ?, ?, ?)
                   ON CONFLICT (round) DO NOTHING""",
                (part.round, part.offer, part.state, part.payload, int(part.sent), to_us(at)),
            )
            if kept.rowcount != 1:
                raise RoundTakenOver(part.round)

    def go_on(self, before: SumPart, after: SumPart, at: datetime) -> None:
        """Replace `before` by `after`. Raises RoundTakenOver unless `before` is the stored state.

        The comparison is inside the transaction that writes (BEGIN IMMEDIATE), so if several processes start from the
        same state, only one of them reaches the next; a state contains its own keys, so two states are never equal by
        chance.
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
        """Return the parts that are not finished, oldest first."""
        rows = self._database.rows("SELECT round, offer, state, payload, sent FROM sum_part ORDER BY changed_at, round")
        return [SumPart(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]

    def drop(self, part: SumPart) -> None:
        """Delete a part, its keys and its vector.

        Raises RoundTakenOver if its stored state has changed.
        """
        with self._database.transaction():
            result = self._database.write(
                "DELETE FROM sum_part WHERE round = ? AND state = ?", (part.round, part.state)
            )
            if result.rowcount != 1:
                raise RoundTakenOver(part.round)


_COLUMNS = "id, subject, method, path, content_type, payload, sha256, words, expires_at, attempts, trouble"


@dataclass(frozen=True)
class OutboxItem:
    """One pending upload. subject is unique ('round-3'); trouble says why the last try failed."""

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
        """Store an upload and return its id once it's on the disk.

        A pending subject keeps its first bytes.
        """
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
        """Return the uploads that should be sent now, oldest first.

        Those that are too late are dropped first.
        """
        with self._database.transaction():
            self._database.write("DELETE FROM parcel WHERE expires_at <= ?", (to_us(now),))
            rows = self._database.rows(
                f"SELECT {_COLUMNS} FROM parcel WHERE due_at <= ? ORDER BY put_at, id", (to_us(now),)
            )
        return [_item(row) for row in rows]

    def waiting(self) -> list[OutboxItem]:
        """Return all pending uploads, oldest first."""
        return [_item(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM parcel ORDER BY put_at, id")]

    def done(self, item_id: int) -> None:
        """Remove an upload that arrived or is no longer wanted."""
        with self._database.transaction():
            self._database.write("DELETE FROM parcel WHERE id = ?", (item_id,))

    def fail(self, item_id: int, why: str, again_at: datetime) -> None:
        """Record a failed try; the same bytes are due again at `again_at`."""
        with self._database.transaction():
            self._database.write(
                "UPDATE parcel SET attempts = attempts + 1, trouble = ?, due_at = ? WHERE id = ?",
                (why, to_us(again_at), item_id),
            )


def _item(row: tuple[int, str, str, str, str, bytes, str, str, int, int, str | None]) -> OutboxItem:
    return OutboxItem(*row[:8], expires_at=from_us(row[8]), attempts=row[9], trouble=row[10])

"""Releases and training rounds. Devices appear in no table: only pseudonyms that live for one round.

Messages of secure sums: pseudonyms live for one round, and these rows for less. Private counts: no row is of one
device, each number is a noisy sum over a cohort.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column, validates

from backend.db.base import Base, UtcDateTime

WORDS_LIMIT = 500
"""Characters of a sentence for people. Which words come is up to strategies and errors: longer ones are cut."""


def cut(words: str | None) -> str | None:
    """The words, as far as their column holds them."""
    return words if words is None or len(words) <= WORDS_LIMIT else words[: WORDS_LIMIT - 1] + "…"


class ReleaseRow(Base):
    """One published release. A row is written once, after every blob it names is on disk, and never changes.

    The current release is the one of the highest number. `facts` holds what was measured when it was made.
    """

    __tablename__ = "releases"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    manifest: Mapped[str] = mapped_column(Text)
    signature: Mapped[bytes] = mapped_column(LargeBinary)
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    note: Mapped[str] = mapped_column(String(WORDS_LIMIT))
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)
    published_at: Mapped[datetime] = mapped_column(UtcDateTime)


class LostReleaseRow(Base):
    """A release that devices may have seen and this database hasn't: it was put back from an older copy.

    Written with the first release that follows them, so that the chain has no gap.
    """

    __tablename__ = "lost_releases"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    manifest_sha256: Mapped[str] = mapped_column(String(64))
    published_at: Mapped[datetime] = mapped_column(UtcDateTime)


class KeyRotationRow(Base):
    """The statement by which one signing key handed over to the next; written with the first release of the new key."""

    __tablename__ = "key_rotations"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    rotation: Mapped[str] = mapped_column(Text)
    by_old_key: Mapped[bytes] = mapped_column(LargeBinary)
    by_new_key: Mapped[bytes] = mapped_column(LargeBinary)
    release: Mapped[int] = mapped_column(ForeignKey("releases.number"))


class RoundRow(Base):
    """One training round and the state it is in.

    The states are those of `backend.federation.rounds.states`; while a secure sum is under way the row says `open`,
    and the stage is the sum's own (`SecureSumRow`), so that there is one truth. survivors, epsilon and delta: of an
    opened sum. follows: the round whose end ordered this one. facts: what the round came to, summary: in a sentence.
    memory: of its optimizer. places_refused: to addresses that had as many as one may have, or get none (`retries`).
    check_ins: without a place for other reasons, counted by these (`rounds.records.CheckIns`).
    """

    __tablename__ = "rounds"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    system: Mapped[str] = mapped_column(String(80))
    state: Mapped[str] = mapped_column(String(20), index=True)
    reason: Mapped[str | None] = mapped_column(String(WORDS_LIMIT))
    release: Mapped[int] = mapped_column(ForeignKey("releases.number"))
    published: Mapped[int | None] = mapped_column(ForeignKey("releases.number"))
    manifest: Mapped[str] = mapped_column(Text)
    cohort: Mapped[int]
    cohort_minimum: Mapped[int]
    admission: Mapped[float] = mapped_column(Float(53))
    opened_at: Mapped[datetime] = mapped_column(UtcDateTime)
    closes_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    survivors: Mapped[int | None]
    epsilon: Mapped[float | None] = mapped_column(Float(53))
    delta: Mapped[float | None] = mapped_column(Float(53))
    follows: Mapped[int | None] = mapped_column(index=True, unique=True)
    facts: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    memory: Mapped[bytes | None] = mapped_column(LargeBinary)
    summary: Mapped[str | None] = mapped_column("says", String(WORDS_LIMIT))
    places_refused: Mapped[int] = mapped_column(default=0, server_default="0")
    check_ins: Mapped[dict[str, int] | None] = mapped_column(JSON)

    @validates("reason", "summary")
    def _cut(self, name: str, words: str | None) -> str | None:
        return cut(words)

    __table_args__ = (
        CheckConstraint("cohort_minimum >= 1 AND cohort_minimum <= cohort", name="minimum_within_cohort"),
        CheckConstraint("state IN ('open', 'updates', 'applied', 'failed')", name="known_state"),
    )


class FollowUpRow(Base):
    """A round that another one's end asks for, written in that end's transaction.

    Neither opened nor a reason: it's still to be opened. reason: why it can't be. retries: 0 for what a conclusion
    asks for; the n-th time that a failed round is opened again, n. refused_sources: get no place in it
    (`ParticipationRow`), erased when it has ended.
    """

    __tablename__ = "round_orders"

    after: Mapped[int] = mapped_column(ForeignKey("rounds.number"), primary_key=True, autoincrement=False)
    request: Mapped[str] = mapped_column("order", Text)
    opened: Mapped[int | None] = mapped_column(ForeignKey("rounds.number"))
    reason: Mapped[str | None] = mapped_column(String(WORDS_LIMIT))
    retries: Mapped[int] = mapped_column(default=0, server_default="0")
    refused_sources: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))

    @validates("reason")
    def _cut(self, name: str, words: str | None) -> str | None:
        return cut(words)


class QueuedRoundRow(Base):
    """A round that was asked for while another one changed the same, and waits its turn (`federation.rounds.queue`).

    Neither opened nor a reason: it still waits. reason: why it never opened.
    """

    __tablename__ = "round_queue"

    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    request: Mapped[str] = mapped_column("order", Text)
    queued_at: Mapped[datetime] = mapped_column(UtcDateTime)
    opened: Mapped[int | None] = mapped_column(ForeignKey("rounds.number"))
    reason: Mapped[str | None] = mapped_column(String(WORDS_LIMIT))

    @validates("reason")
    def _cut(self, name: str, words: str | None) -> str | None:
        return cut(words)


class ScheduleRow(Base):
    """When rounds open by themselves, and whether any may: the one row `backend.federation.rounds.scheduling` keeps."""

    __tablename__ = "timetable"

    only: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    paused: Mapped[bool]
    schedule: Mapped[str | None] = mapped_column(Text)
    last: Mapped[datetime | None] = mapped_column(UtcDateTime)
    trouble: Mapped[str | None] = mapped_column(String(WORDS_LIMIT))

    @validates("trouble")
    def _cut(self, name: str, words: str | None) -> str | None:
        return cut(words)

    __table_args__ = (CheckConstraint('"only" = 1', name="one_row"),)


class PollCountRow(Base):
    """How often devices asked one server process for rounds in the last half minute, as it told the others.

    A count and no request: which devices asked is known nowhere (`backend.federation.rounds.polls`).
    """

    __tablename__ = "poll_counts"

    process: Mapped[str] = mapped_column(String(16), primary_key=True)
    told_at: Mapped[datetime] = mapped_column(UtcDateTime)
    polls: Mapped[int]


class ParticipationRow(Base):
    """One place in a round: offered, and perhaps used. A pseudonym uploads once.

    source: a keyed hash of the network address that asked for it, erased when the round has ended.
    """

    __tablename__ = "participations"

    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    round: Mapped[int] = mapped_column(ForeignKey("rounds.number", ondelete="CASCADE"))
    pseudonym: Mapped[str] = mapped_column(String(64))
    offered_at: Mapped[datetime] = mapped_column(UtcDateTime)
    uploaded_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sha256: Mapped[str | None] = mapped_column(String(64))
    size_bytes: Mapped[int | None]
    source: Mapped[str | None] = mapped_column(String(32))

    __table_args__ = (UniqueConstraint("round", "pseudonym"),)


class SecureSumRow(Base):
    """One secure sum under way or ended (`backend.federation.secagg`): a step of a round, or a count by itself.

    stage is the record's as a round's status tells it (complaints are part of shares).
    record is small, and changes when a stage closes; what devices send are rows (`SumMessageRow`), and the running sum
    is an object: `total` is its SHA-256, `kept_as` its name (`federation.secagg.running_sums`). A message's row and the
    sum it is in change in one transaction.
    """

    __tablename__ = "secure_sums"

    name: Mapped[str] = mapped_column(String(80), primary_key=True)
    stage: Mapped[str] = mapped_column(String(20), index=True)
    record: Mapped[str] = mapped_column(Text)
    total: Mapped[str | None] = mapped_column(String(64))
    kept_as: Mapped[str | None] = mapped_column(String(64))
    stage_sec: Mapped[float] = mapped_column(Float(53))
    closes_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint(
            "stage IN ('keys', 'shares', 'masked', 'agree', 'unmask', 'opened', 'failed')", name="known_stage"
        ),
    )


class SumMessageRow(Base):
    """What one device sent at one stage of a secure sum; gone when the sum ends.

    body holds public keys, encrypted shares, a signature or revealed shares, and is empty for a masked vector.
    """

    __tablename__ = "secure_sum_messages"

    sum: Mapped[str] = mapped_column(ForeignKey("secure_sums.name", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(String(20), primary_key=True)
    member: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    pseudonym: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64))
    body: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (UniqueConstraint("sum", "stage", "pseudonym"),)


class SumKeyRow(Base):
    """A public key that a member of a secure sum has advertised; no two members may have one in common."""

    __tablename__ = "secure_sum_keys"

    sum: Mapped[str] = mapped_column(ForeignKey("secure_sums.name", ondelete="CASCADE"), primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)


class CountRoundRow(Base):
    """One count that was opened: of how many devices, and the variance of the noise on each number, in clicks^2 and
    displays^2."""

    __tablename__ = "count_rounds"

    round: Mapped[int] = mapped_column(ForeignKey("rounds.number"), primary_key=True, autoincrement=False)
    counted_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    devices: Mapped[int]
    displays_variance: Mapped[float] = mapped_column(Float(53))
    clicks_variance: Mapped[float] = mapped_column(Float(53))


class NewsCountRow(Base):
    """Displays and clicks of one piece of news in one count, as they were opened: noisy, and negative at times.

    A row stands for every piece of news that was asked about, also for those whose numbers are noise alone.
    """

    __tablename__ = "news_counts"

    round: Mapped[int] = mapped_column(ForeignKey("count_rounds.round", ondelete="CASCADE"), primary_key=True)
    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    displays: Mapped[float] = mapped_column(Float(53))
    clicks: Mapped[float] = mapped_column(Float(53))

    __table_args__ = (Index("ix_news_counts_news", "news"),)

"""The tables of the server: article pool, pictures, releases, training rounds, secure sums and private counts.

All tables share a base class, its constraint names, and times in UTC.

Expired articles leave no row. An article that was taken down leaves a tombstone without body, vectors and buckets, so
that a source that still lists it can't bring it back. Rows refer to each other by `number`, which is shorter than an
id, grows with arrival and lets vectors be read in one scan of a b-tree.

Devices appear in no table: there are only pseudonyms that exist for one round. Messages of secure sums exist for a
shorter time. No row of private counts is from one device; each number is a noisy sum over a cohort.

Pictures: the state of each one that was requested, and the list that devices download.
"""

import importlib
import pkgutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, validates
from sqlalchemy.types import TypeDecorator

import backend.db


class Base(DeclarativeBase):
    """Base class of all tables.

    Constraints get names, so that Alembic can alter them on both engines.
    """

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class ValueUnreadable(ValueError):
    """A column's value isn't what was written: SQLite keeps no checksums of its pages."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time, always in UTC: `timestamptz` in PostgreSQL, a UTC text without zone in SQLite.

    Raises ValueError on a time without a zone, since a guess could be wrong by hours, and ValueUnreadable when a stored
    value is not a time.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} needs a time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        read = self.impl_instance.result_processor(dialect, coltype)

        def moment(value: Any) -> datetime | None:
            try:
                found: datetime | None = value if read is None else read(value)
            except (ValueError, TypeError) as broken:
                raise ValueUnreadable(f"it contains the malformed time {str(value)[:40]!r}") from broken
            if found is None:
                return None
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

        return moment


def all_tables() -> MetaData:
    """The metadata of every table; first imports each module `backend.db.tables*`."""
    for module in pkgutil.iter_modules(backend.db.__path__):
        if module.name.startswith("tables"):
            importlib.import_module(f"backend.db.{module.name}")
    return Base.metadata


class NewsRow(Base):
    """An article without its body; `number` counts arrivals and is never reused.

    arrival: from the same counter, when its text arrived: `number`, or later if an edit changed the text. sorted_by:
    what assigned its section by its vector (`sections.sorting`); None: it came with one, or has none yet. picture: the
    address of its publisher's picture, from its source. dated: False for one without a date that its feed listed when
    it was first read: it may be older than `published_at`, the time of its arrival. kept: whether it is one of its
    feed's newest, which stay at any age (`backend.news.newest`).
    """

    __tablename__ = "news"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    arrival: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    id: Mapped[str] = mapped_column(String(80), unique=True)
    title: Mapped[str] = mapped_column(Text)
    abstract: Mapped[str] = mapped_column(Text)
    url: Mapped[str] = mapped_column(String(2_000))
    publisher: Mapped[str] = mapped_column(String(120))
    section: Mapped[str] = mapped_column(String(80))
    sorted_by: Mapped[str | None] = mapped_column(String(32))
    topic: Mapped[str] = mapped_column(String(80))
    story: Mapped[str | None] = mapped_column(String(80))
    picture: Mapped[str] = mapped_column(String(2_000), default="", server_default="")
    published_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    dated: Mapped[bool] = mapped_column(default=True, server_default=true())
    kept: Mapped[bool] = mapped_column(default=False, server_default=false())
    weight: Mapped[float] = mapped_column(Float(53))
    source: Mapped[str] = mapped_column(String(200))
    content_digest: Mapped[bytes] = mapped_column(LargeBinary(16))
    added_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    taken_down_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint("weight >= 0 AND weight <= 1", name="weight_in_unit_interval"),
        Index("ix_news_source", "source", "published_at"),
    )


class BodyRow(Base):
    """The text of an article, in a separate table so that listing the pool never reads it."""

    __tablename__ = "bodies"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    body: Mapped[str] = mapped_column(Text)


class TextPictureRow(Base):
    """Where a picture of an article's text is stored. place: its number in the text, from 1."""

    __tablename__ = "text_pictures"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    url: Mapped[str] = mapped_column(String(2_000))


class VectorRow(Base):
    """The embedding of a title by one encoder: little-endian float32."""

    __tablename__ = "vectors"

    encoder: Mapped[str] = mapped_column(String(80), primary_key=True)
    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    vector: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (Index("ix_vectors_news", "news"),)


class DuplicateRow(Base):
    """`news` repeats `original`, which came first.

    `similarity`: the exact Jaccard index of their shingles.
    """

    __tablename__ = "duplicates"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    original: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), index=True)
    similarity: Mapped[float] = mapped_column(Float(53))


class BucketRow(Base):
    """One MinHash band of a live article: articles that share a bucket are compared exactly.

    No foreign key: ten rows per article would each cost a lookup, and the pool removes them itself.
    """

    __tablename__ = "buckets"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 (SQLAlchemy reads it as a class attribute)

    bucket: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    news: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


class FeedRow(Base):
    """A followed feed: what its reader set, its server's last answer for a conditional GET, and when it is due again.

    key: the address at which it was first followed, cut to 200 characters. It is `NewsRow.source` of its articles and
    never changes, so that articles keep their identity when the feed moves. title: the reader's own, '' for none. name:
    the name under which its articles are published, different from every other feed's. site: its home page. folder:
    names, outermost first. section: the section for all its articles; None: each is sorted by its vector. pictures:
    whether the operator allows its publisher's pictures. unverified: its server's certificate isn't checked. proxy: the
    proxy through which it is read. removed_at: when it was removed; its row is kept for a while to be restored.

    fetched_at: time of the last answer, changed or not; None before the first. failures: number of consecutive
    failures. error: the last reason, in one sentence. pace_sec: its estimated publication interval. moved_to: the
    address to which its last answer says it has moved permanently. ended: its server has answered 410, gone. full_text:
    whether the pages of its new stories are fetched for their whole texts. full_text_error: why one kept its teaser at
    the last reading.

    entries, taken, refused and refusals describe the last document: how many entries it had (None before the first),
    how many are in the pool, how many could not be used, and the reasons, grouped (`RefusedFor`).
    """

    __tablename__ = "feeds"

    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    url: Mapped[str] = mapped_column(String(2_000), unique=True)
    etag: Mapped[str | None] = mapped_column(String(500))
    last_modified: Mapped[str | None] = mapped_column(String(100))
    fetched_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    added_at: Mapped[datetime] = mapped_column(UtcDateTime)
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    failures: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    error: Mapped[str | None] = mapped_column(String(500))
    paused: Mapped[bool] = mapped_column(default=False, server_default=false())
    section: Mapped[str | None] = mapped_column(String(80))
    pictures: Mapped[bool] = mapped_column(default=False, server_default=false())
    full_text: Mapped[bool] = mapped_column(default=False, server_default=false())
    full_text_error: Mapped[str | None] = mapped_column(String(500))
    title: Mapped[str] = mapped_column(String(500), default="", server_default="")
    name: Mapped[str] = mapped_column(String(120), default="", server_default="")
    site: Mapped[str] = mapped_column(String(2_000), default="", server_default="")
    folder: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    unverified: Mapped[bool] = mapped_column(default=False, server_default=false())
    proxy: Mapped[str | None] = mapped_column(String(500))
    removed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    pace_sec: Mapped[float | None] = mapped_column(Float(53))
    moved_to: Mapped[str | None] = mapped_column(String(2_000))
    ended: Mapped[bool] = mapped_column(default=False, server_default=false())
    entries: Mapped[int | None]
    taken: Mapped[int] = mapped_column(default=0, server_default="0")
    refused: Mapped[int] = mapped_column(default=0, server_default="0")
    refusals: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list, server_default=text("'[]'"))


class FeedHostRow(Base):
    """A host that requires pauses: none of its feeds is requested within rests_sec of `asked_at`, its last answer.

    pause_sec: minimum pause between any two requests, estimated from its refusals; reset a day after the last refusal,
    `refused_at`. refusals: consecutive ones, for all its feeds.
    """

    __tablename__ = "feed_hosts"

    host: Mapped[str] = mapped_column(String(255), primary_key=True)
    asked_at: Mapped[datetime] = mapped_column(UtcDateTime)
    rests_sec: Mapped[float] = mapped_column(Float(53))
    pause_sec: Mapped[float] = mapped_column(Float(53))
    refusals: Mapped[int]
    refused_at: Mapped[datetime] = mapped_column(UtcDateTime)


class IngestRow(Base):
    """One finished run of a source, with the counts of its rows.

    `failure` says why it stopped early.

    rejections: the first rejected rows, each with `line`, `field` and `reason`; `rejected` counts all of them.
    """

    __tablename__ = "ingests"

    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    source: Mapped[str] = mapped_column(String(200))
    finished_at: Mapped[datetime] = mapped_column(UtcDateTime)
    seconds: Mapped[float] = mapped_column(Float(53))
    added: Mapped[int]
    updated: Mapped[int]
    unchanged: Mapped[int]
    duplicates: Mapped[int]
    withheld: Mapped[int]
    rejected: Mapped[int]
    failure: Mapped[str | None] = mapped_column(Text)
    rejections: Mapped[list[dict[str, Any]]] = mapped_column(JSON, server_default=text("'[]'"))


class PoolVersionRow(Base):
    """A single row, raised in the same transaction as every change.

    Writers on PostgreSQL queue on it.

    For every change after version `noted_from`, `pool_changes` records what it changed.
    """

    __tablename__ = "pool_version"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(BigInteger)
    next_number: Mapped[int] = mapped_column(Integer)
    noted_from: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")

    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)


class PoolChangeRow(Base):
    """An article changed by a version of the pool: added, removed, relinked, sorted or given a vector.

    No foreign key, since deleted articles stay recorded.
    """

    __tablename__ = "pool_changes"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 (SQLAlchemy reads it as a class attribute)

    version: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    news: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


WORDS_LIMIT = 500
"""Maximum length of a sentence for people. The text depends on strategies and errors, so longer ones are cut."""


def cut(words: str | None) -> str | None:
    """The text, cut to the length of its column."""
    return words if words is None or len(words) <= WORDS_LIMIT else words[: WORDS_LIMIT - 1] + "…"


class ReleaseRow(Base):
    """One published release.

    A row is written once, after every blob it names is on disk, and never changes.

    The current release has the highest number. `facts` holds what was measured when it was made.
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
    """A release that devices may have seen but this database lacks, because it was restored from an older copy.

    Written with the first release that follows, so that the chain has no gap.
    """

    __tablename__ = "lost_releases"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    manifest_sha256: Mapped[str] = mapped_column(String(64))
    published_at: Mapped[datetime] = mapped_column(UtcDateTime)


class KeyRotationRow(Base):
    """The statement by which one signing key delegated to the next.

    Written with the new key's first release.
    """

    __tablename__ = "key_rotations"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    rotation: Mapped[str] = mapped_column(Text)
    by_old_key: Mapped[bytes] = mapped_column(LargeBinary)
    by_new_key: Mapped[bytes] = mapped_column(LargeBinary)
    release: Mapped[int] = mapped_column(ForeignKey("releases.number"))


class RoundRow(Base):
    """One training round and its state.

    The states are those of `backend.federation.rounds.records`. During a secure sum the row says `open`, and the stage
    is in the sum's own row (`SecureSumRow`), so that it is stored once. survivors, epsilon and delta: of an opened sum.
    follows: the round whose end requested this one. facts: the round's results, summary: in a sentence. memory: the
    state of its optimizer. places_refused: to addresses that had the maximum of places, or get none.
    check_ins: those without a place for other reasons, counted by reason (`rounds.records.CheckIns`).
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
    """A round requested by the end of another, written in that end's transaction.

    Neither opened nor a reason: it is still to be opened. reason: why it can't be. retries: 0 for a round that a
    conclusion requests; n for the n-th retry of a failed round. refused_sources: get no place in it
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
    """A round that was requested while another one changed the same models, and waits (`federation.rounds.queue`).

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
    """When rounds open automatically, and whether they may: the single row of
    `backend.federation.rounds.scheduling`."""

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
    """How often devices polled one server process for rounds in the last half minute, shared with the others.

    Only a count: which devices polled is recorded nowhere (`backend.federation.rounds.selection`).
    """

    __tablename__ = "poll_counts"

    process: Mapped[str] = mapped_column(String(16), primary_key=True)
    told_at: Mapped[datetime] = mapped_column(UtcDateTime)
    polls: Mapped[int]


class ParticipationRow(Base):
    """One place in a round: offered, and perhaps used. A pseudonym uploads once.

    source: a keyed hash of the network address that requested it, erased when the round has ended.
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
    """One secure sum, open or ended (`backend.federation.secagg`): a step of a round, or a count.

    stage is the record's stage as a round's status reports it (complaints are part of shares). record is small, and
    changes when a stage closes; what devices send are rows (`SumMessageRow`), and the running sum is an object, which
    `total` names (`federation.secagg.sum_files`). A message's row and the sum that includes it change in one
    transaction.
    """

    __tablename__ = "secure_sums"

    name: Mapped[str] = mapped_column(String(80), primary_key=True)
    stage: Mapped[str] = mapped_column(String(20), index=True)
    record: Mapped[str] = mapped_column(Text)
    total: Mapped[str | None] = mapped_column(String(64))
    stage_sec: Mapped[float] = mapped_column(Float(53))
    closes_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint(
            "stage IN ('keys', 'shares', 'masked', 'agree', 'unmask', 'opened', 'failed')", name="known_stage"
        ),
    )


class SumMessageRow(Base):
    """What one device sent at one stage of a secure sum; deleted when the sum ends.

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
    """A public key that a member of a secure sum has advertised; no two members may share one."""

    __tablename__ = "secure_sum_keys"

    sum: Mapped[str] = mapped_column(ForeignKey("secure_sums.name", ondelete="CASCADE"), primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)


class CountRoundRow(Base):
    """One opened count: its number of devices, and the noise variances of displays and clicks (displays^2,
    clicks^2)."""

    __tablename__ = "count_rounds"

    round: Mapped[int] = mapped_column(ForeignKey("rounds.number"), primary_key=True, autoincrement=False)
    counted_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    devices: Mapped[int]
    displays_variance: Mapped[float] = mapped_column(Float(53))
    clicks_variance: Mapped[float] = mapped_column(Float(53))


class NewsCountRow(Base):
    """Displays and clicks of one article in one count, as opened: noisy, and sometimes negative.

    There is a row for every article that was counted, also if its numbers are only noise.
    """

    __tablename__ = "news_counts"

    round: Mapped[int] = mapped_column(ForeignKey("count_rounds.round", ondelete="CASCADE"), primary_key=True)
    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    displays: Mapped[float] = mapped_column(Float(53))
    clicks: Mapped[float] = mapped_column(Float(53))

    __table_args__ = (Index("ix_news_counts_news", "news"),)


MADE, FAILED, REFUSED, LEFT = "made", "failed", "refused", "left"
"""A picture's states: it is in the storage; it will be retried; it is given up; there was no longer room for it."""
REASON_CHARS = 300


class PictureRow(Base):
    """A story's picture, once it was requested; one without a row wasn't requested yet.

    of_text: 0 for its card's, else its number in the story's text. url: the requested address. reason: why a picture is
    FAILED or REFUSED, in one sentence. attempts: consecutive failures. due_at: when a FAILED one is retried. sha256 and
    size_bytes: those of a MADE one in the storage. place: counter of the pictures made; devices download runs of
    consecutive places, so that a new picture changes only the last run.
    """

    __tablename__ = "pictures"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    of_text: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=0, server_default="0")
    url: Mapped[str] = mapped_column(String(2_000))
    state: Mapped[str] = mapped_column(String(10))
    reason: Mapped[str | None] = mapped_column(String(REASON_CHARS))
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    due_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sha256: Mapped[str | None] = mapped_column(String(64), index=True)
    size_bytes: Mapped[int | None]
    place: Mapped[int | None]
    settled_at: Mapped[datetime] = mapped_column(UtcDateTime)


class PictureListRow(Base):
    """A single row: the list that every device downloads (`protocol.pictures.PictureList`), byte for byte."""

    __tablename__ = "picture_list"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    content: Mapped[str] = mapped_column(Text)
    made_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

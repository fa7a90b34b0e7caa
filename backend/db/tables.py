"""The tables of the news pool.

Expired news leave no row. A taken-down one leaves a tombstone without body, vectors and buckets, so that a source
that still lists it can't bring it back. Rows point at each other by `number`, which is shorter than an id, grows with
arrival and makes the vector read a walk along one b-tree.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base, UtcDateTime


class SchemaReaderRow(Base):
    """A revision whose version runs on the schema as it is, though a newer one may have migrated it."""

    __tablename__ = "schema_readers"

    revision: Mapped[str] = mapped_column(String(64), primary_key=True)


class NewsRow(Base):
    """A piece of news without its body; `number` counts arrivals and is never given twice.

    arrival: from the same count, when its text came: `number`, or later where an edit made another text of it.
    sorted_by: what gave it its section by its vector (`sections.sorting`); None: it came with one, or has none yet.
    picture: where its source says that its publisher's picture is.
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
    weight: Mapped[float] = mapped_column(Float(53))
    source: Mapped[str] = mapped_column(String(200))
    content_digest: Mapped[bytes] = mapped_column(LargeBinary(16))
    added_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    taken_down_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (CheckConstraint("weight >= 0 AND weight <= 1", name="weight_in_unit_interval"),)


class BodyRow(Base):
    """The text of a piece of news, apart so that listing the pool never reads it."""

    __tablename__ = "bodies"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    body: Mapped[str] = mapped_column(Text)


class VectorRow(Base):
    """The embedding of a title by one encoder: little-endian float32."""

    __tablename__ = "vectors"

    encoder: Mapped[str] = mapped_column(String(80), primary_key=True)
    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    vector: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (Index("ix_vectors_news", "news"),)


class DuplicateRow(Base):
    """`news` says the same as `original`, which came first; `similarity`: the exact Jaccard index of their shingles."""

    __tablename__ = "duplicates"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
    original: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), index=True)
    similarity: Mapped[float] = mapped_column(Float(53))


class BucketRow(Base):
    """One MinHash band of a live piece of news: those that share a bucket are compared exactly.

    No foreign key: ten rows a piece of news would each pay a look-up, and the pool removes them itself.
    """

    __tablename__ = "buckets"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 (SQLAlchemy reads it as a class attribute)

    bucket: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    news: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


class FeedRow(Base):
    """A feed that is followed: what its server said last, for a conditional GET, and when it is asked again.

    fetched_at: when it was last answered, changed or not; None before the first answer.
    failures: how often in a row it couldn't be read; error says why the last time, in one sentence.
    section: of all its news; None: each is sorted by its vector. pictures: the operator allows its publisher's.
    """

    __tablename__ = "feeds"

    url: Mapped[str] = mapped_column(String(2_000), primary_key=True)
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


class IngestRow(Base):
    """One finished run of a source, and what became of its rows; `failure` says why it stopped early.

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
    """One row: raised in the same transaction as every change. Writers on PostgreSQL queue on it.

    Of every change after version `noted_from` up to `noted`, `pool_changes` holds what it changed. `noted` lies behind
    `version` where an Ownfeed of before these columns has changed the pool.
    """

    __tablename__ = "pool_version"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(BigInteger)
    next_number: Mapped[int] = mapped_column(Integer)
    noted: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    noted_from: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")

    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)


class PoolChangeRow(Base):
    """A piece of news that a version of the pool has changed: added, removed, linked anew, sorted or given a vector.

    No foreign key, since news that are gone stay noted.
    """

    __tablename__ = "pool_changes"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 (SQLAlchemy reads it as a class attribute)

    version: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    news: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)

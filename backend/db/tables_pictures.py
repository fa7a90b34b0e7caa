"""Publishers' pictures of news: what became of each that was asked for, and the list of them that devices take."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base, UtcDateTime

MADE, FAILED, REFUSED, LEFT = "made", "failed", "refused", "left"
"""A picture's states: it is in the storage; it is tried again; it never is; there was no room for it any more."""
REASON_CHARS = 300


class PictureRow(Base):
    """A story's picture, once it was asked for; without a row it wasn't yet.

    url: where it was asked for. reason: of FAILED and REFUSED, in one sentence. attempts: in a row that failed.
    due_at: when a FAILED one is tried again. sha256 and size_bytes: of a MADE one, by which the storage has it.
    place: counts the pictures made; devices take them by runs of it, so that a new one changes the last run alone.
    """

    __tablename__ = "pictures"

    news: Mapped[int] = mapped_column(ForeignKey("news.number", ondelete="CASCADE"), primary_key=True)
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
    """One row: the list that every device takes (`device_app.wire.pictures.PictureList`), to the byte."""

    __tablename__ = "picture_list"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    content: Mapped[str] = mapped_column(Text)
    made_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

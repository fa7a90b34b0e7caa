"""What private counts came to. No row is of one device: each number is a noisy sum over a cohort."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Float, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base, UtcDateTime


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

"""Stores opened counts and computes their decayed sums."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, delete, func, insert, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables import CountRoundRow, NewsCountRow, NewsRow
from backend.popularity.estimate import NoisyCounts

HALF_LIFE_HOURS = 24.0
"""Hours after which a count weighs half, unless the setting `popularity_half_life_hours` is read."""


@dataclass(frozen=True)
class OpenedCount:
    """One opened count: noisy displays and clicks by article id, and the variance of the noise on each number."""

    round: int
    counted_at: datetime
    devices: int
    displays: Mapping[str, float]
    clicks: Mapping[str, float]
    displays_variance: float
    clicks_variance: float


@dataclass(frozen=True)
class CountSummary:
    """What the console shows of one count."""

    round: int
    counted_at: datetime
    devices: int
    news: int
    displays_variance: float
    clicks_variance: float


def write_count(session: Session, opened: OpenedCount, *, kept: timedelta) -> None:
    """Store an opened count in the transaction that ends its round, and delete counts older than `kept`.

    Articles that have left the pool are skipped. Raises ValueError if displays and clicks name different articles.
    """
    if opened.displays.keys() != opened.clicks.keys():
        raise ValueError("displays, clicks: must name the same articles")
    session.add(
        CountRoundRow(
            round=opened.round,
            counted_at=opened.counted_at,
            devices=opened.devices,
            displays_variance=opened.displays_variance,
            clicks_variance=opened.clicks_variance,
        )
    )
    session.flush()
    numbers = session.execute(select(NewsRow.id, NewsRow.number).where(NewsRow.taken_down_at.is_(None))).all()
    rows = [
        {"round": opened.round, "news": number, "displays": opened.displays[name], "clicks": opened.clicks[name]}
        for name, number in numbers
        if name in opened.clicks
    ]
    if rows:
        session.execute(insert(NewsCountRow), rows)
    before = opened.counted_at - kept
    old = session.scalars(select(CountRoundRow.round).where(CountRoundRow.counted_at < before)).all()
    if old:
        session.execute(delete(NewsCountRow).where(NewsCountRow.round.in_(old)))
        session.execute(delete(CountRoundRow).where(CountRoundRow.round.in_(old)))


class CountRepository:
    """Reads the counts; the sums of all stored rounds are computed once per round.

    Safe for several threads.
    """

    def __init__(self, engine: Engine, *, half_life_hours: float) -> None:
        self._engine, self.half_life_hours = engine, half_life_hours
        self._added: tuple[int, datetime, dict[str, NDArray[np.float64]]] | None = None
        self._adding = threading.Lock()

    def version(self) -> int:
        """The number of the last counted round; 0 before the first."""
        with reading_session(self._engine) as session:
            return session.scalar(select(func.max(CountRoundRow.round))) or 0

    def made(self, limit: int = 20) -> list[CountSummary]:
        """Counts, newest first."""
        with reading_session(self._engine) as session:
            news = select(NewsCountRow.round, func.count().label("news")).group_by(NewsCountRow.round).subquery()
            found = session.execute(
                select(CountRoundRow, func.coalesce(news.c.news, 0))
                .outerjoin(news, news.c.round == CountRoundRow.round)
                .order_by(CountRoundRow.round.desc())
                .limit(limit)
            ).all()
            return [
                CountSummary(
                    row.round, row.counted_at, row.devices, int(count), row.displays_variance, row.clicks_variance
                )
                for row, count in found
            ]

    def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[NoisyCounts, NDArray[np.bool_]]:
        """The decayed sums of these articles (the pool's numbers, [n]), and which of them were counted at all, [n].

        A count of age a weighs 2^-(a / half-life), and the variance of its noise the square of that.
        """
        at, sums = self._sums()
        faded = 0.5 ** (max(0.0, (now - at).total_seconds()) / 3_600 / self.half_life_hours) if at else 1.0
        known = sums["news"]
        places = np.searchsorted(known, numbers).clip(max=max(0, len(known) - 1))
        is_counted = known[places] == numbers if len(known) else np.zeros(len(numbers), dtype=np.bool_)

        def column(name: str, weight: float) -> NDArray[np.float64]:
            values = sums[name][places] if len(known) else np.zeros(len(numbers))
            return np.where(is_counted, values * weight, 0.0)

        counted = NoisyCounts(
            clicks=column("clicks", faded),
            displays=column("displays", faded),
            clicks_variance=column("clicks_variance", faded**2),
            displays_variance=column("displays_variance", faded**2),
        )
        return counted, np.asarray(is_counted, dtype=np.bool_)

    def _sums(self) -> tuple[datetime | None, dict[str, NDArray[np.float64]]]:
        """Sums by ascending article number, decayed to the time of the newest count."""
        with self._adding:
            version = self.version()
            if self._added is None or self._added[0] != version:
                at, sums = self._read()
                if at is None:
                    return None, sums
                self._added = (version, at, sums)
            return self._added[1], self._added[2]

    def _read(self) -> tuple[datetime | None, dict[str, NDArray[np.float64]]]:
        with reading_session(self._engine) as session:
            rounds = session.scalars(select(CountRoundRow).order_by(CountRoundRow.round)).all()
            facts = {row.round: (row.counted_at, row.displays_variance, row.clicks_variance) for row in rounds}
            rows = session.execute(
                select(NewsCountRow.round, NewsCountRow.news, NewsCountRow.displays, NewsCountRow.clicks)
            ).all()
        names = ("displays", "clicks", "displays_variance", "clicks_variance")
        if not facts:
            return None, {name: np.zeros(0) for name in ("news", *names)}
        at = max(moment for moment, _, _ in facts.values())
        table = np.array([tuple(row) for row in rows], dtype=np.float64).reshape(len(rows), 4)
        news, place = np.unique(table[:, 1], return_inverse=True)
        order = {number: row for row, number in enumerate(facts)}
        of_round = np.array([order[int(number)] for number in table[:, 0]], dtype=np.intp)
        ages = np.array([(at - moment).total_seconds() / 3_600 for moment, _, _ in facts.values()])
        weights = 0.5 ** (ages / self.half_life_hours)  # [rounds]
        noises = np.array([(displays, clicks) for _, displays, clicks in facts.values()])  # [rounds, 2]

        def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(place, values, minlength=len(news)).astype(np.float64)

        return at, {
            "news": news,
            "displays": summed(table[:, 2] * weights[of_round]),
            "clicks": summed(table[:, 3] * weights[of_round]),
            "displays_variance": summed((noises[:, 0] * weights**2)[of_round]),
            "clicks_variance": summed((noises[:, 1] * weights**2)[of_round]),
        }

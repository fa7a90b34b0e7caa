"""A clock that only moves when the test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class StillClock:
    def __init__(self, start: datetime = datetime(2026, 11, 20, 8, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

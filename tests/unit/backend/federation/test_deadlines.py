"""Deadlines when the clock is set. Oracle: each case states its result."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backend.federation.deadlines import is_over

OPENED = datetime(2026, 11, 20, 8, tzinfo=UTC)
LASTS = timedelta(seconds=60)


@pytest.mark.parametrize(
    ("after", "over"),
    [
        (timedelta(0), False),
        (timedelta(seconds=59.9), False),
        (timedelta(seconds=60), True),
        (timedelta(hours=1), True),
        (timedelta(minutes=-4), False),  # another machine's clock is behind
        (timedelta(minutes=-6), True),  # set back: it would last for an hour and a minute
        (timedelta(hours=-1), True),
    ],
)
def test_deadline_passes_at_its_end_or_after_a_large_clock_change(after: timedelta, over: bool) -> None:
    assert is_over(OPENED + after, OPENED + LASTS, LASTS) == over

"""Times in the store: microseconds since 1970, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Microseconds since 1970 of an aware time; raises ValueError for a naive one."""
    if at.tzinfo is None:
        raise ValueError(f"a time in the store needs a time zone; got {at.isoformat()}")
    return (at - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """The UTC time of that many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)

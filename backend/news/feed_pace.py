"""How often a feed is worth asking: as often as it publishes, as its entries' dates show.

Nothing here reads a clock or a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

LEARNT_FROM = 10
"""How many of the newest entries show a feed's pace."""
UNKNOWN = timedelta(hours=1)
"""The pace of a feed whose entries have no dates, before its answers have shown one."""
SLOWER, FASTER = 1.5, 0.5
"""What an answer without, or with, something new does to such a pace."""
STILL_SLOWER = 1.25
"""What an answer that nothing has changed (304) does to a pace learnt from dates: it is silence."""


def learnt(published: Sequence[datetime], now: datetime) -> timedelta | None:
    """The mean interval of the newest entries, the silence since the last one included.

    Dates from now on count as missing, since entries without a date get the time of their arrival. None without any.
    """
    dated = sorted((moment for moment in published if moment < now), reverse=True)[:LEARNT_FROM]
    return (now - dated[-1]) / len(dated) if dated else None


def pace(
    published: Sequence[datetime] | None,
    now: datetime,
    *,
    last: timedelta | None = None,
    brought: int = 0,
    hint: timedelta | None = None,
) -> timedelta:
    """How often to ask a feed after an answer.

    published: the dates of its entries; None if nothing has changed (304). last: its pace so far. brought: how many new
    entries the answer had. hint: how often it says that it publishes; a lower bound beside dates.
    """
    if published is None:
        return UNKNOWN if last is None else last * STILL_SLOWER
    found = learnt(published, now)
    if found is not None:
        return max(found, hint) if hint else found
    if last is None:
        return hint or UNKNOWN
    return last * (FASTER if brought else SLOWER)

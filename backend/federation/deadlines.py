"""When the time of a round, or of a stage of a sum, is over by a clock that may be set forward and back.

Deadlines are rows that several processes read, and so times of day. A clock that was set back would have a round wait
for as long again; whoever sees a deadline further ahead than it was ever put, by more than machines' clocks may be
apart, takes it for passed. That is a clock set to more than CLOCKS_APART before the round, or the stage, began. One set
back by less has it last longer by as much: by at most CLOCKS_APART and what had gone by of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

CLOCKS_APART = timedelta(minutes=5)
"""How far the clocks of machines that share a database may be apart."""


def is_over(now: datetime, ends: datetime, lasts: timedelta) -> bool:
    """lasts: what it was given when it began."""
    return not now < ends <= now + lasts + CLOCKS_APART

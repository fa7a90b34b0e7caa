"""When the time of a round, or of a stage of a sum, is over by a clock that may be set forward and back.

Deadlines are rows that several processes read, and so times of day. A clock that was set back would have a round wait
for as long again; whoever sees a deadline further ahead than it was ever put takes it for passed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

CLOCKS_APART = timedelta(minutes=5)
"""How far machines that share a database may be apart."""


def is_over(now: datetime, ends: datetime, lasts: timedelta) -> bool:
    """lasts: the longest that it was given."""
    return not now < ends <= now + lasts + CLOCKS_APART

"""Decides whether the deadline of a round or stage has passed, even if a clock was reset.

Several processes read the deadlines from the database, so they are times of day. If a clock is set back, a round would
otherwise wait that much longer. A deadline therefore also counts as passed if it is further ahead than the whole
duration plus CLOCKS_APART: then the clock was more than CLOCKS_APART ahead when the round or stage began. If a clock is
set back by less, the round lasts longer by at most CLOCKS_APART plus the time that had already passed.
"""

from datetime import datetime, timedelta

CLOCKS_APART = timedelta(minutes=5)
"""The largest allowed difference between the clocks of machines that share a database."""


def is_over(now: datetime, ends: datetime, lasts: timedelta) -> bool:
    """Return whether the deadline `ends` has passed.

    `lasts` is the full duration it was set for.
    """
    return not now < ends <= now + lasts + CLOCKS_APART

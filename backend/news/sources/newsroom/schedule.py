"""When stories happen and are printed: the rhythm of days and hours, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from random import Random


@dataclass(frozen=True)
class Rhythm:
    """How often something is printed in each hour of a weekday and of a weekend day, relative to the others."""

    weekday: tuple[int, ...]
    weekend: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.weekday) != 24 or len(self.weekend) != 24:
            raise ValueError("a rhythm needs 24 hours for the weekday and 24 for the weekend")

    def hours(self, day: datetime) -> tuple[int, ...]:
        return self.weekend if day.weekday() >= 5 else self.weekday


# Hours 0 to 23.
ROUND = Rhythm(
    (1, 1, 1, 1, 2, 5, 9, 12, 12, 11, 10, 10, 10, 9, 9, 9, 10, 10, 9, 7, 6, 5, 3, 2),
    (1, 1, 1, 1, 1, 2, 4, 7, 9, 9, 8, 7, 6, 6, 6, 6, 6, 6, 5, 5, 4, 3, 2, 1),
)
OFFICE = Rhythm(
    (0, 0, 0, 0, 0, 3, 8, 12, 13, 13, 12, 12, 10, 10, 11, 11, 11, 10, 7, 5, 3, 2, 1, 0),
    (0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 2, 2, 1, 1, 1, 2, 2, 1, 1, 1, 0, 0, 0),
)
LEISURE = Rhythm(
    (0, 0, 0, 0, 0, 2, 5, 7, 7, 6, 6, 7, 8, 7, 6, 6, 7, 9, 10, 9, 7, 5, 3, 1),
    (0, 0, 0, 0, 0, 2, 6, 9, 11, 12, 12, 11, 9, 8, 7, 7, 8, 9, 9, 8, 6, 4, 2, 1),
)
EVENING = Rhythm(
    (0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 7, 10, 14, 12, 4),
    (0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 4, 8, 9, 13, 14, 13, 12, 11, 10, 7, 3),
)


def moment_on(day: datetime, rhythm: Rhythm, rng: Random) -> datetime:
    """A printing time on the calendar day of `day`."""
    hour = rng.choices(range(24), rhythm.hours(day))[0]
    return datetime.combine(day.date(), time(hour, rng.randrange(60), rng.randrange(60)), UTC)


def any_moment(first: datetime, last: datetime, rhythm: Rhythm, rng: Random) -> datetime:
    """A printing time between `first` and `last`; busier days are likelier. Raises ValueError on an empty span."""
    if last <= first:
        raise ValueError(f"no time between {first} and {last}")
    busiest = max(sum(rhythm.weekday), sum(rhythm.weekend))
    while True:
        day = first + (last - first) * rng.random()
        if rng.random() * busiest > sum(rhythm.hours(day)):
            continue
        moment = moment_on(day, rhythm, rng)
        if first <= moment <= last:
            return moment


def next_moment(previous: datetime, after_days: tuple[float, float], rhythm: Rhythm, rng: Random) -> datetime:
    """The printing time of a story's next stage: hours later on the day, or at a fitting hour some days later."""
    gap = timedelta(days=rng.uniform(*after_days))
    at = previous + gap
    if after_days[1] < 0.9:
        if at.hour < 6:
            at = at.replace(hour=6) + timedelta(minutes=rng.uniform(5, 170))
        return at.replace(microsecond=0)
    if at.weekday() >= 5 and rng.random() * sum(rhythm.weekday) > sum(rhythm.weekend):
        at += timedelta(days=7 - at.weekday())
    settled = moment_on(at, rhythm, rng)
    return settled if settled > previous + timedelta(hours=2) else moment_on(at + timedelta(days=1), rhythm, rng)

"""When stories happen and are printed: the rhythm of days and hours, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from random import Random

from newsroom.tables import document, row


@dataclass(frozen=True)
class Rhythm:
    """How often something is printed in each hour of a weekday and of a weekend day, relative to the other hours."""

    weekday: tuple[int, ...]
    weekend: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.weekday) != 24 or len(self.weekend) != 24:
            raise ValueError("a rhythm needs 24 hours for the weekday and 24 for the weekend")

    def hours(self, day: datetime) -> tuple[int, ...]:
        return self.weekend if day.weekday() >= 5 else self.weekday


@cache
def rhythms() -> dict[str, Rhythm]:
    """Return the rhythms by name, from data/rhythms.toml."""
    found = document("rhythms.toml")
    return {name: row(Rhythm, one, "rhythms.toml", name) for name, one in found.items()}


def moment_on(day: datetime, rhythm: Rhythm, rng: Random) -> datetime:
    """Return a printing time on the calendar day of `day`."""
    hour = rng.choices(range(24), rhythm.hours(day))[0]
    return datetime.combine(day.date(), time(hour, rng.randrange(60), rng.randrange(60)), UTC)


def any_moment(first: datetime, last: datetime, rhythm: Rhythm, rng: Random) -> datetime:
    """A printing time between `first` and `last`, likelier on busier days. Raises ValueError on an empty span."""
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
    """Return the printing time of a story's next stage: hours later on the day, or some days later."""
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

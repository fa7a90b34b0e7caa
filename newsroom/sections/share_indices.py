"""The share indices of the invented world, so that all reports of a day agree."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from newsroom.world import World

_DAYS_KEPT = 45
_SIZES = (20, 30, 40, 50, 100, 200)


@dataclass(frozen=True)
class ShareIndex:
    """A country's share index with its closing level on each trading day."""

    name: str
    closes: dict[date, int]

    def before(self, day: date) -> date:
        return max(one for one in self.closes if one < day)

    def change(self, day: date, since: date) -> float:
        """Return the change to the close of `day` in percent, with one decimal."""
        return round((self.closes[day] / self.closes[since] - 1) * 100, 1)


def share_indices(world: World) -> dict[str, ShareIndex]:
    """Return an index for each country, for the weeks up to the world's now."""
    rng = Random(f"{world.seed}:tapes")
    first = world.now.date() - timedelta(days=_DAYS_KEPT)
    days = [first + timedelta(days=n) for n in range(_DAYS_KEPT + 1)]
    mood = {day: rng.gauss(0, 0.5) for day in days}
    found = {}
    for country in world.countries:
        level = rng.uniform(900, 24_000)
        closes = {}
        for day in days:
            if day.weekday() < 5:
                level *= 1 + (mood[day] + rng.gauss(0.03, 0.75)) / 100
                closes[day] = round(level)
        found[country.name] = ShareIndex(f"the {country.capital} {rng.choice(_SIZES)}", closes)
    return found

"""A day on a country's stock exchange, and the names of currencies."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from newsroom.expressions import Verb
from newsroom.scene import Scene, SpentError
from newsroom.sections.share_indices import ShareIndex, share_indices
from newsroom.world import Company, Country

_CLOSING_HOUR = 17
_SATURDAY, _FRIDAY = 5, 4
_COUNTRY_TRIES = 8
_DAYS_REPORTED = 13
_FLAT_BELOW_PCT = 0.2


@dataclass(frozen=True)
class DayReport:
    """A trading day of one country's index; facts that hold only for some days are None for the others."""

    c: Country
    index: str
    level: int
    points: int
    pct: float
    falls: bool
    up: str | None
    down: str | None
    flat: str | None
    winner: Company
    loser: Company
    third: Company
    best_level: int | None
    worst_level: int | None
    week: float | None
    week_up: str | None
    week_down: str | None
    abroad: Country
    abroad_index: str
    abroad_pct: float
    abroad_way: str
    times: tuple[datetime, ...]


def _indices(scene: Scene) -> dict[str, ShareIndex]:
    return scene.world.kept("share indices", lambda: share_indices(scene.world))


def _untold_day(scene: Scene) -> tuple[Country, datetime]:
    """Return a country and a trading day not reported yet, preferably near the scene's start."""
    day = min(scene.start, scene.world.now - timedelta(hours=2))
    if day.hour < _CLOSING_HOUR:
        day -= timedelta(days=1)
    while day.weekday() >= _SATURDAY:
        day -= timedelta(days=1)
    for _ in range(_COUNTRY_TRIES):
        c = scene.country()
        with suppress(SpentError):
            scene.once("session", (c.name, day.date()))
            return c, day
    today = scene.world.now.date()
    days = [one for one in _indices(scene)[c.name].closes if today - timedelta(days=_DAYS_REPORTED) <= one < today]
    name, session = scene.fresh("session", [(one.name, day) for one in scene.world.countries for day in days])
    c = next(one for one in scene.world.countries if one.name == name)
    return c, datetime.combine(session, time(_CLOSING_HOUR), UTC)


def _reported_day(scene: Scene) -> DayReport:
    found = _indices(scene)
    c, day = _untold_day(scene)
    index, today = found[c.name], day.date()
    level, last = index.closes[today], index.closes[index.before(today)]
    pct = round(abs(level - last) / last * 100, 1)
    calm = pct < _FLAT_BELOW_PCT
    up, down = level > last and not calm, level < last and not calm
    month = [close for one, close in index.closes.items() if one < today]
    listed = [one for one in scene.world.companies if one.country is c]
    winner, loser, third = scene.sample(listed if len(listed) >= 3 else scene.world.companies, 3)
    friday = max((one for one in index.closes if one < today and one.weekday() == _FRIDAY), default=today)
    week = index.change(today, friday) if today.weekday() == _FRIDAY else 0.0
    abroad = scene.pick([one for one in scene.world.countries if one is not c])
    other = found[abroad.name]
    other_pct = other.change(today, other.before(today))
    at = datetime.combine(today, time(scene.between(17, 19), scene.between(0, 59), scene.between(0, 59)), UTC)
    return DayReport(
        c=c,
        index=index.name,
        level=level,
        points=abs(level - last),
        pct=pct,
        falls=level < last,
        up="" if up else None,
        down="" if down else None,
        flat=None if up or down else "",
        winner=winner,
        loser=loser,
        third=third,
        best_level=level if level > max(month) else None,
        worst_level=level if level < min(month) else None,
        week=abs(week) if week else None,
        week_up="" if week > 0 else None,
        week_down="" if week < 0 else None,
        abroad=abroad,
        abroad_index=other.name,
        abroad_pct=abs(other_pct),
        abroad_way="higher" if other_pct >= 0 else "lower",
        times=(at,),
    )


def _unit_of(_: Scene, country: Country, units: Mapping[str, str]) -> str:
    """Return one unit of the country's currency: 'crown', or by its sign 'pound'."""
    return country.currency.unit.removesuffix("s") or units[country.currency.sign]


VERBS: dict[str, Verb] = {"day_told": _reported_day, "unit_of": _unit_of}

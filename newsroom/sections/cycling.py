"""The invented world's cycling teams, riders and roads, and how time gaps are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.scene import Scene
from newsroom.style import number
from newsroom.tables import shared
from newsroom.world import Country, World

_RACING_DAYS = (2, 5, 6)
_KINDS = {
    "climber": "climber",
    "sprinter": "sprinter",
    "clock": "time triallist",
    "helper": "domestique",
    "young": "all-rounder",
}


@dataclass(frozen=True)
class Rider(Person):
    """A rider with the name of their team; `of` is the demonym of the country they ride for."""

    team: str = ""
    of: str = ""


@dataclass(frozen=True)
class Team:
    """A team; plural in the paper ('Corvado have')."""

    name: str
    country: Country = field(repr=False)
    women: bool
    boss: Person
    climber: Rider
    sprinter: Rider
    clock: Rider
    helper: Rider
    young: Rider

    @property
    def riders(self) -> tuple[Rider, ...]:
        return (self.climber, self.sprinter, self.clock, self.helper, self.young)


def _rider(world: World, home: Country, team: str, women: bool, rng: Random) -> Rider:
    country = home if rng.random() < 0.35 else world.country(rng)
    person = world.person(country, she=women, rng=rng)
    return Rider(person.given, person.family, person.she, f"who rides for {team}", team, country.demonym)


def _teams(world: World) -> tuple[Team, ...]:
    """Return twelve teams of women and twelve of men."""
    rng = Random(f"{world.seed}:cycling")
    made = []
    for index, name in enumerate(shared("cycling").team_names):
        country, women = world.country(rng), index % 2 == 0
        riders = [_rider(world, country, name, women, rng) for _ in range(5)]
        made.append(Team(name, country, women, world.person(country, "the team manager", rng=rng), *riders))
    return tuple(made)


def _peloton(scene: Scene, women: bool | None = None) -> list[Team]:
    every = scene.world.kept("cycling teams", lambda: _teams(scene.world))
    return [team for team in every if women is None or team.women is women]


def _riders(scene: Scene) -> list[tuple[Rider, Team]]:
    return [(rider, team) for team in _peloton(scene) for rider in team.riders]


def _every_rider(scene: Scene) -> tuple[Rider, ...]:
    return tuple(rider for rider, _ in _riders(scene))


def _team_of(scene: Scene, rider: Rider) -> Team:
    return next(team for one, team in _riders(scene) if one is rider)


def _kind_of(_: Scene, rider: Rider, team: Team) -> str:
    """Return the rider's part in the team: 'climber', 'time triallist'."""
    return next(kind for place, kind in _KINDS.items() if getattr(team, place) is rider)


def _climbs(_: Scene, country: Country) -> tuple[str, ...]:
    given = shared("cycling")
    found: tuple[str, ...] = given.climbs.get(country.land.cultures[0], given.other_climbs)
    return found


def _gap(_: Scene, seconds: int) -> str:
    """Write a time gap: 'one second', '34 seconds', 'two minutes 5 seconds'."""
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{number(rest)} second{'' if rest == 1 else 's'}"
    start = f"{number(minutes)} minute{'' if minutes == 1 else 's'}"
    return f"{start} {rest} second{'' if rest == 1 else 's'}" if rest else start


def _race_day(scene: Scene) -> datetime:
    """Return a day within a week of the scene's start on which one-day races are held."""
    ahead = [days for days in range(1, 8) if scene.day(days).weekday() in _RACING_DAYS]
    return scene.start + timedelta(days=scene.pick(ahead))


def _bare(_: Scene, region: str) -> str:
    return region.removeprefix("the ")


VERBS: dict[str, Verb] = {
    "bare": _bare,
    "climbs": _climbs,
    "every_rider": _every_rider,
    "gap": _gap,
    "kind_of": _kind_of,
    "peloton": _peloton,
    "race_day": _race_day,
    "riders": _riders,
    "team_of": _team_of,
}

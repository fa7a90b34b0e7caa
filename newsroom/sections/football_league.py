"""Football leagues of the invented world, simulated so that scores, scorers and tables agree in every report."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from random import Random
from typing import Any

from newsroom.people import Person
from newsroom.style import number, ordinal
from newsroom.tables import shared
from newsroom.world import Country, World

_ROUNDS_BEFORE = 10
_PLAYING_DAYS = (2, 5)
"""Playing days: Wednesday, and Saturday with Sunday."""


@dataclass
class FootballClub:
    """A club; plural in the paper ('Dunmere Rovers have'). Its league is named with the country's."""

    name: str
    country: Country = field(repr=False)
    league: str
    ground: str
    strength: float
    coach: Person
    keeper: Person
    captain: Person
    defender: Person
    midfielder: Person
    winger: Person
    striker: Person
    forward: Person
    youngster: Person
    points: int = field(default=0, init=False)
    difference: int = field(default=0, init=False)
    played: int = field(default=0, init=False)
    streak: list[str] = field(default_factory=list, init=False)

    @property
    def scorers(self) -> tuple[tuple[Person, int], ...]:
        """Return the possible scorers with their relative frequencies."""
        often = ((self.striker, 8), (self.forward, 6), (self.winger, 5), (self.midfielder, 4))
        return (*often, (self.youngster, 2), (self.captain, 1), (self.defender, 2))


@dataclass(frozen=True)
class Goal:
    minute: int
    by: Person
    home: bool

    @property
    def when(self) -> str:
        if self.minute > 90:
            return "in stoppage time"
        if self.minute == 45:
            return "just before the interval"
        return f"in the {ordinal(self.minute)} minute"

    @property
    def after(self) -> str:
        """Write a time in the match: 'after 12 minutes', 'with four minutes left'."""
        if self.minute > 90:
            return "deep in stoppage time"
        return (
            f"after {number(self.minute)} minutes"
            if self.minute < 75
            else f"with {number(max(91 - self.minute, 2))} minutes left"
        )


@dataclass(frozen=True)
class Match:
    """A match as played; positions and points are those after the round."""

    at: datetime
    home: FootballClub
    away: FootballClub
    goals: tuple[Goal, ...]
    home_place: int
    away_place: int
    home_points: int
    away_points: int
    home_streak: str
    away_streak: str
    leaders: str

    @cached_property
    def name(self) -> str:
        return f"{self.home.name} {self.away.name} {self.at:%F}"


def seasons(world: World, now: datetime, days: int = 16) -> tuple[Match, ...]:
    """Return all matches of the three leagues from about `days` before `now` to four days after it, by time."""
    rng = Random(f"{world.seed}:football")
    leagues = {league.country: league for league in shared("football").leagues}
    matches: list[Match] = []
    for country in world.countries:
        if country.name in leagues:
            matches += _season(world, country, leagues[country.name], now, days, rng)
    return tuple(sorted(matches, key=lambda match: (match.at, match.name)))


def _player(world: World, country: Country, role: str, rng: Random) -> Person:
    """Return a player of a club: from its country or, as often, from anywhere."""
    return world.person(country if rng.random() < 0.5 else world.country(rng), role, she=False, rng=rng)


def _clubs(world: World, country: Country, league: Any, rng: Random) -> list[FootballClub]:
    """Return the clubs of a league, which is its row in the table of leagues."""
    given = shared("football")
    towns = [city.name for city in country.cities if len(city.name.split()) == 1][:15]
    towns += towns[:1] * (16 - len(towns)) if len(towns) >= 15 else towns[: 14 - len(towns)]
    clubs: list[FootballClub] = []
    taken: set[str] = set()
    for town, ground in zip(towns, rng.sample(given.grounds, len(towns)), strict=True):
        name = rng.choice([form for form in league.clubs if form.format(town) not in taken]).format(town)
        taken.add(name)
        home = f"{country.demonym} {league.name}"
        people = {place: _player(world, country, role, rng) for place, role in given.squad.items()}
        strength = rng.uniform(0.6, 1.9)
        clubs.append(FootballClub(name, country, home, rng.choice(league.grounds).format(ground), strength, **people))
    return clubs


def _rounds(count: int, rng: Random) -> list[list[tuple[int, int]]]:
    """Return a round robin by the circle method, in random order."""
    ring = list(range(count))
    rounds = []
    for leg in range(count - 1):
        pairs = [(ring[i], ring[count - 1 - i]) for i in range(count // 2)]
        rounds.append([pair if (leg + i) % 2 else pair[::-1] for i, pair in enumerate(pairs)])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rng.sample(rounds, len(rounds))


def _season(world: World, country: Country, league: Any, now: datetime, days: int, rng: Random) -> list[Match]:
    clubs = _clubs(world, country, league, rng)
    rounds = _rounds(len(clubs), rng)
    for pairs in rounds[: _ROUNDS_BEFORE // 2] + [
        [(b, a) for a, b in pairs] for pairs in rounds[: _ROUNDS_BEFORE // 2]
    ]:
        for home, away in pairs:
            _play(clubs[home], clubs[away], now, rng)
    dates = [
        day
        for day in (now.date() + timedelta(days=offset) for offset in range(-days, 5))
        if day.weekday() in _PLAYING_DAYS
    ]
    matches: list[Match] = []
    for day, pairs in zip(dates, rounds[_ROUNDS_BEFORE // 2 :], strict=False):
        played = []
        for home, away in pairs:
            shift, hour = (0, 19) if day.weekday() == 2 else rng.choice(((0, 14), (0, 16), (0, 19), (1, 14), (1, 16)))
            at = datetime.combine(day + timedelta(days=shift), time(hour, rng.choice((0, 30, 45))), UTC)
            played.append((at, clubs[home], clubs[away], _play(clubs[home], clubs[away], at, rng)))
        table = sorted(clubs, key=lambda club: (-club.points, -club.difference, club.name))
        for at, one, two, goals in played:
            match = Match(
                at=at,
                home=one,
                away=two,
                goals=goals,
                home_place=table.index(one) + 1,
                away_place=table.index(two) + 1,
                home_points=one.points,
                away_points=two.points,
                home_streak="".join(one.streak),
                away_streak="".join(two.streak),
                leaders=table[0].name,
            )
            matches.append(match)
    return matches


def _goals(expected: float, rng: Random) -> int:
    count, left = 0, rng.expovariate(1.0)
    while left < expected:
        count, left = count + 1, left + rng.expovariate(1.0)
    return min(count, 6)


def _play(home: FootballClub, away: FootballClub, at: datetime, rng: Random) -> tuple[Goal, ...]:
    score = _goals(home.strength * 1.25, rng), _goals(away.strength, rng)
    minutes = sorted(rng.sample(range(3, 94), sum(score)))
    sides = rng.sample([True] * score[0] + [False] * score[1], sum(score))
    goals = []
    for minute, at_home in zip(minutes, sides, strict=True):
        people, weights = zip(*(home if at_home else away).scorers, strict=True)
        goals.append(Goal(minute, rng.choices(people, weights)[0], at_home))
    for club, own, other in ((home, *score), (away, *score[::-1])):
        club.points += 3 if own > other else own == other
        club.difference += own - other
        club.played += 1
        club.streak = [*club.streak, "W" if own > other else "D" if own == other else "L"][-6:]
    return tuple(goals)

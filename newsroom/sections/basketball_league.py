"""Basketball leagues of the invented world, simulated so that scores, scorers and records agree in every report."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from random import Random

from newsroom.people import Person
from newsroom.tables import shared
from newsroom.world import Country, World

_PLAYED_BEFORE = 12
_MOST_CLUBS = 12
_NICKS_A_LEAGUE = 14
_PLAYING_DAYS = (1, 4, 6)
_SHARES = (0.2, 0.19, 0.16, 0.14, 0.1, 0.07)
"""The shares of a club's points that its six top scorers have, about."""


@dataclass
class BasketballClub:
    """A club; plural in the paper. Wins and losses are those at the time of the game."""

    name: str
    city: str
    country: Country = field(repr=False)
    league: str
    women: bool
    arena: str
    strength: float
    coach: Person
    chair: Person
    guard: Person
    wing: Person
    forward: Person
    centre: Person
    captain: Person
    rookie: Person
    won: int = field(default=0, init=False)
    lost: int = field(default=0, init=False)
    streak: int = field(default=0, init=False)
    """Positive for wins in a row, negative for defeats."""

    @property
    def squad(self) -> tuple[Person, ...]:
        return (self.guard, self.wing, self.forward, self.centre, self.captain, self.rookie)


@dataclass(frozen=True)
class Game:
    """A game as played; records, places and winning runs are those after it."""

    at: datetime
    home: BasketballClub
    away: BasketballClub
    quarters: tuple[tuple[int, int], ...]
    extra: bool
    points: dict[str, int]
    records: tuple[str, str]
    places: tuple[int, int]
    streaks: tuple[int, int]
    leader: str

    @property
    def name(self) -> str:
        return f"{self.home.name} {self.away.name} {self.at:%F}"

    @property
    def score(self) -> tuple[int, int]:
        return sum(home for home, _ in self.quarters), sum(away for _, away in self.quarters)


def _clubs(
    world: World, country: Country, league: str, women: bool, nicks: list[str], rng: Random
) -> list[BasketballClub]:
    towns = [city.name for city in country.cities][:_MOST_CLUBS]
    clubs = []
    for town, nick in zip(towns, nicks, strict=False):
        people = {
            place: world.person(country if rng.random() < 0.5 else world.country(rng), role, she=women, rng=rng)
            for place, role in shared("basketball").roles.items()
        }
        club = BasketballClub(
            name=f"{town} {nick}",
            city=town,
            country=country,
            league=f"{country.demonym} {league}",
            women=women,
            arena=rng.choice(shared("basketball").hall_names).format(town),
            strength=rng.gauss(0, 2.8),
            coach=world.person(country, "the coach", rng=rng),
            chair=world.person(country, "who chairs the club", rng=rng),
            **people,
        )
        clubs.append(club)
    return clubs


def _play(home: BasketballClub, away: BasketballClub, rng: Random) -> tuple[tuple[tuple[int, int], ...], bool]:
    quarters = []
    for _ in range(4):
        pace = rng.gauss(20, 3)
        edge = (home.strength - away.strength + 2.5) / 8
        quarters.append(tuple(max(7, round(rng.gauss(pace + side * edge, 3.2))) for side in (1, -1)))
    made = [(one[0], one[1]) for one in quarters]
    extra = False
    while sum(one for one, _ in made) == sum(two for _, two in made):
        made.append((rng.randint(5, 14), rng.randint(5, 14)))
        extra = True
    won = sum(one for one, _ in made) > sum(two for _, two in made)
    for club, victory in ((home, won), (away, not won)):
        club.won += victory
        club.lost += not victory
        step = 1 if victory else -1
        club.streak = club.streak + step if club.streak * step > 0 else step
    return tuple(made), extra


def _points(club: BasketballClub, total: int, rng: Random) -> dict[str, int]:
    """Return the points of the six top scorers; the rest of the team has what is left."""
    weights = [rng.uniform(0.6, 1.4) * share for share in _SHARES]
    return {player.name: max(2, round(total * weight)) for player, weight in zip(club.squad, weights, strict=True)}


def _season(world: World, place: tuple[str, str, bool], nicks: list[str], now: datetime, rng: Random) -> list[Game]:
    name, league, women = place
    country = next(country for country in world.countries if country.name == name)
    clubs = _clubs(world, country, league, women, nicks, rng)
    for _ in range(_PLAYED_BEFORE):
        order = rng.sample(clubs, len(clubs))
        for home, away in zip(order[::2], order[1::2], strict=False):
            _play(home, away, rng)
    games: list[Game] = []
    days = [
        day
        for day in (now.date() + timedelta(days=offset) for offset in range(-17, 4))
        if day.weekday() in _PLAYING_DAYS
    ]
    for day in days:
        order = rng.sample(clubs, len(clubs))
        played = []
        for home, away in zip(order[::2], order[1::2], strict=False):
            hour = rng.choice((14, 16, 18)) if day.weekday() == 6 else rng.choice((18, 19))
            quarters, extra = _play(home, away, rng)
            played.append((datetime.combine(day, time(hour, rng.choice((0, 30))), UTC), home, away, quarters, extra))
        table = sorted(clubs, key=lambda club: (-club.won, club.lost, club.name))
        for at, home, away, quarters, extra in played:
            points = _points(home, sum(one for one, _ in quarters), rng) | _points(
                away, sum(two for _, two in quarters), rng
            )
            game = Game(
                at=at,
                home=home,
                away=away,
                quarters=quarters,
                extra=extra,
                points=points,
                records=(f"{home.won}-{home.lost}", f"{away.won}-{away.lost}"),
                places=(table.index(home) + 1, table.index(away) + 1),
                streaks=(home.streak, away.streak),
                leader=table[0].name,
            )
            games.append(game)
    return games


def seasons(world: World, now: datetime) -> tuple[Game, ...]:
    """Return all games of both leagues from seventeen days before `now` to three days after it, by time."""
    rng = Random(f"{world.seed}:basketball")
    given = shared("basketball")
    nicks = rng.sample(given.nicks, len(given.nicks))
    games = [
        game
        for index, place in enumerate(given.leagues)
        for game in _season(world, place, nicks[index * _NICKS_A_LEAGUE :], now, rng)
    ]
    return tuple(sorted(games, key=lambda game: (game.at, game.name)))

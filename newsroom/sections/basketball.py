"""Basketball clubs in the section's stories, and games described from the winner's side."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.scene import Scene
from newsroom.sections.basketball_league import BasketballClub, Game, seasons

_DAYS_REPORTED = 15
_STRUGGLING = 14
_LONG_STREAK = 3
_CLOSE, _ROUT = 5, 17
_PLACES = ("guard", "wing", "forward", "centre")


def _games(scene: Scene) -> tuple[Game, ...]:
    return scene.world.kept("basketball seasons", lambda: seasons(scene.world, scene.world.now))


def _clubs(scene: Scene) -> tuple[BasketballClub, ...]:
    return tuple({club.name: club for game in _games(scene) for club in (game.home, game.away)}.values())


def _struggling(scene: Scene) -> list[BasketballClub]:
    """Return the clubs with the fewest wins."""
    return sorted(_clubs(scene), key=lambda club: club.won)[:_STRUGGLING]


def _player(_: Scene, club: BasketballClub, place: str) -> Person:
    player: Person = getattr(club, place)
    return player


def _starters(scene: Scene) -> tuple[Person, ...]:
    return tuple(_player(scene, club, place) for club in _clubs(scene) for place in _PLACES)


def _club_and_place(scene: Scene, player: Person) -> tuple[BasketballClub, str]:
    club = next(club for club in _clubs(scene) if player in club.squad)
    return club, next(place for place in _PLACES if getattr(club, place) is player)


@dataclass(frozen=True)
class GameReport:
    """A game described from the winner's side; facts that hold only for some games are None for the others."""

    g: Game
    winner: BasketballClub
    loser: BasketballClub
    score: str
    margin: int
    half: str
    star: Person
    star_points: int
    second: Person
    second_points: int
    loser_star: Person
    loser_points: int
    w_record: str
    l_record: str
    w_place: int
    l_place: int
    run: int | None
    slump: int | None
    close: str | None
    rout: str | None
    extra: str | None
    comeback: int | None
    away_win: str | None
    home_win: str | None
    leader: str


def _reported_game(scene: Scene) -> GameReport:
    now, window = scene.world.now, timedelta(days=_DAYS_REPORTED)
    g = scene.fresh("basketball game", [one for one in _games(scene) if one.at <= now and now - one.at < window])
    won = g.score[0] > g.score[1]
    turn = 1 if won else -1
    winner, loser = (g.home, g.away)[::turn]
    high, low = g.score[::turn]
    halves = [sum(quarter[side] for quarter in g.quarters[:2]) for side in (0, 1)][::turn]
    best = sorted(winner.squad, key=lambda player: -g.points[player.name])
    top = max(loser.squad, key=lambda player: g.points[player.name])
    streaks, places, records = g.streaks[::turn], g.places[::turn], g.records[::turn]
    return GameReport(
        g=g,
        winner=winner,
        loser=loser,
        score=f"{high}-{low}",
        margin=high - low,
        half=f"{halves[0]}-{halves[1]}",
        star=best[0],
        star_points=g.points[best[0].name],
        second=best[1],
        second_points=g.points[best[1].name],
        loser_star=top,
        loser_points=g.points[top.name],
        w_record=records[0],
        l_record=records[1],
        w_place=places[0],
        l_place=places[1],
        run=streaks[0] if streaks[0] >= _LONG_STREAK else None,
        slump=-streaks[1] if streaks[1] <= -_LONG_STREAK else None,
        close="" if high - low <= _CLOSE else None,
        rout="" if high - low >= _ROUT else None,
        extra="" if g.extra else None,
        comeback=halves[1] - halves[0] if halves[1] > halves[0] else None,
        away_win=None if won else "",
        home_win="" if won else None,
        leader=g.leader,
    )


VERBS: dict[str, Verb] = {
    "club_and_place": _club_and_place,
    "clubs": _clubs,
    "game_told": _reported_game,
    "player": _player,
    "starters": _starters,
    "struggling": _struggling,
}

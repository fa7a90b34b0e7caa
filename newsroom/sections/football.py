"""Football clubs in the section's stories, and matches described from the winner's side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.scene import Scene
from newsroom.sections.football_league import FootballClub, Goal, Match, seasons
from newsroom.style import listed, number, ordinal

_DAYS_REPORTED = 14
_STRUGGLING = 14
_LATE_MINUTE = 83


def _matches(scene: Scene) -> tuple[Match, ...]:
    return scene.world.kept("football seasons", lambda: seasons(scene.world, scene.world.now))


def _clubs(scene: Scene) -> tuple[FootballClub, ...]:
    return tuple({club.name: club for match in _matches(scene) for club in (match.home, match.away)}.values())


def _struggling(scene: Scene) -> list[FootballClub]:
    """Return the clubs with the fewest points per match."""
    return sorted(_clubs(scene), key=lambda club: club.points / max(club.played, 1))[:_STRUGGLING]


@dataclass(frozen=True)
class MatchReport:
    """A match described from the winner's side; after a draw, `winner` and `loser` are home and away.

    Facts that hold only for some matches are None for the others; the empty ones only open a wording. `fit` are players
    of the `doubt_club` who were doubtful before the match.
    """

    m: Match
    times: tuple[datetime, ...]
    winner: FootballClub
    loser: FootballClub
    home: FootballClub
    away: FootballClub
    score: str
    win: str | None
    draw: str | None
    goalless: str | None
    away_win: str | None
    rout: str | None
    narrow: str | None
    comeback: str | None
    hat_trick: Person | None
    brace: Person | None
    opener: Goal | None
    second: Goal | None
    only: Goal | None
    last: Goal | None
    late: Goal | None
    w_opener: Goal | None
    opener_side: str | None
    opener_foe: str | None
    leveller: Goal | None
    scorers: str | None
    w_place: int
    l_place: int
    w_points: int
    leaders: str | None
    run: str | None
    run_nth: str | None
    slump: str | None
    doubt_club: FootballClub
    fit: tuple[Person, ...]


def _reported_match(scene: Scene) -> MatchReport:
    now = scene.world.now
    m = scene.fresh("football match", [one for one in _matches(scene) if one.at > now - timedelta(days=_DAYS_REPORTED)])
    home_goals = sum(goal.home for goal in m.goals)
    away_goals = len(m.goals) - home_goals
    draw, home_won = home_goals == away_goals, home_goals >= away_goals
    high, low = max(home_goals, away_goals), min(home_goals, away_goals)
    winner, loser = (m.home, m.away) if home_won else (m.away, m.home)
    tally = _tally(m.goals)
    by_winner = [goals for goals in tally.values() if goals[0].home == home_won and not draw]
    opener = m.goals[0] if len(m.goals) > 1 else None
    last = m.goals[-1] if m.goals else None
    decisive = last is not None and last.minute >= _LATE_MINUTE and high - low <= 1 and (draw or last.home == home_won)
    w_streak, l_streak = (m.home_streak, m.away_streak) if home_won else (m.away_streak, m.home_streak)
    run, slump = _streak(w_streak), _streak(l_streak)
    doubt_club = scene.pick((m.home, m.away))
    return MatchReport(
        m=m,
        times=_times(m, scene),
        winner=winner,
        loser=loser,
        home=m.home,
        away=m.away,
        score=f"{high}-{low}",
        win=_when(not draw),
        draw=_when(draw),
        goalless=_when(not m.goals),
        away_win=_when(not home_won),
        rout=_when(high - low >= 3),
        narrow=_when(high - low == 1),
        comeback=_when(opener is not None and not draw and opener.home != home_won),
        hat_trick=next((goals[0].by for goals in by_winner if len(goals) >= 3), None),
        brace=next((goals[0].by for goals in by_winner if len(goals) == 2), None),
        opener=opener,
        second=m.goals[1] if len(m.goals) > 1 else None,
        only=m.goals[0] if len(m.goals) == 1 else None,
        last=last if opener is not None and last is not None and last.by != opener.by else None,
        late=last if decisive else None,
        w_opener=opener if opener is not None and not draw and opener.home == home_won else None,
        opener_side=None if opener is None else (m.home if opener.home else m.away).name,
        opener_foe=None if opener is None else (m.away if opener.home else m.home).name,
        leveller=last if draw and m.goals else None,
        scorers=_scorers(tally),
        w_place=m.home_place if home_won else m.away_place,
        l_place=m.away_place if home_won else m.home_place,
        w_points=m.home_points if home_won else m.away_points,
        leaders=m.leaders if m.leaders not in (winner.name, loser.name) else None,
        run=number(run) if not draw and run >= 2 else None,
        run_nth=ordinal(run) if not draw and w_streak[-1] == "W" and run >= 2 else None,
        slump=number(slump) if not draw and slump >= 3 else None,
        doubt_club=doubt_club,
        # Somebody who then scores can't have been in doubt for long.
        fit=tuple(
            one
            for one in (doubt_club.defender, doubt_club.midfielder, doubt_club.winger, doubt_club.forward)
            if one.name not in tally
        ),
    )


def _when(holds: bool) -> str | None:
    return "" if holds else None


def _times(m: Match, scene: Scene) -> tuple[datetime, ...]:
    """Return when preview, report and reaction are printed."""
    preview = m.at - timedelta(hours=scene.between(20, 29), minutes=scene.between(0, 59))
    report = m.at + timedelta(minutes=scene.between(116, 160))
    reaction = m.at.replace(hour=9) + timedelta(days=1, minutes=scene.between(-90, 400))
    return preview, report, reaction


def _tally(goals: Sequence[Goal]) -> dict[str, list[Goal]]:
    tally: dict[str, list[Goal]] = {}
    for goal in goals:
        tally.setdefault(goal.by.name, []).append(goal)
    return tally


def _scorers(tally: dict[str, list[Goal]]) -> str | None:
    """Write the scorers: 'Ada Pryce (12, 80) and Nell Oakden (34)'."""
    if not tally:
        return None
    return listed([f"{name} ({', '.join(str(goal.minute) for goal in goals)})" for name, goals in tally.items()])


def _streak(marks: str) -> int:
    """Return how often the last result is repeated at the end."""
    return len(marks) - len(marks.rstrip(marks[-1])) if marks else 0


VERBS: dict[str, Verb] = {"clubs": _clubs, "match_told": _reported_match, "struggling": _struggling}

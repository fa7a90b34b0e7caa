"""The films of the season, with the people who made them, and the weekends of the box office."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.scene import Scene, SpentError
from newsroom.tables import shared
from newsroom.world import Country, World

_OF_A_WOMAN = re.compile(
    r"\b(?:her|she|woman|sister|daughter|heroine|maid|chambermaid|hostess|wife|nun|widow)\b", re.IGNORECASE
)
_OF_A_MAN = re.compile(r"\b(?:his|he|himself|man|boy|son|king)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Film:
    """A film; `script` is its row in the table of scripts, `nth` how many films its director has made."""

    script: Any
    country: Country = field(repr=False)
    director: Person
    lead: Person
    second: Person
    studio: str
    minutes: int
    nth: int

    @property
    def name(self) -> str:
        return str(self.script.title)

    @property
    def part(self) -> str:
        """Return what the lead does: 'plays a locksmith'."""
        who = self.script.who
        if who.startswith(("two ", "five ", "the staff")) or " and " in who:
            return "leads the cast"
        return f"plays {who}"


def played_by_a_woman(*texts: str) -> bool | None:
    """Return whether a part is a woman's; None if the texts leave it open."""
    text = " ".join(texts)
    return True if _OF_A_WOMAN.search(text) else False if _OF_A_MAN.search(text) else None


def _season(world: World) -> tuple[Film, ...]:
    """Return every script filmed once, usually in a near country."""
    rng, given = Random(f"{world.seed}:film"), shared("film")
    films = []
    for script in given.scripts:
        country = world.country(rng)
        director = world.person(country, "the director", rng=rng)
        lead = second = director
        while lead.family == director.family:
            she = played_by_a_woman(script.who, script.plot, script.praise)
            lead = world.person(country, "the lead", she=she, rng=rng)
        while second.family in (director.family, lead.family):
            second = world.person(country, rng=rng)
        made_by = rng.choice(given.studios)
        minutes, nth = rng.randint(84, 148), rng.randint(2, 8)
        films.append(Film(script, country, director, lead, second, made_by, minutes, nth))
    return tuple(films)


def _films(scene: Scene) -> tuple[Film, ...]:
    return scene.world.kept("film slate", lambda: _season(scene.world))


def _weekend(scene: Scene) -> tuple[datetime, Country]:
    """Return a Monday before now and a country whose weekend was not reported yet; likelier the scene's Monday."""
    monday = scene.start - timedelta(days=scene.start.weekday())
    for days in (0, -7, 7):
        day = monday + timedelta(days=days)
        if day <= scene.world.now:
            with suppress(SpentError):
                return day, scene.country(f"box office {day:%F}")
    raise SpentError("every country's box office has been reported")


def _clause(_: Scene, text: str) -> str:
    """Return the text before the first comma."""
    return text.split(",")[0]


VERBS: dict[str, Verb] = {
    "clause": _clause,
    "films": _films,
    "played_by_a_woman": lambda _, *texts: played_by_a_woman(*texts),
    "weekend": _weekend,
}

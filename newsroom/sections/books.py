"""The season's books, with their authors, and the weeks of the bestseller lists."""

from __future__ import annotations

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


@dataclass(frozen=True)
class SeasonBook:
    """A book; `text` is its row in the table of texts, `nth` how many books its author has written."""

    text: Any
    country: Country = field(repr=False)
    author: Person
    publisher: str
    pages: int
    nth: int

    @property
    def name(self) -> str:
        return str(self.text.title)


def _season(world: World) -> tuple[SeasonBook, ...]:
    """Return every text once, each by its own author."""
    rng, given = Random(f"{world.seed}:books"), shared("books")
    made = []
    for text in given.texts:
        country = world.country(rng)
        author = world.person(country, "the author", she=given.authors_are_women.get(text.title), rng=rng)
        publisher = rng.choice(given.publishers)
        made.append(SeasonBook(text, country, author, publisher, pages=rng.randint(148, 640), nth=rng.randint(1, 9)))
    return tuple(made)


def _books(scene: Scene) -> tuple[SeasonBook, ...]:
    return scene.world.kept("books shelf", lambda: _season(scene.world))


def _chart_day(scene: Scene) -> tuple[datetime, Country]:
    """Return a Thursday near the scene's start and a country whose bestsellers of that week were not reported yet."""
    thursday = scene.start - timedelta(days=(scene.start.weekday() - 3) % 7)
    for day in (thursday, thursday - timedelta(days=7), thursday + timedelta(days=7)):
        if day <= scene.world.now:
            with suppress(SpentError):
                return day, scene.country(f"bestsellers {day:%F}")
    raise SpentError("every country's bestsellers have been reported")


VERBS: dict[str, Verb] = {"books": _books, "chart_day": _chart_day}

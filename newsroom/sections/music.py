"""The bands of the invented world, and titles of songs and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.places import City
from newsroom.scene import Scene
from newsroom.tables import shared
from newsroom.world import Country, World

_BANDS = 110


@dataclass(frozen=True)
class Band:
    """A band; plural in the paper. `genre` is its row in the table of genres."""

    name: str
    genre: Any
    country: Country = field(repr=False)
    city: City
    singer: Person
    years: int


def _bands(world: World) -> tuple[Band, ...]:
    rng, given = Random(f"{world.seed}:music"), shared("music")
    every = [f"{first} {second}" for first in given.band_firsts for second in given.band_seconds]
    made = []
    for index, name in enumerate(rng.sample(every, _BANDS)):
        country = world.country(rng)
        called = f"The {name}" if rng.random() < 0.3 else name
        city = rng.choice(country.cities)
        singer = world.person(country, "the singer", rng=rng)
        genre = given.genres[index % len(given.genres)]
        made.append(Band(called, genre, country, city, singer, years=rng.randint(3, 24)))
    return tuple(made)


def _acts(scene: Scene) -> tuple[Band, ...]:
    return scene.world.kept("music acts", lambda: _bands(scene.world))


def _title_of(scene: Scene) -> str:
    """Return the title of a song or a record."""
    given = shared("music")
    return f"{scene.pick(given.titles_a)} {scene.pick(given.titles_b)}"


def _titles(scene: Scene, count: int) -> list[str]:
    """Return `count` titles that differ in both halves."""
    given = shared("music")
    pairs = zip(scene.sample(given.titles_a, count), scene.sample(given.titles_b, count), strict=True)
    return [f"{first} {second}" for first, second in pairs]


VERBS: dict[str, Verb] = {"acts": _acts, "title_of": _title_of, "titles": _titles}

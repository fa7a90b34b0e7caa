"""Every city that can be visited, and islands that stay the same through the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from newsroom.expressions import Verb
from newsroom.places import City
from newsroom.scene import Scene
from newsroom.sections.world import pair
from newsroom.world import Country

T = TypeVar("T")


def _every_city(scene: Scene) -> list[City]:
    return [city for country in scene.world.countries for city in country.cities]


def _other(scene: Scene, tag: str, table: Sequence[T], taken: T) -> T:
    """Return the next row of a table that is dealt out, other than this story's."""
    while True:
        row = scene.deal(tag, table)
        if row != taken:
            return row


def _sizes(scene: Scene, isle: Any, country: Country) -> tuple[int, int, int, int, City]:
    """Return an island's fixed figures: residents, hours of ferry, weeks and beds or minutes, and its port."""

    def drawn() -> tuple[int, int, int, int, City]:
        numbers = scene.between(41, 390), scene.between(3, 7), scene.between(9, 14), scene.between(25, 110)
        return (*numbers, scene.pick(country.cities[1:]))

    return scene.world.kept(f"isle {isle.name}", drawn)


VERBS: dict[str, Verb] = {"every_city": _every_city, "other": _other, "pair": pair, "sizes": _sizes}

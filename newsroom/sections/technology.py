"""Victims of break-ins, competing apps, and how numbers of users are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.places import City
from newsroom.scene import Scene
from newsroom.world import Country

_MILLION = 1e6


def _victim(scene: Scene, target: Any) -> tuple[Country, City, str, str, Person]:
    """Return the target of a break-in: its country, name, description and head; a public body or a company."""
    if target.public:
        country = scene.country()
        city = scene.fresh("breach city", country.cities)
        name = target.kind.format(city.name)
        return country, city, name, name, scene.person(country, f"who runs {name}")
    co = scene.fresh("breach company", [one for one in scene.world.companies if one.noun == target.kind])
    return co.country, co.city, co.name, f"the {co.country.demonym} {co.noun}", co.chief


def _rivals(_: Scene, apps: Sequence[Any], app: Any) -> list[str]:
    """Return the names of the apps of the same kind."""
    return [one.name for one in apps if one.kind == app.kind and one is not app] or ["a rival"]


def _crowd(_: Scene, count: float) -> int | str:
    """Write a number of people as papers do: from a million, '2.4 million'."""
    return f"{count / _MILLION:.1f}".removesuffix(".0") + " million" if count >= _MILLION else int(count)


VERBS: dict[str, Verb] = {"crowd": _crowd, "rivals": _rivals, "victim": _victim}

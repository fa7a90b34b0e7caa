"""The subjects of the world section: offices of state with their country, and neighbouring countries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.places import borders, seas
from newsroom.scene import Scene
from newsroom.world import Country


def _named(scene: Scene, name: str) -> Country:
    return next(country for country in scene.world.countries if country.name == name)


def pair(scene: Scene, tag: str, *, sea: bool) -> tuple[Country, Country]:
    """Return two countries by a common sea or else a land border, with a first one that is new under the tag."""
    pairs = seas() if sea else borders()
    first = scene.fresh(tag, sorted({name for names in pairs for name in names}))
    second = scene.pick([b if a == first else a for a, b in pairs if first in (a, b)])
    return _named(scene, first), _named(scene, second)


def _neighbour(scene: Scene, country: Country) -> Country:
    """Return a neighbour of this country, over land or sea."""
    pairs = (*borders(), *seas())
    return _named(scene, scene.pick([b if a == country.name else a for a, b in pairs if country.name in (a, b)]))


def _minister(_: Scene, country: Country, office: str) -> Person:
    """Return the minister, introduced with the country: 'the Caldrian foreign minister'."""
    return replace(country.minister(office), role=f"the {country.demonym} {office} minister")


def _head(_: Scene, country: Country) -> Person:
    """Return the head of government, introduced with the country."""
    return replace(country.premier, role=f"the {country.demonym} {country.title}")


def _among(scene: Scene, tag: str, names: Sequence[str]) -> Country:
    """Return one of the named countries, or any if none is named; each once under the tag."""
    return scene.fresh(tag, [c for c in scene.world.countries if not names or c.name in names])


VERBS: dict[str, Verb] = {
    "among": _among,
    "head": _head,
    "minister": _minister,
    "neighbour": _neighbour,
    "pair": pair,
}

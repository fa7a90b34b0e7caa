"""Who the world desk writes about: offices of state with their country, and which countries are neighbours."""

from __future__ import annotations

from dataclasses import replace

from backend.news.sources.newsroom.beat import Scene
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.world import Country

_BORDERS = (
    ("Vestria", "Wislania"),
    ("Vestria", "Montavia"),
    ("Vestria", "Aurenne"),
    ("Aurenne", "Montavia"),
    ("Lorvenia", "Wislania"),
    ("Lorvenia", "Montavia"),
    ("Lorvenia", "Vestria"),
    ("Castara", "Belmara"),
    ("Tamira", "Torgan"),
    ("Torgan", "Sundara"),
    ("Oyala", "Zamburi"),
)
_SEAS = (
    ("Caldria", "Aurenne"),
    ("Caldria", "Skarland"),
    ("Caldria", "Ontara"),
    ("Skarland", "Wislania"),
    ("Skarland", "Ontara"),
    ("Montavia", "Tamira"),
    ("Naruma", "Haesan"),
    ("Naruma", "Pelinang"),
    ("Pelinang", "Sundara"),
    ("Sundara", "Zamburi"),
    ("Belmara", "Oyala"),
)


def pair(scene: Scene, tag: str, *, sea: bool) -> tuple[Country, Country]:
    """Two countries that share a sea, or else a land border; no two stories under the tag have the same first."""
    pairs = _SEAS if sea else _BORDERS
    of_name = {country.name: country for country in scene.world.countries}
    first = scene.fresh(tag, sorted({name for names in pairs for name in names}))
    second = scene.pick([b if a == first else a for a, b in pairs if first in (a, b)])
    return of_name[first], of_name[second]


def neighbour(scene: Scene, country: Country) -> Country:
    """A country beside this one, over land or sea."""
    names = [b if a == country.name else a for a, b in (*_BORDERS, *_SEAS) if country.name in (a, b)]
    name = scene.pick(names)
    return next(c for c in scene.world.countries if c.name == name)


def minister(country: Country, office: str) -> Person:
    """The minister, introduced with the country: 'the Caldrian foreign minister'."""
    return replace(country.minister(office), role=f"the {country.demonym} {office} minister")


def head(country: Country) -> Person:
    """The head of government, introduced with the country."""
    return replace(country.premier, role=f"the {country.demonym} {country.title}")


def among(scene: Scene, tag: str, names: tuple[str, ...]) -> Country:
    """One of the countries named, or any when none is; each once under the tag."""
    return scene.fresh(tag, [c for c in scene.world.countries if not names or c.name in names])

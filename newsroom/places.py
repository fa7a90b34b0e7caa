"""The countries of the invented world: their cities, regions, money and forms of government."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from newsroom.tables import document, row


@dataclass(frozen=True)
class City:
    name: str
    country: str


@dataclass(frozen=True)
class Currency:
    """How an amount is written: '£2.4bn' with a sign before, '2.4bn crowns' with a unit after."""

    sign: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Land:
    """The fixed properties of a country; `weight` is how often it is in the news."""

    name: str
    demonym: str
    cultures: tuple[str, ...]
    premier: str
    house: str
    currency: Currency
    capital: str
    cities: tuple[str, ...]
    regions: tuple[str, ...]
    people_m: float
    weight: int


@dataclass(frozen=True)
class _LandRow:
    name: str
    demonym: str
    cultures: tuple[str, ...]
    premier: str
    house: str
    cities: tuple[str, ...]
    regions: tuple[str, ...]
    people_m: float
    weight: int
    sign: str = ""
    unit: str = ""


DOLLAR = Currency(sign="$")


@cache
def lands() -> tuple[Land, ...]:
    """Return the countries in data/countries.toml; the first city of each is its capital."""
    found = document("countries.toml")["countries"]
    rows = [row(_LandRow, one, "countries.toml", f"countries[{at}]") for at, one in enumerate(found)]
    return tuple(
        Land(
            name=one.name,
            demonym=one.demonym,
            cultures=one.cultures,
            premier=one.premier,
            house=one.house,
            currency=Currency(one.sign, one.unit),
            capital=one.cities[0],
            cities=one.cities,
            regions=one.regions,
            people_m=one.people_m,
            weight=one.weight,
        )
        for one in rows
    )


def borders() -> list[tuple[str, str]]:
    """Return the pairs of countries that share a land border."""
    return [(one, other) for one, other in document("countries.toml")["borders"]]


def seas() -> list[tuple[str, str]]:
    """Return the pairs of countries with a sea between them."""
    return [(one, other) for one, other in document("countries.toml")["seas"]]

"""The invented world of one seed: people with lasting roles, governments, companies and places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property
from random import Random
from typing import TypeVar, cast

from newsroom.companies import Sector, trade_names
from newsroom.names import cultures
from newsroom.people import Person
from newsroom.places import City, Currency, Land, lands
from newsroom.tables import document, row


@dataclass(frozen=True)
class Money:
    """An amount in units of a currency, written '£2.4bn', '€340m', '12,500 crowns'."""

    amount: float
    currency: Currency

    def __str__(self) -> str:
        for size, letter in ((1e12, "tn"), (1e9, "bn"), (1e6, "m")):
            if self.amount >= size:
                value = self.amount / size
                text = f"{value:,.0f}{letter}" if value >= 100 else f"{value:.1f}".removesuffix(".0") + letter
                break
        else:
            cents = 0 < self.amount < 100 and self.amount != int(self.amount)
            text = f"{self.amount:,.2f}" if cents else f"{self.amount:,.0f}"
        return f"{self.currency.sign}{text}" + (f" {self.currency.unit}" if self.currency.unit else "")

    def times(self, factor: float) -> Money:
        """Return the amount times `factor`, rounded to as many digits."""
        return Money(rounded(self.amount * factor), self.currency)


def rounded(amount: float) -> float:
    """Return an amount with two leading digits, as printed amounts are."""
    if amount < 100:
        return round(amount)
    digits = len(str(int(amount)))
    step = 10 ** (digits - 2)
    return float(round(amount / step) * step)


@dataclass(frozen=True)
class Party:
    name: str
    adjective: str
    members: str
    lean: str


@cache
def parties() -> tuple[Party, ...]:
    """Return the parties in data/government.toml, three for each country."""
    found = document("government.toml")["parties"]
    return tuple(row(Party, one, "government.toml", f"parties[{at}]") for at, one in enumerate(found))


def offices() -> list[str]:
    return list(document("government.toml")["offices"])


@dataclass
class Country:
    """A country with its offices filled; an office has one holder for as long as the paper runs."""

    land: Land
    cities: tuple[City, ...]
    premier: Person
    rival: Person
    party: Party
    opposition: Party
    ally: Party
    offices: dict[str, Person]

    @property
    def name(self) -> str:
        return self.land.name

    @property
    def demonym(self) -> str:
        return self.land.demonym

    @property
    def capital(self) -> str:
        return self.land.capital

    @property
    def title(self) -> str:
        """Return the head of government's office: 'prime minister'."""
        return self.land.premier

    @property
    def house(self) -> str:
        return self.land.house

    @property
    def currency(self) -> Currency:
        return self.land.currency

    def minister(self, office: str) -> Person:
        return self.offices[office]


@dataclass(frozen=True)
class Company:
    """A company as reports describe it: `noun` is 'retailer', `thing` what it sells, `site` where it works."""

    name: str
    sector: Sector
    country: Country = field(repr=False)
    city: City
    chief: Person
    chair: Person
    finance: Person
    staff: int
    revenue: Money

    @property
    def noun(self) -> str:
        return self.sector.noun

    @property
    def currency(self) -> Currency:
        return self.country.currency


T = TypeVar("T")

_BOARD = ("the chief executive", "the chair", "the finance chief")
_NAME_TRIES = 1_000


class NamesExhausted(LookupError):
    """Nearly every name of the invented world is taken."""


class World:
    """Everything lasting that sections may write about; built once per seed, the same for the same seed."""

    def __init__(self, seed: int, now: datetime) -> None:
        self.seed = seed
        self._rng = Random(f"{seed}:world")
        self.now = now
        self._names: set[str] = set()
        self._kept: dict[str, object] = {}
        self.countries: tuple[Country, ...] = tuple(self._country(land) for land in lands())

    def person(
        self, country: Country | None, role: str = "", *, she: bool | None = None, rng: Random | None = None
    ) -> Person:
        """Return a new person, whose full name nobody else in the world has; usually of the country's cultures."""
        return self._person(country.land if country is not None else None, role, rng or self._rng, she)

    def _person(self, land: Land | None, role: str, rng: Random, she: bool | None = None) -> Person:
        for _ in range(_NAME_TRIES):
            of_land = land is not None and rng.random() < 0.9
            name = rng.choice(land.cultures) if of_land and land is not None else rng.choice(tuple(cultures()))
            culture = cultures()[name]
            female = rng.random() < 0.47 if she is None else she
            person = Person(
                rng.choice(culture.women if female else culture.men), rng.choice(culture.families), female, role
            )
            if person.given != person.family and person.name not in self._names:
                self._names.add(person.name)
                return person
        raise NamesExhausted("no name is left for another person")

    def renamed(self, person: Person, *, she: bool) -> Person:
        """Return the person as a woman or as a man: another first name of the culture, or another family name."""
        own = [culture for culture in cultures().values() if person.given in (*culture.women, *culture.men)]
        home = next((culture for culture in own if person.family in culture.families), own[0])
        for culture in (home, *cultures().values()):
            givens = culture.women if she else culture.men
            kept = (person.family,) if culture is home else ()
            for family in (*kept, *self._rng.sample(culture.families, len(culture.families))):
                for given in self._rng.sample(givens, len(givens)):
                    other = replace(person, given=given, family=family, she=she)
                    if other.given != other.family and other.name not in self._names:
                        self._names.add(other.name)
                        return other
        raise NamesExhausted(f"no other name for {person.name}")

    def _country(self, land: Land) -> Country:
        party, opposition, ally = self._rng.sample(parties(), 3)
        return Country(
            land=land,
            cities=tuple(City(name, land.name) for name in land.cities),
            premier=self._person(land, f"the {land.premier}", self._rng),
            rival=self._person(land, "the leader of the opposition", self._rng),
            party=party,
            opposition=opposition,
            ally=ally,
            offices={office: self._person(land, f"the {office} minister", self._rng) for office in offices()}
            | {"central bank": self._person(land, "the central bank's governor", self._rng)},
        )

    def kept(self, name: str, build: Callable[[], T]) -> T:
        """Return a lasting part of the world that one section defines: built at first use, the same object later."""
        if name not in self._kept:
            self._kept[name] = build()
        return cast(T, self._kept[name])

    def country(self, rng: Random, among: Sequence[Country] | None = None) -> Country:
        """Return a country, more often one close to the readers."""
        pool = tuple(among or self.countries)
        return rng.choices(pool, [country.land.weight for country in pool])[0]

    @cached_property
    def companies(self) -> tuple[Company, ...]:
        rng = Random(self._rng.random())
        companies = []
        for sector, names in trade_names(rng).items():
            for name in names:
                country = self.country(rng)
                staff = int(rounded(rng.uniform(*sector.staff)))
                chief, chair, finance = (self._person(country.land, role, rng) for role in _BOARD)
                revenue = Money(rounded(staff * rng.uniform(*sector.revenue_per_head)), country.currency)
                city = rng.choice(country.cities)
                companies.append(Company(name, sector, country, city, chief, chair, finance, staff, revenue))
        return tuple(companies)

"""What a story draws its facts from: the world, chance, what other stories have used, and its start time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TypeVar

from newsroom.people import Person
from newsroom.places import DOLLAR, Currency
from newsroom.world import Country, Money, World, rounded

T = TypeVar("T")
_COUNTRY_TRIES = 12


class SpentError(LookupError):
    """Nothing unused is left for a kind of story to write about, so its section uses other kinds."""


class Claims:
    """What the sections have already written about, so that nobody resigns twice."""

    def __init__(self) -> None:
        self._uses: dict[str, dict[object, int]] = {}

    def claim(self, tag: str, pool: Sequence[T], key: Callable[[T], object], uses: int, rng: Random) -> T:
        """Return one of the least used of the pool; raises SpentError if each has been used `uses` times."""
        taken = self._uses.setdefault(tag, {})
        keys = [key(one) for one in pool]
        counts = [taken.get(name, 0) for name in keys]
        fewest = min(counts)
        if fewest >= uses:
            raise SpentError(f"all {len(pool)} of {tag!r} are taken")
        index = rng.choice([index for index, count in enumerate(counts) if count == fewest])
        taken[keys[index]] = fewest + 1
        return pool[index]

    def least_used(self, tag: str, pool: Sequence[T], rng: Random) -> T:
        uses = self._uses.setdefault(tag, {})
        fewest = min(uses.get(index, 0) for index in range(len(pool)))
        index = rng.choice([index for index in range(len(pool)) if uses.get(index, 0) == fewest])
        uses[index] = fewest + 1
        return pool[index]


def _identity(one: object) -> object:
    name = getattr(one, "name", None)
    return name if isinstance(name, str) else one


@dataclass
class Scene:
    """One story's access to the world and to chance; each method draws in the order of the calls."""

    world: World
    rng: Random
    claims: Claims
    start: datetime
    _families: set[str] = field(default_factory=set)

    def given(self, name: str) -> object:
        """Return what lists of facts may use without drawing it (`facts.GIVEN`); KeyError for anything else."""
        if name in ("countries", "companies", "now"):
            return getattr(self.world, name)
        return {"start": self.start, "dollar": DOLLAR}[name]

    def pick(self, pool: Sequence[T]) -> T:
        return self.rng.choice(pool)

    def sample(self, pool: Sequence[T], count: int) -> list[T]:
        return self.rng.sample(pool, count)

    def deal(self, tag: str, pool: Sequence[T]) -> T:
        """Return one row of a table, all of whose rows come up equally often."""
        return self.claims.least_used(tag, pool, self.rng)

    def fresh(self, tag: str, pool: Sequence[T], uses: int = 1) -> T:
        """Return one that fewer than `uses` stories took under this tag; raises SpentError if there is none."""
        return self.claims.claim(tag, pool, _identity, uses, self.rng)

    def once(self, tag: str, key: object) -> None:
        """Take one thing under the tag; raises SpentError if it is taken."""
        self.claims.claim(tag, [key], _identity, 1, self.rng)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def maybe(self, probability: float, value: T) -> T | None:
        """Return the value, or None so that the wordings that need it are left out."""
        return value if self.chance(probability) else None

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def uniform(self, low: float, high: float) -> float:
        return self.rng.uniform(low, high)

    def near(self, low: float, high: float) -> int:
        """Return a number with two leading digits, as reporters round."""
        return int(rounded(self.rng.uniform(low, high)))

    def tenth(self, low: float, high: float) -> float:
        """Return a number with one decimal: a percentage, a rate."""
        return round(self.rng.uniform(low, high), 1)

    def money(self, low: float, high: float, currency: Currency) -> Money:
        return Money(rounded(self.rng.uniform(low, high)), currency)

    def person(self, country: Country | None = None, role: str = "", *, she: bool | None = None) -> Person:
        """Return a new person; `role` introduces them where a form uses their last name first."""
        while True:
            person = self.world.person(country, role, she=she, rng=self.rng)
            if person.family not in self._families:
                self._families.add(person.family)
                return person

    def country(self, tag: str | None = None) -> Country:
        """Return a country, likelier a near one; with a tag, one that no story took under it (SpentError if none)."""
        if tag is None:
            return self.world.country(self.rng)
        for _ in range(_COUNTRY_TRIES):
            country = self.world.country(self.rng)
            try:
                self.once(tag, country.name)
            except SpentError:
                continue
            return country
        return self.fresh(tag, self.world.countries)

    def day(self, days: int) -> datetime:
        """Return the date `days` after the story's start; negative before it."""
        return self.start + timedelta(days=days)

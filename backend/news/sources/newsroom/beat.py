"""What a desk is made of: desks hold beats, a beat draws facts once and tells them in stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from backend.news.sources.newsroom.grammar import MissingFactError, Pen
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import Currency
from backend.news.sources.newsroom.schedule import ROUND, Rhythm
from backend.news.sources.newsroom.world import Country, Money, World, rounded

T = TypeVar("T")
Forms = tuple[str, ...]
FEWEST_PARAGRAPHS, MOST_PARAGRAPHS = 4, 9


class SpentError(LookupError):
    """Nothing unused is left for a beat to write about, so the desk turns to its other beats."""


class Board:
    """What the desks have written about, so that nobody resigns twice."""

    def __init__(self) -> None:
        self._uses: dict[str, dict[object, int]] = {}

    def claim(self, tag: str, pool: Sequence[T], key: Callable[[T], object], uses: int, rng: Random) -> T:
        """One of the least used of the pool; raises SpentError when each has been used `uses` times."""
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
    """What a beat draws its facts from: the world, chance, and the time the story starts."""

    world: World
    rng: Random
    board: Board
    start: datetime
    _families: set[str] = field(default_factory=set)

    def pick(self, pool: Sequence[T]) -> T:
        return self.rng.choice(pool)

    def sample(self, pool: Sequence[T], count: int) -> list[T]:
        return self.rng.sample(pool, count)

    def deal(self, tag: str, pool: Sequence[T]) -> T:
        """One of a table of matters, all of which come up equally often."""
        return self.board.least_used(tag, pool, self.rng)

    def fresh(self, tag: str, pool: Sequence[T], uses: int = 1) -> T:
        """One that fewer than `uses` stories took under this tag; raises SpentError when there is none."""
        return self.board.claim(tag, pool, _identity, uses, self.rng)

    def once(self, tag: str, key: object) -> None:
        """Takes one thing under the tag; raises SpentError if it is taken."""
        self.board.claim(tag, [key], _identity, 1, self.rng)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def maybe(self, probability: float, value: T) -> T | None:
        """The value, or None so that the wordings that need it are left out."""
        return value if self.chance(probability) else None

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def near(self, low: float, high: float) -> int:
        """A number with two leading digits, as reporters round."""
        return int(rounded(self.rng.uniform(low, high)))

    def tenth(self, low: float, high: float) -> float:
        """A number with one decimal: a percentage, a rate."""
        return round(self.rng.uniform(low, high), 1)

    def money(self, low: float, high: float, currency: Currency) -> Money:
        return Money(rounded(self.rng.uniform(low, high)), currency)

    def person(self, country: Country | None = None, role: str = "", *, she: bool | None = None) -> Person:
        """Somebody new; `role` introduces them where a form uses their last name first."""
        while True:
            person = self.world.person(country, role, she=she, rng=self.rng)
            if person.family not in self._families:
                self._families.add(person.family)
                return person

    def country(self, tag: str | None = None) -> Country:
        """A country, likelier a near one; with a tag, one that no story took under it (SpentError if none)."""
        if tag is None:
            return self.world.country(self.rng)
        for _ in range(12):
            country = self.world.country(self.rng)
            try:
                self.once(tag, country.name)
            except SpentError:
                continue
            return country
        return self.fresh(tag, self.world.countries)

    def day(self, days: int) -> datetime:
        """The date `days` after the story's start; negative before it."""
        return self.start + timedelta(days=days)


@dataclass(frozen=True)
class Role:
    """One paragraph's work in a text: any of its forms does it; it is there with probability `chance`."""

    forms: Forms
    chance: float = 1.0


def say(*forms: str, chance: float = 1.0) -> Role:
    return Role(forms, chance)


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Draft:
    title: str
    abstract: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One report of a story: forms of title, abstract and first paragraph, then roles.

    `then` comes in order, `loose` shuffled and in part, `close` last. `after` is the gap from the stage before,
    in days. `covered` is the chance that a second paper writes it too, `chance` that it is printed at all.
    `when` says for which facts the stage happens (a trial ends in one verdict).
    """

    titles: Forms
    abstracts: Forms
    leads: Forms
    then: tuple[Role, ...] = ()
    loose: tuple[Role, ...] = ()
    close: tuple[Role, ...] = ()
    after: tuple[float, float] = (1.0, 2.0)
    weight: float = 0.4
    covered: float = 0.12
    chance: float = 1.0
    when: Callable[[Any], bool] = _always
    rhythm: Rhythm | None = None

    def draft(self, pen: Pen, rng: Random) -> Draft:
        """A text of four to nine paragraphs; a role none of whose forms has all its facts is left out.

        Of the loose roles, those about the same people follow each other.
        """
        pen.start(introduces=False)
        title = pen.write(self.titles).rstrip(".")
        pen.start(introduces=True)
        abstract = pen.write(self.abstracts)
        pen.start(introduces=True)
        paragraphs = [pen.write(self.leads), *_written(self.then, pen, rng)]
        least = max(0, FEWEST_PARAGRAPHS - len(paragraphs) - len(self.close))
        most = min(len(self.loose), MOST_PARAGRAPHS - len(paragraphs) - len(self.close))
        wanted = rng.randint(min(max(least, most - 1), most), most)
        chosen = sorted(self.loose, key=lambda role: rng.random() * (1 + pen.wear(role.forms)))
        about = {id(role): pen.people(role.forms) for role in chosen}
        before = pen.people(self.then[-1].forms if self.then else self.leads)
        while chosen and wanted > 0:
            role = max(chosen[: wanted + 1], key=lambda role: len(before & about[id(role)]))
            chosen.remove(role)
            added = _written((role,), pen, rng)
            paragraphs += added
            wanted -= len(added)
            before = about[id(role)] if added else before
        return Draft(title, abstract, (*paragraphs, *_written(self.close, pen, rng)))


def _written(roles: Sequence[Role], pen: Pen, rng: Random) -> list[str]:
    texts = []
    for role in roles:
        if rng.random() < role.chance:
            with suppress(MissingFactError):
                texts.append(pen.write(role.forms))
    return texts


@dataclass(frozen=True)
class Beat:
    """A kind of story: `facts` draws what happened, `stages` tell it; one stage makes a single report.

    Facts with an attribute `times`, one datetime per stage, are told at these times; others follow the rhythm.
    """

    topic: str
    facts: Callable[[Scene], Any]
    stages: tuple[Stage, ...]
    share: float = 1.0
    rhythm: Rhythm = field(default=ROUND)

    @property
    def span(self) -> timedelta:
        """About how long a story of the beat runs."""
        return timedelta(days=sum(sum(stage.after) / 2 for stage in self.stages[1:]))


@dataclass(frozen=True)
class Desk:
    section: str
    beats: tuple[Beat, ...]
    share: float = 1.0

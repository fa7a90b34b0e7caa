"""What a section consists of: kinds of story, each reported in stages, each stage in paragraphs with a role."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from newsroom.expressions import Expression
from newsroom.facts import FactList
from newsroom.forms import Forms
from newsroom.schedule import Rhythm
from newsroom.writer import MissingFactError, Writer

FEWEST_PARAGRAPHS, MOST_PARAGRAPHS = 4, 9


@dataclass(frozen=True)
class Role:
    """The function of one paragraph in a text, by any of its forms; it is there with probability `chance`."""

    forms: Forms
    chance: float = 1.0


@dataclass(frozen=True)
class Draft:
    title: str
    abstract: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One report of a story: forms of title, abstract and first paragraph, then roles.

    `then` comes in order, `loose` shuffled and in part, `close` last. `after` is the gap from the stage before, in
    days. `covered` is the probability that a second paper writes it too, `chance` that it is printed at all. `when`
    says for which facts the stage happens (a trial ends in one verdict).
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
    when: Expression | None = None
    rhythm: Rhythm | None = None

    @property
    def forms(self) -> tuple[Forms, ...]:
        """Return everything the stage may say, a tuple for each place in the text."""
        roles = (role.forms for role in (*self.then, *self.loose, *self.close))
        return (self.titles, self.abstracts, self.leads, *roles)

    def happens(self, facts: Any) -> bool:
        return self.when is None or bool(self.when.of(facts))

    def draft(self, writer: Writer, rng: Random) -> Draft:
        """Return a text of four to nine paragraphs; a role none of whose forms has all its facts is left out.

        Of the loose roles, those about the same people follow each other.
        """
        writer.start(introduces=False)
        title = writer.write(self.titles).rstrip(".")
        writer.start(introduces=True)
        abstract = writer.write(self.abstracts)
        writer.start(introduces=True)
        paragraphs = [writer.write(self.leads), *_written(self.then, writer, rng)]
        least = max(0, FEWEST_PARAGRAPHS - len(paragraphs) - len(self.close))
        most = min(len(self.loose), MOST_PARAGRAPHS - len(paragraphs) - len(self.close))
        wanted = rng.randint(min(max(least, most - 1), most), most)
        chosen = sorted(self.loose, key=lambda role: rng.random() * (1 + writer.wear(role.forms)))
        about = {id(role): writer.people(role.forms) for role in chosen}
        before = writer.people(self.then[-1].forms if self.then else self.leads)
        while chosen and wanted > 0:
            role = max(chosen[: wanted + 1], key=lambda role: len(before & about[id(role)]))
            chosen.remove(role)
            added = _written((role,), writer, rng)
            paragraphs += added
            wanted -= len(added)
            before = about[id(role)] if added else before
        return Draft(title, abstract, (*paragraphs, *_written(self.close, writer, rng)))


def _written(roles: Sequence[Role], writer: Writer, rng: Random) -> list[str]:
    texts = []
    for role in roles:
        if rng.random() < role.chance:
            with suppress(MissingFactError):
                texts.append(writer.write(role.forms))
    return texts


@dataclass(frozen=True)
class StoryKind:
    """A kind of story: `facts` draws what happened, `stages` report it; one stage makes a single report.

    Facts with an attribute `times`, one datetime per stage, are reported at these times; others follow the rhythm.
    """

    topic: str
    facts: FactList
    stages: tuple[Stage, ...]
    share: float
    rhythm: Rhythm

    @property
    def span(self) -> timedelta:
        """Return about how long a story of the kind runs."""
        return timedelta(days=sum(sum(stage.after) / 2 for stage in self.stages[1:]))


@dataclass(frozen=True)
class Section:
    """A part of the paper; `share` is how much it prints relative to the others."""

    name: str
    kinds: tuple[StoryKind, ...] = field(repr=False)
    share: float = 1.0

"""The papers of the invented world, and which of them prints what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from newsroom.tables import document, row


@dataclass(frozen=True)
class Publisher:
    """A paper with its domain; `sections` are those it is strong in, none for a general paper."""

    name: str
    domain: str
    weight: int
    sections: tuple[str, ...] = ()


@cache
def publishers() -> tuple[Publisher, ...]:
    """Return the papers in data/publishers.toml; the first is the agency that others reprint."""
    found = document("publishers.toml")["publishers"]
    return tuple(row(Publisher, one, "publishers.toml", f"publishers[{at}]") for at, one in enumerate(found))


def agency() -> Publisher:
    return publishers()[0]


def publisher_for(section: str, rng: Random, other_than: frozenset[str] = frozenset()) -> Publisher:
    """Return a paper that prints the section: any general one, or one strong in it; none named in `other_than`."""
    able = [
        paper
        for paper in publishers()
        if (not paper.sections or section in paper.sections) and paper.name not in other_than
    ]
    return rng.choices(able, [paper.weight for paper in able])[0]

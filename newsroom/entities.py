"""The people, places, companies, clubs and works of a story, from its facts.

They are the ground truth for measures of similarity: what two articles really have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from newsroom.companies import Sector
from newsroom.facts import Facts
from newsroom.people import Person
from newsroom.story import Draft
from newsroom.world import Country

MOST_WORDS = 5
DEEPEST = 2
"""How many levels of a fact's own facts are searched: a match has clubs, and a club has players."""
_NAME = re.compile(r"[^\W\d_a-zß-ÿ][^.!?,;:“”]*")


def names_of(facts: Facts) -> frozenset[str]:
    """Return the names in the facts: of a person the full and the family name; countries are too common to count."""
    return frozenset(name for value in vars(facts).values() for name in _names(value, DEEPEST))


def printed(names: frozenset[str], draft: Draft) -> frozenset[str]:
    """Return the names that appear in title or abstract."""
    text = f"{draft.title} {draft.abstract}"
    return frozenset(name for name in names if name in text and re.search(rf"\b{re.escape(name)}\b", text))


def _names(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if _NAME.fullmatch(value) and len(value.split()) <= MOST_WORDS:
            yield value
    elif isinstance(value, Person):
        yield value.name
        yield value.family
    elif isinstance(value, Country | Sector) or depth < 0:
        return
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _names(each, depth)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _names(each, depth)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _names(getattr(value, field.name), depth - 1)

"""Agreement of people with their descriptions: a widow is a woman, and the pronouns must match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from newsroom.facts import Facts
from newsroom.forms import FormNode, Slot, Wordings, parsed
from newsroom.people import Person
from newsroom.story import StoryKind
from newsroom.world import World

Described = tuple[str, "str | tuple[str, ...]"]
"""The fact that holds a person, and the words that describe them or the path of the fact that has these words."""

_WOMEN = re.compile(
    r"(?:woman|women|mother|grandmother|sister|daughter|granddaughter|aunt|niece|wife|widow|bride|girl|schoolgirl|lady"
    r"|seamstress|waitress|actress|hostess|chambermaid|maid|midwife|nun|abbess|queen|princess|countess|duchess|heiress"
    r"|landlady|headmistress|stewardess|soprano|mezzo|alto)$"
)
_MEN = re.compile(
    r"(?:(?<!wo)(?<!hu)man|\bmen|(?<!grand)father|grandfather|brother|brother-in-law|\bson|grandson|uncle|nephew|husband"
    r"|widower|bridegroom|\bboy|schoolboy|monk|abbot|bishop|imam|\bking|\bprince|landlord|headmaster|steward|waiter|tenor"
    r"|baritone|bass)$"
)
_HEAD_ENDS = re.compile(r"\s(?:who|whose|of|with|in|at|on|that|from|for|aged|by|to|and|behind|near|up)\b")
_CALLED = re.compile(r"(?:,| is| was| had been)(?: an?| the| one| who is an?)?")
_HERS, _HIS = re.compile(r"\b(?:she|her|herself)\b"), re.compile(r"\b(?:he|his|him|himself)\b")


def woman(description: str) -> bool | None:
    """Return whether a description such as 'a retired seamstress of 61' fits only a woman (True) or only a man
    (False).
    """
    clause = re.split(r"[,.;:]", description)[0]
    head = _HEAD_ENDS.split(" " + clause.removeprefix("who is "))[0].rstrip()
    if _WOMEN.search(head):
        return True
    if _MEN.search(head):
        return False
    if clause.startswith("whose") or _WOMEN.search(clause):
        return None
    hers, his = bool(_HERS.search(clause)), bool(_HIS.search(clause))
    return hers if hers != his else None


def descriptions(kind: StoryKind) -> list[Described]:
    """Return who is described by what in the forms: '{guest.name}, {m.who}' gives ('guest', ('m', 'who'))."""
    found: set[Described] = set()
    for stage in kind.stages:
        for forms in stage.forms:
            for form in forms:
                found.update(_described(parsed(form)))
    return sorted(found, key=str)


def _described(nodes: tuple[FormNode, ...]) -> Iterator[Described]:
    for node in nodes:
        if isinstance(node, Wordings):
            for wording in node.wordings:
                yield from _described(wording)
    for (person, link), following in zip(pairwise(nodes), (*nodes[2:], ""), strict=False):
        if not (isinstance(person, Slot) and person.path[1:] in (("name",), ("last",)) and isinstance(link, str)):
            continue
        if _CALLED.fullmatch(link.rstrip()):
            for path in _openings(following):
                yield person.path[0], path
        elif link.startswith(","):
            yield person.path[0], link[1:].strip()


def _openings(node: FormNode) -> Iterable[str | tuple[str, ...]]:
    if isinstance(node, Slot):
        return [node.path]
    if isinstance(node, Wordings):
        return [path for wording in node.wordings if wording for path in _openings(wording[0])]
    return [node.strip()]


def agreed(facts: Facts, described: Iterable[Described], world: World) -> Facts:
    """Return the facts with each person renamed to the gender that their role or description implies."""
    people = {name: value for name, value in vars(facts).items() if isinstance(value, Person)}
    changed: dict[str, Person] = {}
    for holder, words in [*((name, person.role) for name, person in people.items()), *described]:
        person = people.get(holder)
        text = words if isinstance(words, str) else _text(facts, words)
        she = woman(text) if person is not None and text else None
        if person is not None and she is not None and she != person.she and holder not in changed:
            other = world.renamed(person, she=she)
            changed |= {name: other for name, one in people.items() if one is person}
    return Facts(vars(facts) | changed) if changed else facts


def _text(facts: object, path: tuple[str, ...]) -> str | None:
    value: object = facts
    for attribute in path:
        value = getattr(value, attribute, None)
    return value if isinstance(value, str) else None

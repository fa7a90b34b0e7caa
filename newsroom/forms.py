"""Forms: sentences with slots and alternatives, parsed once.

A form is plain English with two marks. ``{club.coach.last}`` is a slot: attributes of the facts, formatted by
house style, optionally through a filter as in ``{seats:count seat}``. ``[held|kept|]`` is one of several
wordings, nested as deep as needed. A wording whose slot is None is never chosen, so optional facts need no code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

_MARK = re.compile(r"[{}\[\]|]")
_AFTER_FIGURE = re.compile(r"%|\d|,\d")


@dataclass(frozen=True, slots=True)
class Slot:
    path: tuple[str, ...]
    filter: str
    argument: str


@dataclass(frozen=True, slots=True)
class Wordings:
    wordings: tuple[tuple[FormNode, ...], ...]


FormNode = str | Slot | Wordings
Forms = tuple[str, ...]


@cache
def parsed(form: str) -> tuple[FormNode, ...]:
    """Return the nodes of a form; raises ValueError naming the form for an unbalanced bracket or brace."""
    nodes, at = _sequence(form, 0, closing="")
    if at != len(form):
        raise ValueError(f"unbalanced bracket at character {at} of form {form!r}")
    return nodes


def _sequence(form: str, at: int, closing: str) -> tuple[tuple[FormNode, ...], int]:
    """Return the nodes from `at` to one of the closing signs or the end, and where that is."""
    nodes: list[FormNode] = []
    plain = ""
    while True:
        mark = _MARK.search(form, at)
        end = mark.start() if mark else len(form)
        plain += form[at:end]
        at = end
        sign = mark[0] if mark else ""
        if sign == "|" and "|" not in closing:
            plain, at = plain + sign, at + 1
            continue
        if plain:
            nodes.append(plain)
            plain = ""
        if not sign or sign in closing:
            break
        node, at = _slot(form, at) if sign == "{" else _choice(form, at)
        nodes.append(node)
    for index, (one, following) in enumerate(pairwise(nodes)):
        if isinstance(one, Slot) and not one.filter and isinstance(following, str) and _AFTER_FIGURE.match(following):
            nodes[index] = Slot(one.path, "fig", "")
    return tuple(nodes), at


def _slot(form: str, at: int) -> tuple[Slot, int]:
    end = form.find("}", at)
    if end < 0:
        raise ValueError(f"slot without end at character {at} of form {form!r}")
    path, _, rest = form[at + 1 : end].partition(":")
    name, _, argument = rest.partition(" ")
    return Slot(tuple(path.split(".")), name, argument), end + 1


def _choice(form: str, at: int) -> tuple[Wordings, int]:
    if form[at] != "[":
        raise ValueError(f"stray {form[at]!r} at character {at} of form {form!r}")
    wordings: list[tuple[FormNode, ...]] = []
    while True:
        wording, at = _sequence(form, at + 1, closing="|]")
        wordings.append(wording)
        if at >= len(form):
            raise ValueError(f"bracket without end in form {form!r}")
        if form[at] == "]":
            return Wordings(tuple(wordings)), at + 1


@cache
def heads_of(forms: Forms) -> frozenset[str]:
    """Return the facts with which the slots of the forms start."""
    return frozenset(head for form in forms for head in re.findall(r"\{(\w+)", form))

"""The verbs with which lists of facts draw: chance and the world by the scene, and a few plain functions.

Each is called with the scene first. Sections add verbs of their own in newsroom/sections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from newsroom import style
from newsroom.expressions import Verb
from newsroom.people import Person
from newsroom.places import Currency
from newsroom.scene import Scene
from newsroom.schedule import moment_on, rhythms
from newsroom.world import Country, Money, rounded


def _amount(_: Scene, value: float, currency: Currency = Currency()) -> Money:
    return Money(float(value), currency)


def _times(_: Scene, money: Money, factor: float) -> Money:
    return money.times(factor)


def _office(_: Scene, country: Country, office: str) -> Person:
    return country.minister(office)


def _called(_: Scene, person: Person, role: str) -> Person:
    """Return the person, introduced by another role."""
    return replace(person, role=role)


def _others(_: Scene, pool: Sequence[Any], one: object) -> list[Any]:
    return [other for other in pool if other is not one]


def _where(_: Scene, pool: Sequence[Any], path: str, value: object) -> list[Any]:
    """Return those of the pool whose attribute has the value."""
    return [one for one in pool if attrgetter(path)(one) == value]


def _where_not(_: Scene, pool: Sequence[Any], path: str, value: object) -> list[Any]:
    return [one for one in pool if attrgetter(path)(one) != value]


def _where_in(_: Scene, pool: Sequence[Any], path: str, values: Sequence[object]) -> list[Any]:
    return [one for one in pool if attrgetter(path)(one) in values]


def _above(_: Scene, pool: Sequence[Any], path: str, value: float) -> list[Any]:
    return [one for one in pool if attrgetter(path)(one) > value]


def _at_least(_: Scene, pool: Sequence[Any], path: str, value: float) -> list[Any]:
    return [one for one in pool if attrgetter(path)(one) >= value]


def _first(_: Scene, pool: Sequence[Any]) -> Any:
    return pool[0]


def _find(_: Scene, table: Mapping[Any, Any], key: object, otherwise: object = None) -> Any:
    """Return a table's entry for the key; `otherwise` if it has none."""
    return table.get(key, otherwise)


def _starts(_: Scene, text: str, beginning: str | tuple[str, ...]) -> bool:
    return text.startswith(beginning)


def _words(_: Scene, text: str) -> list[str]:
    return text.split()


def _swap(_: Scene, text: str, old: str, new: str) -> str:
    """Return the text with one part replaced by another."""
    return text.replace(old, new)


def _combined(_: Scene, firsts: Sequence[str], seconds: Sequence[str], between: str = "") -> list[str]:
    """Return every first half with every second half."""
    return [f"{first}{between}{second}" for first in firsts for second in seconds]


def _days(_: Scene, count: float) -> timedelta:
    return timedelta(days=count)


def _minutes(_: Scene, count: int) -> timedelta:
    return timedelta(minutes=count)


def _moment(scene: Scene, day: datetime, rhythm: str) -> datetime:
    """Return a printing time on the day."""
    return moment_on(day, rhythms()[rhythm], scene.rng)


def _plain(function: Callable[..., Any]) -> Verb:
    """Return the function as a verb that ignores the scene."""
    return lambda _, *args: function(*args)


_BUILTINS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "float": float,
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "str": str,
}

VERBS: dict[str, Verb] = {
    **{
        verb: getattr(Scene, verb)
        for verb in (
            *("between", "chance", "country", "day", "deal", "fresh", "maybe", "money", "near"),
            *("once", "person", "pick", "sample", "tenth", "uniform"),
        )
    },
    **{verb: _plain(function) for verb, function in _BUILTINS.items()},
    "listed": _plain(style.listed),
    "number": _plain(style.number),
    "ordinal": _plain(style.ordinal),
    "plural": _plain(style.plural),
    "rounded": _plain(rounded),
    "when": lambda _, holds: "" if holds else None,
    "unless": lambda _, holds: None if holds else "",
    "above": _above,
    "amount": _amount,
    "at_least": _at_least,
    "called": _called,
    "combined": _combined,
    "days": _days,
    "find": _find,
    "first": _first,
    "minutes": _minutes,
    "moment": _moment,
    "office": _office,
    "others": _others,
    "starts": _starts,
    "swap": _swap,
    "times": _times,
    "where": _where,
    "where_in": _where_in,
    "where_not": _where_not,
    "words": _words,
}
"""Verbs by name. `when` and `unless` give the empty fact that opens a wording, or None, which closes it."""

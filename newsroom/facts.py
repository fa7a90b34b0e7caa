"""The facts of a story: drawn once, one after the other, and used by every form about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from newsroom.expressions import Expression, ExpressionError, Verb
from newsroom.scene import Scene

GIVEN = ("countries", "companies", "start", "now", "dollar")
"""What every list of facts may use before it has drawn anything."""
SPREAD = "*"


class Facts:
    """What happened in one story; its attributes are the facts, and they don't change."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"facts don't change; {name!r} can't be set")


@dataclass(frozen=True)
class Fact:
    """One line of a list: the names its value gets (several are unpacked) and how to draw it.

    A tuple is a choice of one. The name `*` spreads the fields of a dataclass that a section draws in Python.
    """

    names: tuple[str, ...]
    drawn: Expression | tuple[str, ...]


def _named(fact: Fact) -> Sequence[str]:
    """Return the names a line defines; for a spread these are the fields of its verb's return type."""
    if fact.names != (SPREAD,):
        return fact.names
    verb = fact.drawn.verb if isinstance(fact.drawn, Expression) else None
    spread = get_type_hints(verb).get("return") if verb else None
    if not is_dataclass(spread):
        raise ExpressionError(f"{SPREAD!r} needs a verb that returns a dataclass")
    return [field.name for field in fields(spread)]


class _Scope(dict[str, Any]):
    """The tables and the facts so far; values from the scene are looked up when first used."""

    def __init__(self, scene: Scene, tables: Mapping[str, Any]) -> None:
        super().__init__(tables)
        self._scene = scene

    def __missing__(self, name: str) -> object:
        return self._scene.given(name)


class FactList:
    """The facts of a kind of story, in the order in which they are drawn; `tables` is what they choose from.

    Raises ExpressionError if a fact uses something that is neither drawn before it nor in a table.
    """

    def __init__(self, facts: Sequence[Fact], tables: Mapping[str, Any]) -> None:
        self._facts = tuple(facts)
        self._tables = dict(tables)
        known = {*GIVEN, *tables}
        for fact in self._facts:
            if isinstance(fact.drawn, Expression) and (unknown := fact.drawn.names - known):
                raise ExpressionError(f"{', '.join(fact.names)}: no fact or table {sorted(unknown)[0]!r} before it")
            known.update(_named(fact))
        self.names = frozenset(name for fact in self._facts for name in _named(fact) if not name.startswith("_"))

    def drawn(self, scene: Scene) -> Facts:
        """Draw every fact; those whose names start with an underscore are used for drawing only."""
        scope = _Scope(scene, self._tables)
        values: dict[str, Any] = {}
        for fact in self._facts:
            drawn = fact.drawn
            value: Any = drawn.evaluated(scope, scene) if isinstance(drawn, Expression) else scene.pick(drawn)
            if fact.names == (SPREAD,):
                found = {field.name: getattr(value, field.name) for field in fields(value)}
            elif len(fact.names) == 1:
                found = {fact.names[0]: value}
            else:
                found = dict(zip(fact.names, value, strict=True))
            scope.update(found)
            values |= found
        return Facts({name: value for name, value in values.items() if not name.startswith("_")})


def checked(name: str, source: str, verbs: Mapping[str, Verb]) -> Fact:
    """Return the fact of one line of a data file; raises ExpressionError for an invalid name or expression."""
    names = tuple(part.strip() for part in name.split(","))
    if names != (SPREAD,) and not all(part.isidentifier() for part in names):
        raise ExpressionError(f"{name!r} is neither a name nor a list of names with commas")
    return Fact(names, Expression(source, verbs))

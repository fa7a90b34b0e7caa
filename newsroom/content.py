"""Reads the newspaper's sections from their data files: newsroom/data/sections.toml and a folder for each.

Everything is read when first needed, and cached. Errors name the file, the key and the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from newsroom.expressions import Expression, ExpressionError
from newsroom.facts import Fact, FactList, checked
from newsroom.forms import heads_of, parsed
from newsroom.schedule import rhythms
from newsroom.sections import verbs_of
from newsroom.story import Role, Section, Stage, StoryKind
from newsroom.tables import DataError, document, row, shared, tables
from newsroom.verbs import VERBS

_KIND_KEYS = {"topic", "share", "rhythm", "facts", "tables", "optional", "stages"}
_ROLES = ("then", "loose", "close")
_LONGEST_GAP_DAYS = 60
_TOPIC_WORDS = 3


@dataclass(frozen=True)
class SectionRow:
    """A section in sections.toml: its files in order, and how much it prints relative to the others."""

    name: str
    share: float
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class StageRow:
    """The settings of a stage in a data file."""

    titles: tuple[str, ...]
    abstracts: tuple[str, ...]
    leads: tuple[str, ...]
    after: tuple[float, float] = (1.0, 2.0)
    weight: float = 0.4
    covered: float = 0.12
    chance: float = 1.0
    when: str = ""
    rhythm: str = ""


@dataclass(frozen=True)
class RoleRow:
    forms: tuple[str, ...]
    chance: float = 1.0


@cache
def sections() -> tuple[Section, ...]:
    """Return all sections, in the order of the file."""
    found = document("sections.toml")["sections"]
    rows = [row(SectionRow, one, "sections.toml", f"sections[{at}]") for at, one in enumerate(found)]
    return tuple(Section(one.name, tuple(kind(one.name, file) for file in one.kinds), one.share) for one in rows)


@cache
def kind(section: str, name: str) -> StoryKind:
    """Return one kind of story, from newsroom/data/<section>/<name>.toml."""
    file = f"{section}/{name}.toml"
    given = document(file)
    if unknown := given.keys() - _KIND_KEYS:
        raise DataError(file, sorted(unknown)[0], f"is unknown; there are {', '.join(sorted(_KIND_KEYS))}")
    topic = given.get("topic", "")
    if not 1 <= len(topic.split()) <= _TOPIC_WORDS:
        raise DataError(file, "topic", f"must have one to {_TOPIC_WORDS} words, is {topic!r}")
    share = _bounded(given.get("share", 1.0), 0.01, 10, file, "share")
    facts = _facts(given.get("facts", {}), section, file)
    stages = tuple(_stage(one, file, f"stages[{at}]") for at, one in enumerate(given.get("stages", ())))
    if not stages:
        raise DataError(file, "stages", "must have at least one stage")
    made = StoryKind(topic, facts, stages, share, _rhythm(given.get("rhythm", "round"), file, "rhythm"))
    _only_known(made, file)
    return made


def _facts(given: Mapping[str, Any], section: str, file: str) -> FactList:
    verbs = VERBS | verbs_of(section)
    facts = []
    for name, drawn in given.items():
        try:
            if isinstance(drawn, str):
                facts.append(checked(name, drawn, verbs))
            elif isinstance(drawn, list) and drawn and all(isinstance(one, str) for one in drawn):
                facts.append(Fact((name,), tuple(drawn)))
            else:
                raise DataError(file, f"facts.{name}", "must be an expression, or texts of which one is chosen")
        except ExpressionError as error:
            raise DataError(file, f"facts.{name}", str(error)) from error
    try:
        return FactList(facts, vars(shared(section)) | tables(file))
    except ExpressionError as error:
        raise DataError(file, "facts", str(error)) from error


def _stage(given: Mapping[str, Any], file: str, key: str) -> Stage:
    plain = row(StageRow, {name: one for name, one in given.items() if name not in _ROLES}, file, key)
    roles = {name: _roles(given.get(name, ()), file, f"{key}.{name}") for name in _ROLES}
    for name in ("weight", "covered", "chance"):
        _bounded(getattr(plain, name), 0, 1, file, f"{key}.{name}")
    if not 0 <= plain.after[0] <= plain.after[1] <= _LONGEST_GAP_DAYS:
        raise DataError(file, f"{key}.after", f"must be two rising numbers of days from 0 to {_LONGEST_GAP_DAYS}")
    try:
        when = Expression(plain.when) if plain.when else None
    except ExpressionError as error:
        raise DataError(file, f"{key}.when", str(error)) from error
    stage = Stage(
        titles=plain.titles,
        abstracts=plain.abstracts,
        leads=plain.leads,
        **roles,
        after=plain.after,
        weight=plain.weight,
        covered=plain.covered,
        chance=plain.chance,
        when=when,
        rhythm=_rhythm(plain.rhythm, file, f"{key}.rhythm") if plain.rhythm else None,
    )
    for forms in stage.forms:
        for form in forms:
            _well_formed(form, file, key)
    return stage


def _roles(given: Any, file: str, key: str) -> tuple[Role, ...]:
    rows = [row(RoleRow, one, file, f"{key}[{at}]") for at, one in enumerate(given)]
    for at, one in enumerate(rows):
        _bounded(one.chance, 0, 1, file, f"{key}[{at}].chance")
    return tuple(Role(one.forms, one.chance) for one in rows)


def _well_formed(form: str, file: str, key: str) -> None:
    try:
        parsed(form)
    except ValueError as error:
        raise DataError(file, key, str(error)) from error


def _bounded(value: Any, low: float, high: float, file: str, key: str) -> float:
    if not isinstance(value, (int, float)) or not low <= value <= high:
        raise DataError(file, key, f"must be from {low} to {high}, is {value!r}")
    return float(value)


def _rhythm(name: str, file: str, key: str) -> Any:
    if name not in rhythms():
        raise DataError(file, key, f"must be one of {', '.join(rhythms())}, is {name!r}")
    return rhythms()[name]


def _only_known(made: StoryKind, file: str) -> None:
    """Refuse forms and conditions that use a fact which is not drawn."""
    known = {*made.facts.names, *(f"t{at}" for at in range(len(made.stages))), "on", "today"}
    for at, stage in enumerate(made.stages):
        named = set(stage.when.names) if stage.when else set()
        for forms in stage.forms:
            named |= heads_of(forms)
        if unknown := sorted(named - known):
            raise DataError(file, f"stages[{at}]", f"names {unknown[0]!r}, which is not a fact of the story")

"""Reads data files: typed rows, checked against what is expected, with errors that name file, key and limit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

DATA = Path(__file__).parent / "data"
T = TypeVar("T")


class DataError(ValueError):
    """A data file that breaks its schema; says in which file, at which key, and what is allowed there."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"newsroom/data/{file}, {key}: {problem}")
        self.file, self.key = file, key


@cache
def document(file: str) -> dict[str, Any]:
    """Return a file below newsroom/data, as TOML gives it; read once."""
    try:
        with (DATA / file).open("rb") as source:
            return tomllib.load(source)
    except tomllib.TOMLDecodeError as error:
        raise DataError(file, "the file", f"is not TOML: {error}") from error


_HINTS: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls)
    return _HINTS[cls]


def row(cls: type[T], given: Mapping[str, Any], file: str, key: str) -> T:
    """Return the row as a dataclass whose annotations are its schema: no extra key, none missing, all of their type."""
    hints = _hints(cls)
    expected = {field.name: field for field in fields(cls) if field.init}  # type: ignore[arg-type]
    if unknown := given.keys() - expected.keys():
        raise DataError(file, f"{key}.{sorted(unknown)[0]}", f"is unknown; there are {', '.join(expected)}")
    values: dict[str, Any] = {}
    for name, field in expected.items():
        if name in given:
            values[name] = _typed(given[name], hints[name], file, f"{key}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise DataError(file, f"{key}.{name}", "is missing")
    return cls(**values)


def _typed(value: Any, hint: Any, file: str, key: str) -> Any:
    if get_origin(hint) in (UnionType, Union):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if not isinstance(value, list) or not value:
            raise DataError(file, key, "must be a list with something in it")
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise DataError(file, key, f"must have {len(inner)} values, has {len(value)}")
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        pairs = enumerate(zip(value, kinds, strict=True))
        return tuple(_typed(one, kind, file, f"{key}[{at}]") for at, (one, kind) in pairs)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise DataError(file, key, f"must be of type {hint.__name__}, is {value!r:.60}")
    return value


@cache
def shared(section: str) -> SimpleNamespace:
    """Return the tables that several of a section's kinds of story use, or its Python; empty if it has none."""
    file = f"{section}/shared.toml"
    return SimpleNamespace(**(tables(file) if (DATA / file).is_file() else {}))


def tables(file: str) -> dict[str, Any]:
    """Return the tables of a file: lists as tuples, arrays of tables as tuples of rows, maps as they are.

    All rows of a table have the same columns with values of one type. Columns that may be missing are listed under
    `optional`, and are None where they are missing.
    """
    given = document(file)
    optional = given.get("optional", {})
    return {name: _table(name, one, optional.get(name, []), file) for name, one in given.get("tables", {}).items()}


def _table(name: str, value: Any, optional: Sequence[str], file: str) -> Any:
    key = f"tables.{name}"
    if isinstance(value, Mapping):
        return {name: _tuples(one) for name, one in value.items()}
    if not isinstance(value, list) or not value:
        raise DataError(file, key, "must be a list, rows or a map with something in it")
    if isinstance(value[0], dict):
        return _rows(value, optional, file, key)
    kinds = {type(one) for one in value}
    if len(kinds) > 1:
        raise DataError(file, key, f"must have values of one type, has {sorted(kind.__name__ for kind in kinds)}")
    return _tuples(value)


class TableRow:
    """One row of a table in a data file: its columns are fixed attributes; it equals only itself."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"rows don't change; {name!r} can't be set")


def _rows(value: Sequence[Mapping[str, Any]], optional: Sequence[str], file: str, key: str) -> tuple[TableRow, ...]:
    columns = {column: type(cell) for one in value for column, cell in one.items()}
    rows = []
    for at, one in enumerate(value, start=1):
        for column, kind in columns.items():
            if column not in one and column not in optional:
                raise DataError(file, f"{key}, row {at}", f"has no {column!r}, which other rows have")
            if column in one and type(one[column]) is not kind:
                problem = f"must be of type {kind.__name__}, is {one[column]!r:.60}"
                raise DataError(file, f"{key}, row {at}, {column}", problem)
        rows.append(TableRow({column: _tuples(one.get(column)) for column in columns}))
    return tuple(rows)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value

"""Where settings come from, on the device and on the server: the environment, and one table of `ownfeed.toml`.

The file is the one in the working directory, or the one that OWNFEED_CONFIG names. A setting that was renamed is still
read by its old name from either, with one line on standard error that says the new one; the new name wins.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, EnvSettingsSource, InitSettingsSource, PydanticBaseSettingsSource

CONFIG_VARIABLE = "OWNFEED_CONFIG"
CONFIG_FILE = "ownfeed.toml"
NESTED = "__"
"""Between the parts of a nested setting's name in the environment."""

Renames = Mapping[tuple[str, ...], str]
"""The new name of a setting by its old one's whole path: ("performance", "front_limit") -> "default_list_limit"."""


class SettingsFileRefused(ValueError):
    """The file is missing, is no TOML, or has no table where one must be. The message names the file.

    named: what the user has to look at: the variable, the file, or the table.
    """

    def __init__(self, why: str, named: str) -> None:
        super().__init__(why)
        self.named = named


def sources(
    kind: type[BaseSettings],
    given: PydanticBaseSettingsSource,
    environment: PydanticBaseSettingsSource,
    *,
    table: str,
    renames: Renames,
) -> tuple[PydanticBaseSettingsSource, ...]:
    """Arguments, then the environment, then the file's table. Raises SettingsFileRefused."""
    if not isinstance(environment, EnvSettingsSource):
        raise TypeError(f"environment is a {type(environment).__name__}, which keeps no variables")
    environment.env_vars = renamed_variables(environment.env_vars, str(kind.model_config.get("env_prefix")), renames)
    return given, environment, InitSettingsSource(kind, renamed_table(table_of_file(table), table, renames))


def table_of_file(table: str) -> dict[str, Any]:
    """A table of the file; empty if the file or the table is missing. Raises SettingsFileRefused."""
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named or CONFIG_FILE)
    if not path.is_file():
        if named:
            raise SettingsFileRefused(f"{CONFIG_VARIABLE} names {path}, which is no file", CONFIG_VARIABLE)
        return {}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get(table, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise SettingsFileRefused(f"{path} is not TOML: {broken}", str(path)) from broken
    if not isinstance(found, dict):
        raise SettingsFileRefused(f"{path}: {table} must be a table", table)
    return found


def renamed_variables(variables: Mapping[str, str | None], prefix: str, renames: Renames) -> dict[str, str | None]:
    """The variables, as lower-case as `EnvSettingsSource` has them, with new names in the place of old ones."""
    found = dict(variables)
    for old, name in renames.items():
        was = (prefix + NESTED.join(old)).lower()
        now = (prefix + NESTED.join((*old[:-1], name))).lower()
        if was in found:
            value = found.pop(was)
            found.setdefault(now, value)
            _tell(was.upper(), now.upper())
    return found


def renamed_table(content: Mapping[str, Any], table: str, renames: Renames) -> dict[str, Any]:
    """The table's content with new names in the place of old ones."""
    found = dict(content)
    for old, name in renames.items():
        inner, places = found, old[:-1]
        for place in places:
            below = inner.get(place)
            if not isinstance(below, dict):
                break
            inner[place] = inner = dict(below)
        else:
            if old[-1] in inner:
                value = inner.pop(old[-1])
                inner.setdefault(name, value)
                where = ".".join((table, *places))
                _tell(f"{old[-1]} in [{where}]", name)
    return found


def _tell(old: str, new: str) -> None:
    sys.stderr.write(f"ownfeed: the setting {old} is called {new} now.\n")

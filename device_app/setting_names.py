"""Names of settings that nobody reads: tables of `ownfeed.toml` and variables OWNFEED_*, refused with what was
probably meant.

A misspelt name would leave its setting at the default without a word, a reader's ceiling among them. Names inside of a
table are the settings classes' own to refuse (`extra="forbid"`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel
from pydantic_settings import BaseSettings

PREFIX = "OWNFEED_"
NESTED = "__"
"""Between the parts of a nested setting's name in the environment."""
TABLES = {"device": "OWNFEED_DEVICE_", "backend": "OWNFEED_BACKEND_"}
"""Of the file, and what the same settings begin with in the environment: device and backend read one file."""
OTHER_VARIABLES = frozenset(
    {
        "OWNFEED_CONFIG",  # the file of settings
        "OWNFEED_DATA",  # the research data's folder
        "OWNFEED_BENCH_VECTORS",
        "OWNFEED_FLOWER_PYTHON",
        "OWNFEED_CHROMIUM",  # this and the next: of the tests
        "OWNFEED_OPENAPI_EXAMPLES",
    }
)


class SettingUnknown(ValueError):
    """A name that nobody reads. The message names it, and a name that is read and looks like it."""

    def __init__(self, message: str, named: str) -> None:
        super().__init__(message)
        self.named = named


def check_tables(names: Iterable[str]) -> None:
    """Of the file's top level. Raises SettingUnknown."""
    for name in names:
        if name not in TABLES:
            raise SettingUnknown(
                f"{name} is no table of settings{meant(name, TABLES)}; settings stand below "
                f"{' or '.join(f'[{table}]' for table in TABLES)}",
                name,
            )


def check_variables(kind: type[BaseSettings], variables: Mapping[str, str | None]) -> None:
    """Of the environment, in lower case. Raises SettingUnknown.

    Names of the other program's settings are only known by their beginning: it refuses them itself.
    """
    prefix = str(kind.model_config.get("env_prefix"))
    known = {name.upper(): nested for name, nested in variables_of(kind, prefix)}
    others = tuple(other for other in TABLES.values() if other != prefix)
    for variable in sorted(name.upper() for name in variables if name.upper().startswith(PREFIX)):
        if variable in OTHER_VARIABLES or variable in known or variable.startswith(others):
            continue
        above, _, below = variable.rpartition(NESTED)
        if below and known.get(above):
            continue  # a name in a table of the settings, which the class refuses as it does one of the file
        alike = {*known, *OTHER_VARIABLES}
        if not variable.startswith(prefix):
            _, _, rest = variable.removeprefix(PREFIX).partition("_")
            alike |= {other + rest for other in others}
        raise SettingUnknown(f"the variable {variable} is no setting{meant(variable, alike)}", variable)


def variables_of(kind: type[BaseModel], prefix: str) -> Iterator[tuple[str, bool]]:
    """Every setting's variable, and whether it is a table of settings."""
    for name, field in kind.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield prefix + name, True
            yield from variables_of(inner, prefix + name + NESTED)
        else:
            yield prefix + name, False


def meant(name: str, known: Iterable[str]) -> str:
    """', perhaps X is meant' for the most similar name, or nothing."""
    found = get_close_matches(name, sorted(known), n=1)
    return f", perhaps {found[0]} is meant" if found else ""

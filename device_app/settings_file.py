"""Where settings come from, on the device and on the server: the environment, one table of `ownfeed.toml`, and what
`as_printed` stands for.

The file is the one in the working directory, or the one that OWNFEED_CONFIG names; it is read only where nobody else
could have written it (`trusted_file`), and one line on standard error names it. A name that nobody reads is refused
(`setting_names`), but for what Kubernetes puts there (`service_links`). A setting that was renamed is still read by its
old name from either, with one line on standard error that says the new one; the new name wins.
"""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, InitSettingsSource, PydanticBaseSettingsSource

from device_app.service_links import service_links
from device_app.setting_names import NESTED, SettingUnknown, check_tables, check_variables, variables_of
from device_app.trusted_file import FileNotTrusted, read_trusted

CONFIG_VARIABLE = "OWNFEED_CONFIG"
CONFIG_FILE = "ownfeed.toml"
SECRETS = ("password", "passwd", "token", "secret")
"""Names, and ends of names, of what nobody else should read."""

Renames = Mapping[tuple[str, ...], str]
"""The new name of a setting by its old one's whole path: ("performance", "front_limit") -> "default_list_limit"."""


class SettingsFileRefused(ValueError):
    """The file is missing, could be somebody else's, is no TOML, or has a name that is no setting's; or the environment
    has one. The message names the file or the variable.

    named: what the user has to look at: the variable, the file, or the table.
    """

    def __init__(self, why: str, named: str) -> None:
        super().__init__(why)
        self.named = named


class FileSettings(BaseSettings):
    """Settings of one table of the file.

    table: its name. renames: of its settings. refusal: the error to raise for what can't be read.
    """

    table: ClassVar[str]
    renames: ClassVar[Renames] = {}

    as_printed: Literal["uni_fedrec"] | None = Field(
        default=None,
        description="A paper whose own system is run, at its own figures and its honest price: the settings named in "
        "device_app/as_printed.toml have the values given there, unless they are set besides. Backend and devices "
        "need it both.",
    )

    @classmethod
    def refusal(cls, refused: SettingsFileRefused) -> Exception:
        """The package's own error for a file or a variable that is refused."""
        return refused

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, the file's table, and what `as_printed` stands for.

        Raises what `refusal` makes.
        """
        try:
            found = sources(settings_cls, init_settings, env_settings, table=cls.table, renames=cls.renames)
        except SettingsFileRefused as refused:
            raise cls.refusal(refused) from refused
        return tuple(Variables(each, cls.refusal) if isinstance(each, EnvSettingsSource) else each for each in found)


def sources(
    kind: type[BaseSettings],
    given: PydanticBaseSettingsSource,
    environment: PydanticBaseSettingsSource,
    *,
    table: str,
    renames: Renames,
) -> tuple[PydanticBaseSettingsSource, ...]:
    """Arguments, the environment, the file's table, and what `as_printed` stands for. Raises SettingsFileRefused."""
    if not isinstance(environment, EnvSettingsSource):
        raise TypeError(f"environment is a {type(environment).__name__}, which keeps no variables")
    prefix = str(kind.model_config.get("env_prefix"))
    found = without_service_links(environment.env_vars, {name.lower() for name, _ in variables_of(kind, prefix)})
    environment.env_vars = renamed_variables(found, prefix, renames)
    try:
        check_variables(kind, environment.env_vars)
    except SettingUnknown as unknown:
        raise SettingsFileRefused(str(unknown), unknown.named) from unknown
    file = InitSettingsSource(kind, renamed_table(table_of_file(table), table, renames))
    return given, environment, file, AsPrinted(kind, table)


class Variables(EnvSettingsSource):
    """The environment as `given` has it; a list or a table that is no JSON is refused by its variable's name."""

    def __init__(self, given: EnvSettingsSource, refusal: Callable[[SettingsFileRefused], Exception]) -> None:
        super().__init__(given.settings_cls)
        self.env_vars, self._refusal = given.env_vars, refusal

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """The value of such a variable. Raises what the settings' `refusal` makes."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError as broken:
            name = (self.env_prefix + field_name).upper()
            why = f'the variable {name} is no JSON ({broken}); a list is written as in \'["a", "b"]\''
            raise self._refusal(SettingsFileRefused(why, name)) from broken


class AsPrinted(InitSettingsSource):
    """The values that the setting `as_printed` stands for, under whatever is set besides."""

    def __init__(self, kind: type[BaseSettings], table: str) -> None:
        super().__init__(kind, {})
        self._table = table

    def __call__(self) -> dict[str, Any]:
        """Of all settings of this side; none where no paper is named, or one that the setting's own check refuses."""
        values: dict[str, Any] = papers().get(str(self.current_state.get("as_printed")), {}).get(self._table, {})
        return values


@cache
def papers() -> Mapping[str, Mapping[str, Any]]:
    """By paper and by table of settings, what `as_printed` stands for."""
    return tomllib.loads(resources.files("device_app").joinpath("as_printed.toml").read_text(encoding="utf-8"))


def table_of_file(table: str) -> dict[str, Any]:
    """A table of the file; empty if the file or the table is missing. Raises SettingsFileRefused."""
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named or CONFIG_FILE)
    if not _may_be_file(path):
        if named:
            raise SettingsFileRefused(f"{CONFIG_VARIABLE} names {path}, which is no file", CONFIG_VARIABLE)
        return {}
    try:
        read = read_trusted(path)
        tables = tomllib.loads(read.content.decode("utf-8"))
        check_tables(tables)
    except FileNotTrusted as refused:
        raise SettingsFileRefused(str(refused), str(path)) from refused
    except SettingUnknown as unknown:
        raise SettingsFileRefused(f"{path}: {unknown}", unknown.named) from unknown
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise SettingsFileRefused(f"{path} is not TOML: {broken}", str(path)) from broken
    found = tables.get(table, {})
    if not isinstance(found, dict):
        raise SettingsFileRefused(f"{path}: {table} must be a table", table)
    _say(f"settings are read from {path.absolute()}.")
    if read.read_by_others and (held := next(secrets_in(tables), None)):
        _say(f"warning: {held} in {path.absolute()} holds a secret, and others may read the file (chmod 600 {path}).")
    return found


def _may_be_file(path: Path) -> bool:
    """Whether it is a file, or can't be seen to be none: what is wrong is then said by who reads it."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def secrets_in(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Names of the settings that hold a password or a token: by their own name, or within an address."""
    for name, value in table.items():
        whole = above + name
        if isinstance(value, dict):
            yield from secrets_in(value, f"{whole}.")
        elif isinstance(value, str) and (name.lower().endswith(SECRETS) or _address_has_secret(value)):
            yield whole


def _address_has_secret(value: str) -> bool:
    """Whether user:password stands before the host, or a secret among an address's parameters."""
    try:
        address = urlsplit(value)
    except ValueError:
        return False
    parameters = parse_qsl(address.query)
    return bool(address.scheme and (address.password or any(name.lower().endswith(SECRETS) for name, _ in parameters)))


def without_service_links(variables: Mapping[str, str | None], settings: Set[str]) -> dict[str, str | None]:
    """The variables but for those of Kubernetes's services; one that bears the name of a setting is told."""
    links = service_links(variables)
    for link in sorted(links & settings):
        _say(f"the variable {link.upper()} is a link to a service of Kubernetes; it sets nothing here.")
    return {name: value for name, value in variables.items() if name not in links}


def renamed_variables(variables: Mapping[str, str | None], prefix: str, renames: Renames) -> dict[str, str | None]:
    """The variables, as lower-case as `EnvSettingsSource` has them, with new names in the place of old ones."""
    found = dict(variables)
    for old, name in renames.items():
        was = (prefix + NESTED.join(old)).lower()
        now = (prefix + NESTED.join((*old[:-1], name))).lower()
        if was in found:
            value = found.pop(was)
            found.setdefault(now, value)
            _say_new_name(was.upper(), now.upper())
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
                _say_new_name(f"{old[-1]} in [{where}]", name)
    return found


def _say_new_name(old: str, new: str) -> None:
    _say(f"the setting {old} is called {new} now.")


def _say(sentence: str) -> None:
    sys.stderr.write(f"ownfeed: {sentence}\n")

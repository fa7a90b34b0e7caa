"""Read settings from the environment, a table of `ownfeed.toml`, and `as_published`.

The file is the one in the working directory, or the one that OWNFEED_CONFIG names. It is read only if no other user can
write it; one line on standard error names it. An unknown name is refused with the nearest known one, so that a misspelt
setting doesn't silently stay at its default.
"""

import os
import re
import shlex
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

CONFIG_VARIABLE = "OWNFEED_CONFIG"
CONFIG_FILE = "ownfeed.toml"
PREFIX, NESTED = "OWNFEED_", "__"
"""Prefix of every variable, and separator between the parts of a nested setting's name."""
TABLES = {"device": "OWNFEED_DEVICE_", "backend": "OWNFEED_BACKEND_"}
"""Tables of the file, and the prefix of the same settings in the environment; device and backend read one file."""
OTHER_VARIABLES = frozenset(
    {
        "OWNFEED_CONFIG",  # the file of settings
        "OWNFEED_DATA",  # the research data's folder
        "OWNFEED_BENCH_VECTORS",
        "OWNFEED_FLOWER_PYTHON",
        "OWNFEED_CHROMIUM",  # this and the next: of the tests
        "OWNFEED_FEEDS",
        "OWNFEED_FEEDPARSER_TESTS",
        "OWNFEED_LONG_TESTS",
        "OWNFEED_OPENAPI_EXAMPLES",
    }
)
OF_KUBERNETES = re.compile(r"OWNFEED\w*_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_\w+)")
ADMINISTRATOR = 0
PASSWORD = re.compile(rb"://[^/@\s\"']*:[^/@\s\"']+@|password=", re.IGNORECASE)
SHOWN_CHARS = 60


class SettingsFileRefused(ValueError):
    """A file, table or variable is refused.

    The message says which, and why. named: the thing that the user has to check.
    """

    def __init__(self, why: str, named: str) -> None:
        super().__init__(why)
        self.named = named


class FileSettings(BaseSettings):
    """Settings of one table of the file.

    table: its name. refusal: creates the error for unreadable settings.
    """

    model_config = SettingsConfigDict(use_attribute_docstrings=True)
    table: ClassVar[str]

    as_published: Literal["uni_fedrec"] | None = None
    """Run a paper's system as published, with its own parameters and the privacy cost that they really have: the
    settings named in protocol/as_published.toml take the values given there, unless they are set explicitly. Backend
    and devices both need it."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except SettingsError as broken:
            field = re.findall(r'"(\w+)"', str(broken))[0]
            name = (TABLES[self.table] + field).upper()
            why = f'the variable {name} is no JSON ({broken.__cause__}); a list is written as in \'["a", "b"]\''
            raise self.refusal(SettingsFileRefused(why, name)) from broken

    @classmethod
    def refusal(cls, refused: SettingsFileRefused) -> Exception:
        """Return the package's own error for a file or a variable that is refused."""
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
        """Return the sources: arguments, the environment, the file's table, and the settings of `as_published`.

        Raises the error that `refusal` creates.
        """
        try:
            check_variables(settings_cls, TABLES[cls.table], os.environ)
            file = InitSettingsSource(settings_cls, table_of_file(cls.table))
        except SettingsFileRefused as refused:
            raise cls.refusal(refused) from refused
        return init_settings, env_settings, file, AsPublished(settings_cls, cls.table)


class AsPublished(InitSettingsSource):
    """The settings for which the setting `as_published` stands.

    Any other source overrides them.
    """

    def __init__(self, kind: type[BaseSettings], table: str) -> None:
        super().__init__(kind, {})
        self._table = table

    def __call__(self) -> dict[str, Any]:
        """Return this side's settings for the paper; none without one, or for one that the setting's own check
        refuses.
        """
        values: dict[str, Any] = papers().get(str(self.current_state.get("as_published")), {}).get(self._table, {})
        return values


@cache
def papers() -> Mapping[str, Mapping[str, Any]]:
    """Return the settings that `as_published` stands for, by paper and by table."""
    return tomllib.loads(resources.files("protocol").joinpath("as_published.toml").read_text(encoding="utf-8"))


def check_variables(kind: type[BaseModel], prefix: str, variables: Iterable[str]) -> None:
    """Raise SettingsFileRefused for a variable OWNFEED_* that is not a setting.

    Variables with the other program's prefix are not checked; that program checks them itself.
    """
    known = {name.upper(): nested for name, nested in names_of(kind, prefix, NESTED)}
    others = tuple(other for other in TABLES.values() if other != prefix)
    for variable in sorted(name.upper() for name in variables if name.upper().startswith(PREFIX)):
        above, _, below = variable.rpartition(NESTED)
        if variable in OTHER_VARIABLES or variable in known or variable.startswith(others):
            continue
        if below and known.get(above):
            continue  # the class refuses an unknown name inside of a table
        alike = {*known, *OTHER_VARIABLES}
        if not variable.startswith(prefix):
            alike |= {other + variable.removeprefix(PREFIX).partition("_")[2] for other in others}
        why = f"the variable {variable} is not a setting{meant(variable, alike)}"
        if OF_KUBERNETES.fullmatch(variable):
            why += "; Kubernetes adds such variables unless the pod has enableServiceLinks: false"
        raise SettingsFileRefused(why, variable)


def table_of_file(table: str) -> dict[str, Any]:
    """Return a table of the file; empty if the file or the table is missing.

    Raises SettingsFileRefused.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named or CONFIG_FILE)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileNotFoundError
        check_owner_alone_writes(path)
        content = path.read_bytes()
        tables = tomllib.loads(content.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if named:
            raise SettingsFileRefused(f"{CONFIG_VARIABLE} names {path}, which is not a file", CONFIG_VARIABLE) from None
        return {}
    except OSError as broken:
        raise SettingsFileRefused(f"{path.absolute()} can't be read: {broken.strerror}", str(path)) from broken
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise SettingsFileRefused(f"{path} is not TOML: {broken}", str(path)) from broken
    for name, found in tables.items():
        if name not in TABLES:
            listed = " or ".join(f"[{each}]" for each in TABLES)
            why = f"{path}: {name} is not a table of settings{meant(name, TABLES)}; settings belong in {listed}"
            raise SettingsFileRefused(why, name)
        if not isinstance(found, dict):
            raise SettingsFileRefused(f"{path}: {name} must be a table", name)
    _say(f"settings are read from {path.absolute()}.")
    if path.stat().st_mode & stat.S_IROTH and PASSWORD.search(content):
        _say(f"warning: {path.absolute()} holds a password, and others may read the file (chmod 600 {path}).")
    return dict(tables.get(table, {}))


def check_owner_alone_writes(path: Path) -> None:
    """Raise SettingsFileRefused if anybody but this user or the administrator can write the file.

    Checks the file and its folder, and if it is a link, its target. The file's group counts as another user. A folder
    with the sticky bit, such as /tmp, is allowed, since other users can't replace a file in it.
    """
    if sys.platform == "win32":
        return
    file, writable = path.resolve(), []
    for each in dict.fromkeys((path.absolute().parent, path.absolute(), file.parent, file)):
        found = each.lstat()
        if found.st_uid not in (os.geteuid(), ADMINISTRATOR):
            why = f"{each} belongs to another user (number {found.st_uid}), not to you (number {os.geteuid()})"
            raise SettingsFileRefused(f"{path} is refused: {why}", str(path))
        is_safe = stat.S_ISLNK(found.st_mode) or (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX)
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_safe:
            writable.append(str(each))
    if writable:
        why = f"others may write {' and '.join(writable)} (chmod go-w {shlex.join(writable)})"
        raise SettingsFileRefused(f"{path} is refused: {why}", str(path))


def described(refused: ValidationError, kind: type[BaseModel]) -> tuple[str, str]:
    """Return the name of the first refused setting and the reason.

    The reason says what is allowed and what was found.
    """
    first = refused.errors(include_url=False)[0]
    name, found = ".".join(map(str, first["loc"])), first["input"]
    if first["type"] == "extra_forbidden":
        return name, f"there is no such setting{meant(name, (known for known, _ in names_of(kind, '', '.')))}"
    is_secret = "@" in str(found) or any(not field.repr for key, field in kind.model_fields.items() if key == name)
    is_short = isinstance(found, str | int | float) and len(repr(found)) <= SHOWN_CHARS
    shown = is_short and not is_secret and repr(found) not in first["msg"]
    return name, f"{first['msg']}, not {found!r}" if shown else first["msg"]


def names_of(kind: type[BaseModel], prefix: str, between: str) -> Iterator[tuple[str, bool]]:
    """Yield every setting's name, and whether it is a table of settings."""
    for name, field in kind.model_fields.items():
        inner = field.annotation
        is_table = isinstance(inner, type) and issubclass(inner, BaseModel)
        yield prefix + name, is_table
        if is_table:
            yield from names_of(inner, prefix + name + between, between)  # type: ignore[arg-type]


def meant(name: str, known: Iterable[str]) -> str:
    """Return '; perhaps you meant X' with the most similar name, or ''."""
    found = get_close_matches(name, sorted(known), n=1)
    return f"; perhaps you meant {found[0]}" if found else ""


def _say(sentence: str) -> None:
    sys.stderr.write(f"ownfeed: {sentence}\n")


LAST_PORT = 65_535
HTTPS_PORT = 443
NAME_CHARS = 253
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_PORT = re.compile(r"[1-9]\d{0,4}")


def is_host(text: str) -> bool:
    """Return whether a text is a host name or an IP address without brackets."""
    try:
        ip_address(text)
    except ValueError:
        # a name that ends in figures is an address that isn't whole
        is_name = len(text) <= NAME_CHARS and _NAME.fullmatch(text) is not None
        return is_name and not text.rpartition(".")[2].isdecimal()
    return True


def is_port(text: str) -> bool:
    """Return whether a text is a port number from 1 to 65535."""
    return _PORT.fullmatch(text) is not None and int(text) <= LAST_PORT


def _host(text: str) -> str:
    # an empty one would listen on every address of the machine
    if not is_host(text):
        raise PydanticCustomError(
            "host", "{value} is not a host: give a name or an IP address, without a port", {"value": repr(text)}
        )
    return text


def _host_and_port(text: str) -> str:
    host, _, port = text.rpartition(":")
    if ":" in host or not is_host(host) or not is_port(port):
        raise PydanticCustomError(
            "host_and_port", "{value} is not a host with a port from 1 to 65,535, such as '10.0.0.5:6379'",
            {"value": repr(text)},
        )  # fmt: skip
    return text


def _origin(text: str) -> str:
    scheme, _, rest = text.partition("://")
    host, colon, port = rest.partition(":")
    right = scheme == "https" and is_host(host) and host == host.lower()
    if not right or (colon and not (is_port(port) and int(port) != HTTPS_PORT)):
        raise PydanticCustomError(
            "origin",
            "{value} is not an origin such as 'https://news.example.org': https, a host in small letters, and "
            "perhaps a "
            "port from 1 to 65,535 other than 443, which browsers leave out; no path",
            {"value": repr(text)},
        )
    return text


def _path(value: Any) -> Any:
    # an empty one would be the folder where the program happens to be started
    if value == "":
        raise PydanticCustomError("path", "it is empty; leave the setting out to use its default")
    path = Path(value) if isinstance(value, str) else value
    if not isinstance(path, Path):
        return value
    try:
        return path.expanduser()
    except RuntimeError as unknown:
        raise PydanticCustomError("path", "{value}: {why}", {"value": repr(str(path)), "why": str(unknown)}) from None


Host = Annotated[str, AfterValidator(_host)]
"""A host that a server listens on."""
HostAndPort = Annotated[str, AfterValidator(_host_and_port)]
HttpsOrigin = Annotated[str, AfterValidator(_origin)]
"""An HTTPS origin as browsers write it."""
SetPath = Annotated[Path, BeforeValidator(_path)]
"""A path that is not empty; ~ stands for the home folder, as in a shell."""


def has_more_than_a_path(address: str) -> bool:
    """Return whether an address has a query, a fragment or surrounding blanks.

    No path could be appended to such an address.
    """
    parts = urlsplit(address)
    return bool(parts.query or parts.fragment) or address != address.strip()

"""Validators of settings whose form no pattern or bound expresses: a host, an address, a folder.

Each raises an error that says what is allowed; pydantic reports it beside the setting's name.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

LAST_PORT = 65_535
HTTPS_PORT = 443
NAME_CHARS = 253
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_PORT = re.compile(r"[1-9]\d{0,4}")


def is_host(text: str) -> bool:
    """Whether it is a host's name, or an IP address without brackets."""
    try:
        ip_address(text)
    except ValueError:
        # a name that ends in figures is an address that isn't whole
        is_name = len(text) <= NAME_CHARS and _NAME.fullmatch(text) is not None
        return is_name and not text.rpartition(".")[2].isdecimal()
    return True


def is_port(text: str) -> bool:
    """Whether it is a port's number, as it is written: from 1 to 65,535."""
    return _PORT.fullmatch(text) is not None and int(text) <= LAST_PORT


def _host(text: str) -> str:
    # an empty one would listen on every address of the machine
    if not is_host(text):
        raise PydanticCustomError(
            "host", "{value} is no host: a name or an IP address, without a port", {"value": repr(text)}
        )
    return text


def _host_and_port(text: str) -> str:
    host, _, port = text.rpartition(":")
    if ":" in host or not is_host(host) or not is_port(port):
        raise PydanticCustomError(
            "host_and_port", "{value} is no host with a port from 1 to 65,535, such as '10.0.0.5:6379'",
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
            "{value} is no origin such as 'https://news.example.org': https, a host in small letters, and perhaps a "
            "port from 1 to 65,535 other than 443, which browsers leave out; no path",
            {"value": repr(text)},
        )
    return text


def _path(value: Any) -> Any:
    # an empty one would be the folder where the program happens to be started
    if value == "":
        raise PydanticCustomError("path", "it is empty; leave the setting out for its default")
    path = Path(value) if isinstance(value, str) else value
    if not isinstance(path, Path):
        return value
    try:
        return path.expanduser()
    except RuntimeError as unknown:
        raise PydanticCustomError("path", "{value}: {why}", {"value": repr(str(path)), "why": str(unknown)}) from None


Host = Annotated[str, AfterValidator(_host)]
"""What a server listens on."""
HostAndPort = Annotated[str, AfterValidator(_host_and_port)]
HttpsOrigin = Annotated[str, AfterValidator(_origin)]
"""As browsers write it."""
SetPath = Annotated[Path, BeforeValidator(_path)]
"""Not empty; a home's sign (~) stands for the home, as a shell has it."""


def has_more_than_a_path(address: str) -> bool:
    """Whether an address has a query, a fragment, or blanks around it: nothing that requests could be added to."""
    parts = urlsplit(address)
    return bool(parts.query or parts.fragment) or address != address.strip()

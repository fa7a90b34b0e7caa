"""Variables that Kubernetes puts into every container of a namespace, one set for each service in it.

A service named `ownfeed` or `ownfeed-backend` makes names that begin as our settings do, and one of them, _PORT, may be
a setting's whole name. `pkg/kubelet/envvars` of Kubernetes makes them; those of links are as Docker's were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

HOST, PORT = "_service_host", "_service_port"
NAMED_PORT = re.compile(r"(?P<service>.+)_service_port_[a-z0-9_]+")
LINK = re.compile(r".+_port")
LINK_OF_PORT = re.compile(r".+_port_(?P<port>\d+)_(?P<protocol>tcp|udp|sctp)(?P<part>|_proto|_port|_addr)")
ADDRESS = re.compile(r"(?P<protocol>tcp|udp|sctp)://(?P<host>\[[0-9a-f:.]+\]|[0-9.]+):(?P<port>\d+)")


def service_links(variables: Mapping[str, str | None]) -> frozenset[str]:
    """Those names among the variables, in lower case, that are a service's by name and by value.

    A host and a port count where both are there, since either alone may be somebody's guess at a setting; what else
    there is says itself what it is, such as OWNFEED_BACKEND_PORT=tcp://10.96.0.7:8400.
    """
    return frozenset(_links({name: value for name, value in variables.items() if value is not None}))


def _links(variables: Mapping[str, str]) -> Iterator[str]:
    services = set()
    for name, value in variables.items():
        service = name.removesuffix(HOST)
        if service != name and _is_host(value) and _is_port(variables.get(service + PORT, "")):
            services.add(service)
            yield from (service + HOST, service + PORT)
    for name, value in variables.items():
        named, link = NAMED_PORT.fullmatch(name), LINK_OF_PORT.fullmatch(name)
        of_service = named is not None and named["service"] in services and _is_port(value)
        of_port = link is not None and _fits(value, **link.groupdict())
        if of_service or of_port or (LINK.fullmatch(name) and _address(value)):
            yield name


def _fits(value: str, *, port: str, protocol: str, part: str) -> bool:
    """Whether a link to one port holds what its name says."""
    if part == "_addr":
        return _is_host(value)
    if part:
        return value == {"_proto": protocol, "_port": port}[part]
    return _address(value) == (protocol, port)


def _address(value: str) -> tuple[str, str] | None:
    """Protocol and port of a link's address; None for anything else."""
    found = ADDRESS.fullmatch(value)
    if found is None or not _is_host(found["host"].strip("[]")) or not _is_port(found["port"]):
        return None
    return found["protocol"], found["port"]


def _is_host(value: str) -> bool:
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def _is_port(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) <= 5 and 0 < int(value) <= 65_535

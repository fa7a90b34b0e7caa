"""Which addresses a feed may be fetched from: public ones, and networks that the operator has named.

A feed's server chooses where its redirects lead and what its name resolves to. Without this check it could have this
server fetch what only this server reaches: its own loopback, the hosting's metadata, a neighbour's database.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

Address = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Iterable[str]]
WEB_PORTS = (80, 443)
FIRST_USER_PORT = 1024
"""Ports below it are those of mail, shells and the like, but for the web's own."""
LAST_PORT = 65_535
PORTS_READ = f"port 80, 443, or one from {FIRST_USER_PORT:,} to {LAST_PORT:,}"
_EMBEDDING = ip_network("64:ff9b::/96")
"""The IPv6 network whose last 32 bits are an IPv4 address that a gateway would go on to."""
_NOT_PUBLIC = tuple(
    ip_network(name)
    for name in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "64:ff9b:1::/48", "fec0::/10", "3fff::/20")
)
"""What some versions of Python call global and nobody's feed is at: protocol assignments, metadata of clouds."""


@cache
def _certificates() -> ssl.SSLContext:
    """Whom a feed's encrypted connection trusts: read once a process, which takes 40 ms of CPU."""
    return httpx.create_ssl_context(trust_env=False)


def networks(names: Sequence[str]) -> tuple[IpNetwork, ...]:
    """'10.1.0.0/16' and the like, as the settings name them. Raises ValueError, naming the one at fault."""
    return tuple(ip_network(name) for name in names)


def is_web_port(port: int) -> bool:
    """Whether a feed may be fetched from this port."""
    return port in WEB_PORTS or FIRST_USER_PORT <= port <= LAST_PORT


def is_public(address: Address) -> bool:
    """Whether the address is everybody's, also where IPv6 carries one of IPv4 in itself."""
    if any(address in network for network in _NOT_PUBLIC):
        return False
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _EMBEDDING:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def resolved(host: str, port: int) -> list[str]:
    """What the system's resolver says."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class AddressRefused(httpx.ConnectError):
    """The address is none that feeds are fetched from."""


class CheckedTransport(httpx.BaseTransport):
    """Carries a request to an address that was checked, and to no other, whatever its name resolves to later.

    Formal guarantees: every connection goes to an address that is public or in `allowed`, on port 80, 443 or one from
    1,024 on; the name is resolved once a request, and TLS is checked against the name. No proxy of the environment is
    used, since it would resolve the name anew.

    Raises AddressRefused, before anything is sent, for any other address.
    """

    def __init__(
        self,
        allowed: Sequence[IpNetwork] = (),
        *,
        resolve: Resolve = resolved,
        inner: httpx.BaseTransport | None = None,
    ) -> None:
        self._allowed, self._resolve = tuple(allowed), resolve
        self._inner = inner or httpx.HTTPTransport(verify=_certificates(), trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request of a client that follows no redirect by itself."""
        host = request.url.host
        port = request.url.port or {"http": 80, "https": 443}[request.url.scheme]
        address = self._checked(host, port)
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=address)
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def _checked(self, host: str, port: int) -> str:
        if not is_web_port(port):
            raise AddressRefused(f"port {port} of {host} is no port of the web")
        try:
            found = list(self._resolve(host, port))
        except (OSError, UnicodeError) as failed:
            raise AddressRefused(f"{host} has no address ({failed})") from failed
        for text in found:
            address = ip_address(text.partition("%")[0])
            if is_public(address) or any(address in network for network in self._allowed):
                return text
        raise AddressRefused(
            f"the address of {host}, {', '.join(found[:3]) or '(none)'}, is not public; name its network in the "
            "setting feed_networks, or with --allow-network, to read it all the same"
        )

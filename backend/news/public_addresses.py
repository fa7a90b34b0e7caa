"""Restricts feed downloads to allowed addresses, and limits their duration.

Allowed are public addresses and networks that the operator has named.

A feed's server chooses where it redirects and what its name resolves to. Without this check it could make this server
fetch what only this server can reach: its own loopback, the hosting provider's metadata, an internal database.

httpx limits only each silence; every byte restarts that limit. By trickling headers, interim responses (103) or a
chunk's extension, a server could hold a download open indefinitely without ever returning control to the reader. So
`HttpDeadline` closes the connections from another thread, even while the server sends.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import TracebackType
from typing import Any

import httpx

from backend.news.errors import FeedRefused

Address = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Iterable[str]]
WEB_PORTS = (80, 443)
FIRST_USER_PORT = 1024
"""Lower ports belong to other services such as mail and SSH, except for 80 and 443."""
LAST_PORT = 65_535
PROXY_CHARS = 500
PORTS_READ = f"port 80, 443, or one from {FIRST_USER_PORT:,} to {LAST_PORT:,}"
_EMBEDDING = ip_network("64:ff9b::/96")
"""The IPv6 network whose last 32 bits are an IPv4 address that a gateway would forward to."""
_NOT_PUBLIC = tuple(
    ip_network(name)
    for name in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "64:ff9b:1::/48", "fec0::/10", "3fff::/20")
)
"""Addresses that some versions of Python call global but that host no feeds: protocol assignments, cloud metadata."""


@cache
def _certificates(unverified: bool = False) -> ssl.SSLContext:
    """The trusted certificates, read once per process, which takes 40 ms of CPU; unverified: any is trusted."""
    return httpx.create_ssl_context(verify=not unverified, trust_env=False)


def networks(names: Sequence[str]) -> tuple[IpNetwork, ...]:
    """Parse networks such as '10.1.0.0/16' from the settings.

    Raises ValueError that names the invalid one.
    """
    return tuple(ip_network(name) for name in names)


def is_web_port(port: int) -> bool:
    """Whether a feed may be fetched from this port."""
    return port in WEB_PORTS or FIRST_USER_PORT <= port <= LAST_PORT


def is_public(address: Address) -> bool:
    """Whether the address is public; of an IPv6 address that embeds an IPv4 one, whether that is."""
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
    """The addresses that the system's resolver returns."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class AddressRefused(httpx.ConnectError):
    """Feeds may not be fetched from this address."""


class CheckedTransport(httpx.BaseTransport):
    """Sends a request only to an address that was checked, even if its name later resolves to another.

    Formal guarantees: every connection goes to an address that is public or in `allowed`, on port 80, 443 or one from
    1,024 on; the name is resolved once per request, and TLS is verified against the name. No connection is reused: a
    second name at the same address would go unchecked in the first one's TLS. No proxy of the environment is used,
    since it would resolve the name again.

    unverified: TLS certificates are not verified, so anyone on the path can read and replace what is sent; the address
    is still checked. Raises AddressRefused, before anything is sent, for any other address.
    """

    def __init__(
        self,
        allowed: Sequence[IpNetwork] = (),
        *,
        resolve: Resolve = resolved,
        unverified: bool = False,
        inner: httpx.BaseTransport | None = None,
    ) -> None:
        self._allowed, self._resolve = tuple(allowed), resolve
        self._inner = inner or httpx.HTTPTransport(
            verify=_certificates(unverified), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Handle one request of a client that does not follow redirects itself."""
        host = request.url.host
        port = request.url.port or {"http": 80, "https": 443}[request.url.scheme]
        address = self._checked(host, port)
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=address)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()

    def _checked(self, host: str, port: int) -> str:
        if not is_web_port(port):
            raise AddressRefused(f"port {port} of {host} is not a web port; feeds are read from {PORTS_READ}")
        try:
            found = list(self._resolve(host, port))
        except (OSError, UnicodeError) as failed:
            raise AddressRefused(f"{host} has no address ({failed})") from failed
        for text in found:
            address = ip_address(text.partition("%")[0])
            if is_public(address) or any(address in network for network in self._allowed):
                return text
        raise AddressRefused(
            f"the address of {host}, {', '.join(found[:3]) or '(none)'}, is not public; to read it anyway, add its "
            "network to the setting feed_networks or use --allow-network"
        )


class ProxyTransport(httpx.BaseTransport):
    """Sends requests through one HTTP proxy that the reader has chosen for a feed.

    The proxy resolves names, so only IP addresses and the names of this machine are checked here; the proxy decides
    what else can be reached. The proxy itself may be anywhere.

    Raises AddressRefused, before anything is sent, for an address that isn't public.
    """

    def __init__(self, proxy: str, allowed: Sequence[IpNetwork] = (), *, unverified: bool = False) -> None:
        self._allowed = tuple(allowed)
        self._inner = httpx.HTTPTransport(
            verify=_certificates(unverified), trust_env=False, proxy=httpx.Proxy(proxy),
            limits=httpx.Limits(max_keepalive_connections=0),
        )  # fmt: skip

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Handle one request of a client that does not follow redirects itself."""
        host = request.url.host.rstrip(".").lower()
        try:
            address: Address = ip_address("127.0.0.1" if host.endswith("localhost") else host)
        except ValueError:  # a name, for the proxy to resolve
            return self._inner.handle_request(request)
        if not is_public(address) and not any(address in network for network in self._allowed):
            raise AddressRefused(f"{host} is not public, so it isn't requested through a feed's proxy")
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def checked_proxy(proxy: str) -> str:
    """Return the address of an HTTP proxy. Raises FeedRefused."""
    try:
        parsed = httpx.Proxy(proxy).url
    except (httpx.InvalidURL, ValueError) as broken:
        raise FeedRefused("its proxy must be an address such as http://via.example:3128") from broken
    if parsed.scheme not in ("http", "https") or not parsed.host or len(proxy) > PROXY_CHARS:
        raise FeedRefused("its proxy must be an address such as http://via.example:3128; SOCKS is not supported")
    return proxy


LOOK_EVERY_SEC = 0.2
"""How often cancellation is checked: a cancelled download ends within this time."""
_CONNECTED = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})


class HttpDeadline:
    """Limits the duration of one download, redirects included.

    Each request passes `trace` as its extension of that name.

    within_sec: counted from entering the context. cancelled: called every LOOK_EVERY_SEC; once it returns true, the
    deadline has passed. A TLS handshake isn't interrupted; the connection's timeout limits it.
    """

    def __init__(self, within_sec: float, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._within_sec, self._cancelled = within_sec, cancelled
        self._left, self._over = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._watch, name="http-deadline", daemon=True)

    def __enter__(self) -> HttpDeadline:
        self._until = time.monotonic() + self._within_sec
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._left.set()
        self._thread.join()

    @property
    def over(self) -> bool:
        """Whether the deadline has passed; if so, what was read may be truncated."""
        return self._over.is_set() or time.monotonic() >= self._until or self._cancelled()

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Callback for httpx's extension `trace`: records each connection as it is opened."""
        if name not in _CONNECTED:
            return
        connection = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.append(connection)
        if self._over.is_set():
            _shut(connection)

    def _watch(self) -> None:
        while not self.over:
            if self._left.wait(max(0.0, min(LOOK_EVERY_SEC, self._until - time.monotonic()))):
                return
        with self._lock:
            self._over.set()
            connections = list(self._sockets)
        for connection in connections:
            _shut(connection)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # already closed, or replaced by its TLS socket
        # SSLSocket's own method would free the TLS state that the reading thread uses.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)

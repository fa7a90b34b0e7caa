"""Notice within seconds that the backend is unreachable, using an open connection that carries no data."""

import socket
import time
from collections.abc import Callable
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from device_app.errors import BackendUnreachable

CONNECT_WITHIN_SEC = 1.5
KEEPALIVE_SEC = 10
"""A peer that vanished silently (its machine, or the network) is noticed after two of these: one until the system sends
a probe, one that it waits. A shorter time would cost battery, and load on a server of many devices, for little gain."""
TRY_AGAIN_SEC = 2.0
BRIEF_SEC, CROWDED_SEC = 5.0, 60.0
"""A server that twice ends this connection before BRIEF_SEC is out of capacity, and is left alone for CROWDED_SEC."""
WAKE_SEC = 0.5


class BackendWatch:
    """Holds one TCP connection to a backend and reopens it when it ends.

    If that fails, the backend is lost.

    Formal guarantees: no byte is written on these connections. When they are opened depends on the backend, the network
    and how long this runs: they don't depend on what the reader does, and only the loop of this class opens them.

    Args:
        url: the backend's URL; only its host and port are used.
        back: called when it can be reached again after it was lost.
        gone: called with the last connection error when it is lost.
    """

    def __init__(
        self, url: str, back: Callable[[], None], gone: Callable[[BackendUnreachable], None] = lambda _: None
    ) -> None:
        parts, self._url, self._gone = urlsplit(url), url, gone
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._back = back
        self._address: tuple[Any, ...] | None = None
        self.lost = False
        """Whether the last try to reach the server failed."""

    def run(self, stop: Event) -> None:
        """Watch until `stop` is set."""
        brief = 0
        while not stop.is_set():
            try:
                connection = self._connected()
            except OSError as failed:
                if not self.lost:
                    self.lost = True
                    self._gone(BackendUnreachable(self._url, str(failed)))
                brief = 0
                stop.wait(TRY_AGAIN_SEC)
                continue
            if self.lost:
                self.lost = False
                self._back()
            since = time.monotonic()
            with connection:
                _wait_for_end(connection, stop)
            brief = brief + 1 if time.monotonic() - since < BRIEF_SEC else 0
            if brief > 1:
                stop.wait(CROWDED_SEC)

    def _connected(self) -> socket.socket:
        """Connect to the last working address, else to one that the name resolves to now.

        Raises OSError. Trying the known address first avoids a name lookup before the backend is reported as lost.
        """
        known, self._address = self._address, None
        found = [known] if known is not None else socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        failed: OSError = OSError(f"{self._host} has no address")
        for one in found:
            family, kind, protocol, _, address = one
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(CONNECT_WITHIN_SEC)
                connection.connect(address)
                _keep_alive(connection)
            except OSError as refused:
                connection.close()
                failed = refused
                continue
            self._address = one
            return connection
        raise failed


def _keep_alive(connection: socket.socket) -> None:
    """Have the system probe the peer with empty segments, which no program at either end sees."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle = "TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE"
    for name, value in ((idle, KEEPALIVE_SEC), ("TCP_KEEPINTVL", KEEPALIVE_SEC), ("TCP_KEEPCNT", 1)):
        if hasattr(socket, name):  # not every system lets it be set; there the system's own pace stands
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _wait_for_end(connection: socket.socket, stop: Event) -> None:
    """Return when the peer has closed the connection, or it broke.

    Data that it sends is discarded.
    """
    connection.settimeout(WAKE_SEC)
    while not stop.is_set():
        try:
            if not connection.recv(4096):
                return
        except TimeoutError as waited:
            if waited.errno is not None:  # the system's: the peer is there no longer
                return
        except OSError:
            return

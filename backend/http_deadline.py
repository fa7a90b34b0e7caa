"""A hard end for what is fetched over HTTP: its connections are shut from outside, whatever their server sends.

httpx limits each silence, and every byte begins a new one. So a server that drips its headers, interim answers (103) or
the extension of a chunk would hold a download open for as long as it likes, without a part of a body at which whoever
reads it could look at a clock.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

LOOK_EVERY_SEC = 0.2
"""How soon a download that is cancelled ends."""
_CONNECTED = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})


class HttpDeadline:
    """Lives around the requests of one download, redirects included; each has `trace` as its extension of that name.

    within_sec: from entering it on. cancelled: asked every LOOK_EVERY_SEC; once it says so, the end has come. A
    handshake of TLS isn't cut short; it has the connection's timeout, as a whole, to itself.
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
        """Whether the end has come; what was read since may end in the middle."""
        return self._over.is_set() or time.monotonic() >= self._until or self._cancelled()

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Of httpx's extension `trace`: notes each connection as it comes."""
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
    with suppress(OSError):  # closed already, or handed over to TLS
        # Not SSLSocket's own, which would take the state of TLS from under the thread that reads.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)

"""A tapped connection between a device and its backend.

Records every byte that the device sends.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

CHUNK_BYTES = 65_536


@dataclass(frozen=True)
class SentRequest:
    """One request as sent; head is everything up to and including the blank line."""

    head: bytes
    body: bytes

    @property
    def method(self) -> str:
        """The method: GET, POST or PUT."""
        return self.head.split(b" ", 1)[0].decode("ascii")

    @property
    def path(self) -> str:
        """The path with its query."""
        return self.head.split(b" ", 2)[1].decode("ascii")

    @property
    def size_bytes(self) -> int:
        """The size of head and body."""
        return len(self.head) + len(self.body)


@dataclass
class TappedConnection:
    """Listens on its own port and carries bytes both ways; only what the device sends is recorded."""

    backend: tuple[str, int]
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _received: list[bytearray] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address that the device uses as its backend."""
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def requests(self) -> list[SentRequest]:
        """All complete requests so far, connection by connection."""
        return [request for received in list(self._received) for request in parse_requests(bytes(received))]

    def carry(self) -> None:
        """Accept connections until the listener is closed."""
        with suppress(OSError):
            while True:
                device, _ = self.listener.accept()
                backend = socket.create_connection(self.backend)
                received = bytearray()
                self._received.append(received)
                threading.Thread(target=_pump, args=(device, backend, received), daemon=True).start()
                threading.Thread(target=_pump, args=(backend, device, None), daemon=True).start()


def parse_requests(received: bytes) -> Iterator[SentRequest]:
    """The requests of one connection; each body is as long as its Content-Length says."""
    while b"\r\n\r\n" in received:
        head, _, rest = received.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lengths[0]) if lengths else 0
        if len(rest) < length:
            return
        yield SentRequest(head + b"\r\n\r\n", rest[:length])
        received = rest[length:]


def _pump(source: socket.socket, sink: socket.socket, received: bytearray | None) -> None:
    with closing(source), suppress(OSError):
        while chunk := source.recv(CHUNK_BYTES):
            if received is not None:
                received += chunk
            sink.sendall(chunk)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


@contextmanager
def tapped_connection(backend_url: str) -> Iterator[TappedConnection]:
    """A tapped connection to this backend while the block runs."""
    host, _, port = backend_url.removeprefix("http://").partition(":")
    line = TappedConnection((host, int(port)))
    threading.Thread(target=line.carry, daemon=True).start()
    try:
        yield line
    finally:
        with suppress(OSError):
            line.listener.shutdown(socket.SHUT_RDWR)
        line.listener.close()

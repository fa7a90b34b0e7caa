"""Clients that begin requests and don't finish them, over their own sockets."""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

PATIENCE_SEC = 120.0
"""How long a test waits for what must happen; only a defect makes it wait this long."""


def connected(url: str) -> socket.socket:
    """A connection to the server."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_SEC)


def begin_request(
    url: str, method: str, path: str, media_type: str, length: int | None, body: bytes = b""
) -> socket.socket:
    """Send a request with complete headers and only this part of its body. length None: chunked."""
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    head = f"{method} {path} HTTP/1.1\r\nhost: backend\r\ncontent-type: {media_type}\r\n{size}\r\n\r\n"
    made = connected(url)
    made.sendall(head.encode("ascii") + body)
    return made


def answer_of(client: socket.socket) -> tuple[int, bytes]:
    """Return status and content of the answer to an unfinished request."""
    with client.makefile("rb") as lines:
        status = int(lines.readline().split()[1])
        length = 0
        while (line := lines.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, lines.read(length)


def is_closed_by_the_server(client: socket.socket) -> bool:
    """Wait until the server closes the connection, skipping anything it sends before."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


def is_at_an_end(client: socket.socket) -> bool:
    """Return whether the server has closed the connection, without waiting."""
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        client.settimeout(PATIENCE_SEC)


def poured(url: str, head: bytes, piece: bytes, limit_bytes: int) -> int:
    """Send `head`, then `piece` repeatedly, until the server closes the connection or the limit is reached.

    Returns the number of bytes sent. The system buffers some before the server reads them.
    """
    sent = 0
    with connected(url) as client, suppress(ConnectionError):
        client.sendall(head)
        while sent < limit_bytes:
            client.sendall(piece)
            sent += len(piece)
    return sent

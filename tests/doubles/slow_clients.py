"""Clients that begin requests and don't end them, over sockets of their own."""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

PATIENCE_SEC = 120.0
"""How long a test waits for what must happen; a defect makes it wait so long, a slow machine doesn't."""


def connected(url: str) -> socket.socket:
    """A connection to the server."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_SEC)


def begun(url: str, method: str, path: str, media_type: str, length: int | None, body: bytes = b"") -> socket.socket:
    """A request with whole headers and only this much of its body. length None: it comes in chunks."""
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    head = f"{method} {path} HTTP/1.1\r\nhost: backend\r\ncontent-type: {media_type}\r\n{size}\r\n\r\n"
    made = connected(url)
    made.sendall(head.encode("ascii") + body)
    return made


def answer_of(client: socket.socket) -> tuple[int, bytes]:
    """Status and content of the answer to a request that isn't sent to its end."""
    with client.makefile("rb") as lines:
        status = int(lines.readline().split()[1])
        length = 0
        while (line := lines.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, lines.read(length)


def is_closed_by_the_server(client: socket.socket) -> bool:
    """Waits until the server closes the connection; anything it says before is skipped."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


def poured(url: str, head: bytes, piece: bytes, limit_bytes: int) -> int:
    """Sends `head`, and `piece` again and again, until the server gives the connection up or so much has left: how much
    has. The system takes some before the server reads it."""
    sent = 0
    with connected(url) as client, suppress(ConnectionError):
        client.sendall(head)
        while sent < limit_bytes:
            client.sendall(piece)
            sent += len(piece)
    return sent

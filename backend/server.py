"""The HTTP server that listens: uvicorn with the limits of the settings."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE

from backend.connections import ConnectionLimits, limited_http
from backend.server_address import ServerAddress
from backend.settings import BackendSettings, url_of

FILES_RESERVED = 320
"""Of the files that the process may open: for the database, blobs, uploads, logs, and connections not yet looked at."""
BACKLOG = 128
"""Connections that the system completes ahead of us; a burst of so many fits into the files reserved."""
LOOPBACK = "127.0.0.1"
STOPS = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})
"""Signals that a server stops at, where the system has them."""
SIGNALLED = 128
"""With a signal's number, a shell's status of what it has ended."""
SHUTDOWN_SEC = 10
"""A stop waits so long for answers under way."""


class AddressedServer(uvicorn.Server):
    """Writes into a file where it listens, so that the operator's commands find it by its folder."""

    def __init__(self, config: uvicorn.Config, servers_dir: Path) -> None:
        super().__init__(config)
        self.address = ServerAddress(servers_dir)
        self._signals: list[int] = []

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; the first signal tells how the process ends."""
        self._signals.append(sig)
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at any of STOPS, and raise none of them anew: `serve` ends the process."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        known = [signal.Signals[name] for name in STOPS & {each.name for each in signal.Signals}]
        before = {each: signal.signal(each, self.handle_exit) for each in known}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped, and end the process where a signal has stopped it.

        Here, and not after the event loop: that would wait for threads that nobody waits for any more, as a round's
        step, and the interpreter's own end would abort where one computes in a native library, as a catalogue.
        """
        await super().serve(sockets)
        if self.started and self._signals:
            self.address.forget()
            _end_by(signal.Signals(self._signals[0]))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where; port 0 has become a true one by then."""
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[-1].sockets[0].getsockname()[:2]  # the console's, where it has its own
            self.address.say(url_of(host, port))


def http_server(app: ASGIApp, settings: BackendSettings) -> AddressedServer:
    """The server of `app` on the settings' address, not yet listening; `run` serves until it's told to stop."""
    return AddressedServer(
        uvicorn.Config(app, host=settings.host, port=settings.port, **http_config(settings)), settings.servers_dir
    )


def http_config(settings: BackendSettings) -> dict[str, Any]:
    """What uvicorn is told of connections; their limits are one process's."""
    limits = ConnectionLimits(
        connections=connections_limit(settings.connections_limit, open_files_limit()),
        header_sec=settings.header_sec,
        unread_sec=settings.unread_sec,
    )
    return {
        "http": limited_http(limits),
        "ws": "none",
        "backlog": BACKLOG,
        "timeout_keep_alive": settings.idle_sec,
        "timeout_graceful_shutdown": SHUTDOWN_SEC,
        "access_log": False,
        # uvicorn would believe X-Forwarded-For from this machine; the server has its own setting for proxies.
        "proxy_headers": False,
        "server_header": False,
        "log_level": "warning",
    }


def serve_until_stopped(app: ASGIApp, settings: BackendSettings) -> None:
    """Serve until a signal comes, and end the process by it. Exits with uvicorn's own status if the start fails.

    One process can't renew itself: on SIGHUP it stops in order, with a status that systemd starts it anew for.
    """
    server = http_server(app, settings)
    try:
        server.run(sockets=None if settings.console_port is None else ports(settings))
    finally:
        server.address.forget()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _end_by(number: signal.Signals) -> NoReturn:
    """As the signal would, without the interpreter's end. SIGINT comes from who looks on, and is no failure; nor is
    SIGTERM, which the first process of a container has to end at by itself."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if number is signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    os._exit(SIGNALLED + number if number.name == "SIGHUP" else 0)


def ports(settings: BackendSettings) -> list[socket.socket]:
    """The public port, and the console's where it has one, which is on the loopback alone. Raises OSError."""
    public = _bound(settings.host, settings.port)
    return [public] if settings.console_port is None else [public, _bound(LOOPBACK, settings.console_port)]


def check_port(host: str, port: int) -> None:
    """Raise OSError with one plain line if the port is taken."""
    try:
        _bound(host, port).close()
    except OSError as taken:
        raise OSError(f"{host}:{port} can't be listened on ({taken.strerror}); choose another with --port.") from None


def _bound(host: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except OSError:
        opened.close()
        raise
    return opened


def connections_limit(wanted: int, open_files: int | None) -> int:
    """As many connections as wanted and as leave files for everything else, of which there are at least half."""
    if open_files is None:
        return wanted
    return min(wanted, max(open_files - FILES_RESERVED, open_files // 2))


def open_files_limit() -> int | None:
    """How many files and sockets this process may have open; None where the system has no such limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft

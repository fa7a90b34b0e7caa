"""Runs the HTTP server: uvicorn with the limits of the settings.

uvicorn limits the size of a request's headers, the time between two requests, and the number of connections. It has no
limit for slow headers, silent connections and unread answers: the proxy must have them (docs/deploy), as `serve` says
at its start. docs/operate.md lists what a process keeps to itself and what it shares with others.
"""

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

from backend.server.address import ServerAddress
from backend.settings import BackendSettings, url_of

FILES_RESERVED = 320
"""File descriptors reserved for the database, blobs, uploads and logs."""
BACKLOG = 128
"""Connections that the system accepts ahead of us; a burst of this size fits into the reserved files."""
HEAD_LIMIT_BYTES = 64 * 1024
"""Limit of a request's line, headers or trailers, with the parser h11."""
LOOPBACK = "127.0.0.1"
STOPS = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})
"""Signals that stop a server, if the system has them."""
SIGNALLED = 128
"""Added to a signal's number, this is the exit status of a process ended by that signal."""
SHUTDOWN_SEC = 10
"""How long a stop waits for answers in progress."""
NOT_HELD = (
    "This port alone doesn't stop clients that send headers slowly, stay silent, or don't read their answers: {limit} "
    "such connections keep everybody else out. {advice} docs/deploy has tested configurations of nginx and Caddy."
)


class AddressedServer(uvicorn.Server):
    """Writes its address into a file of the data folder, where the operator's commands find it."""

    def __init__(self, config: uvicorn.Config, servers_dir: Path) -> None:
        super().__init__(config)
        self.address = ServerAddress(servers_dir)
        self._signals: list[int] = []

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop. The first signal decides how the process ends."""
        self._signals.append(sig)
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at any of STOPS without raising it again: `serve` ends the process."""
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
        """Serve until stopped; if a signal stopped it, end the process.

        It ends here because closing the event loop would wait for threads that are no longer needed, such as a round's
        step, and the interpreter's shutdown would abort while a thread computes in a native library.
        """
        await super().serve(sockets)
        if self.started and self._signals:
            self.address.forget()
            _end_by(signal.Signals(self._signals[0]))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and write the address down; a port setting of 0 has become a real port by then."""
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[-1].sockets[0].getsockname()[:2]  # the console's, if it has its own port
            self.address.say(url_of(host, port))


def http_server(app: ASGIApp, settings: BackendSettings) -> AddressedServer:
    """Create the server of `app` at the settings' address, not yet listening.

    `run` serves until it is stopped.
    """
    return AddressedServer(
        uvicorn.Config(app, host=settings.host, port=settings.port, **http_config(settings)), settings.servers_dir
    )


def http_config(settings: BackendSettings) -> dict[str, Any]:
    """uvicorn's configuration and connection limits for one process."""
    return {
        # httptools is about five times faster, but doesn't limit headers and trailers; a proxy does.
        "http": "auto" if settings.trusted_proxies else "h11",
        "h11_max_incomplete_event_size": HEAD_LIMIT_BYTES,
        "limit_concurrency": connections_limit(settings.connections_limit, open_files_limit()),
        "ws": "none",
        "backlog": BACKLOG,
        "timeout_keep_alive": settings.idle_sec,
        "timeout_graceful_shutdown": SHUTDOWN_SEC,
        "access_log": False,
        # uvicorn would trust X-Forwarded-For from this machine; the server has its own setting for proxies.
        "proxy_headers": False,
        "server_header": False,
        # Its warnings are about what clients send: a fast sender would fill the disk with lines.
        "log_level": "error",
    }


def not_held(settings: BackendSettings) -> str:
    """The limits that this port doesn't enforce itself, as sentences for the operator."""
    limit = connections_limit(settings.connections_limit, open_files_limit())
    advice = (
        "Let nothing but your proxy reach it."
        if settings.trusted_proxies
        else "Put a proxy in front before strangers can reach it."
    )
    return NOT_HELD.format(limit=f"{limit:,}", advice=advice)


def serve_until_stopped(app: ASGIApp, settings: BackendSettings) -> None:
    """Serve in this process until a signal arrives.

    Exits with uvicorn's own status if the start fails.

    One process can't restart itself: on SIGHUP it stops in order, with a status on which systemd starts it again.
    """
    server = http_server(app, settings)
    try:
        server.run(sockets=None if settings.console_port is None else ports(settings))
    finally:
        server.address.forget()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _end_by(number: signal.Signals) -> NoReturn:
    """End the process as the signal would, without the interpreter's shutdown.

    Neither SIGINT from a terminal nor SIGTERM is a failure. The first process of a container has to end itself on
    SIGTERM.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if number is signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    os._exit(SIGNALLED + number if number.name == "SIGHUP" else 0)


def ports(settings: BackendSettings) -> list[socket.socket]:
    """Open the public port, and the console's if it has its own, on the loopback only.

    Raises OSError.
    """
    public = _bound(settings.host, settings.port)
    return [public] if settings.console_port is None else [public, _bound(LOOPBACK, settings.console_port)]


def check_port(host: str, port: int) -> None:
    """Raise OSError with one plain line if the port is taken."""
    try:
        _bound(host, port).close()
    except OSError as taken:
        raise OSError(
            f"{host}:{port} can't be opened for listening ({taken.strerror}); choose another with --port."
        ) from None


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
    """As many connections as wanted, but few enough to leave files for everything else: 320, or half of a low limit."""
    if open_files is None:
        return wanted
    return min(wanted, max(open_files - FILES_RESERVED, open_files // 2))


def open_files_limit() -> int | None:
    """How many files and sockets this process may have open; None if the system has no such limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft

"""The HTTP server that listens: uvicorn with the limits of the settings."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from pathlib import Path

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
SHUTDOWN_SEC = 10
"""A stop waits so long for answers under way."""


class AddressedServer(uvicorn.Server):
    """Writes into a file where it listens, so that the operator's commands find it by its folder."""

    def __init__(self, config: uvicorn.Config, servers_dir: Path) -> None:
        super().__init__(config)
        self.address = ServerAddress(servers_dir)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where; port 0 has become a true one by then."""
        await super().startup(sockets)
        if self.started and self.servers:
            self.address.say(url_of(self.config.host, self.servers[0].sockets[0].getsockname()[1]))


def http_server(app: ASGIApp, settings: BackendSettings) -> AddressedServer:
    """The server of `app` on the settings' address, not yet listening; `run` serves until it's told to stop."""
    limits = ConnectionLimits(
        connections=connections_limit(settings.connections_limit, open_files_limit()),
        header_sec=settings.header_sec,
        unread_sec=settings.unread_sec,
    )
    return AddressedServer(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=limited_http(limits),
            ws="none",
            backlog=BACKLOG,
            timeout_keep_alive=settings.idle_sec,
            timeout_graceful_shutdown=SHUTDOWN_SEC,
            access_log=False,
            # uvicorn would believe X-Forwarded-For from this machine; the server has its own setting for proxies.
            proxy_headers=False,
            log_level="warning",
        ),
        settings.servers_dir,
    )


def serve_until_stopped(app: ASGIApp, settings: BackendSettings) -> None:
    """Serve until a signal comes. Exits with uvicorn's own status if the start fails."""
    server = http_server(app, settings)
    try:
        with suppress(KeyboardInterrupt):
            server.run()
    finally:
        server.address.forget()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


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

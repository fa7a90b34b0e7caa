"""`ownfeed serve --workers N`: server processes behind one listening socket, each started anew where it ends.

uvicorn's supervisor starts the processes, asks each for a sign of life, and replaces what is dead or hung; on SIGHUP it
brings a new process into service before it ends an old one, one after another, so that an upgrade leaves no gap.
What the processes share is in the database and the data folder; docs/operate.md lists what each keeps to itself.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from functools import partial

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from backend.errors import OwnfeedError
from backend.first_start_process import FirstStartProcess
from backend.progress import Steps
from backend.server import check_port, http_config, ports, serve_until_stopped
from backend.server_address import ServerAddress
from backend.settings import BackendSettings, url_of

SIGN_OF_LIFE_SEC = 60
"""A process that says nothing for so long is replaced. Building the index of a large pool may hold it for seconds."""
READY_SEC = 1
"""One that is asked whether it serves may take so long; then it is asked again, and signals are heard in between."""


Application = Callable[[str], ASGIApp]
"""What makes a process's application of the settings' JSON: a function of a module, since its name is sent."""


class WorkerConfig(uvicorn.Config):
    """A server's configuration that is sent to a new process: the application and its limits are made there."""

    def __init__(self, settings: BackendSettings, workers: int, application: Application) -> None:
        super().__init__(
            partial(application, settings.model_dump_json()),
            factory=True,
            workers=workers,
            timeout_worker_healthcheck=SIGN_OF_LIFE_SEC,
            **http_config(settings) | {"http": "auto"},
        )
        self._settings = settings.model_dump_json()

    def load(self) -> None:
        """Make the limits of this process's connections, then the application."""
        settings = BackendSettings.model_validate_json(self._settings)
        self.http = http_config(settings)["http"]
        super().load()


def worker_app(settings_json: str) -> ASGIApp:
    """The application of one process. Ends the process, and with it the server, where it can't be built."""
    from backend.app import create_app
    from device_app.process import steady_heap

    steady_heap()
    try:
        return create_app(BackendSettings.model_validate_json(settings_json))
    except (OwnfeedError, OSError) as refused:
        sys.stderr.write(f"ownfeed: {refused}\n")
        sys.exit(STARTUP_FAILURE)


class SharedPort(Multiprocess):
    """The supervisor; once all processes serve, it writes into the data folder where they do."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], address: ServerAddress) -> None:
        super().__init__(config, sockets)
        self._address, self._said = address, False

    def keep_subprocess_alive(self) -> None:
        """Replace what is dead or hung, twice a second; the first time that all serve, say where."""
        super().keep_subprocess_alive()
        if not self._said and all(process.is_ready(READY_SEC) for process in self.processes):
            host, port = self.sockets[-1].getsockname()[:2]  # the console's, where it has its own
            self._address.say(url_of(host, port))
            self._said = True


def serve_backend(settings: BackendSettings, workers: int, steps: Steps) -> None:
    """Prepare what a first start lacks, then serve until a signal comes: in this process, or in several."""
    if workers > 1:
        with FirstStartProcess(settings) as preparing:
            preparing.follow(steps)
        serve_by_workers(settings, workers)
        return
    from backend.app import create_app
    from backend.first_start import make_servable

    make_servable(settings, steps)
    check_port(settings.host, settings.port)
    serve_until_stopped(create_app(settings), settings)


def serve_by_workers(settings: BackendSettings, workers: int, application: Application = worker_app) -> None:
    """Serve in so many processes until a signal comes or one can't start. Raises OSError where the port is taken."""
    check_port(settings.host, settings.port)
    address = ServerAddress(settings.servers_dir)
    listening = ports(settings)
    try:
        config = WorkerConfig(settings, workers, application)
        SharedPort(config, listening, address).run()
    finally:
        address.forget()
        for each in listening:
            each.close()

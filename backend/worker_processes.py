"""`ownfeed serve --workers N`: server processes behind one listening socket, each started anew where it ends.

uvicorn's supervisor starts the processes, and on SIGHUP brings a new process into service before it ends an old one,
one after another, so that an upgrade leaves no gap. This module asks each for a sign of life, and replaces what is dead
or hung.
What the processes share is in the database and the data folder; docs/operate.md lists what each keeps to itself.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from backend.errors import OwnfeedError
from backend.first_start_process import FirstStartProcess
from backend.progress import Steps
from backend.server import check_port, http_config, ports, serve_until_stopped
from backend.server_address import ServerAddress
from backend.settings import BackendSettings, url_of

SIGN_OF_LIFE_SEC = 60
"""A process that says nothing for so long is replaced. Building the index of a large pool may hold it for seconds."""
START_SEC = 600
"""What a renewed process has to begin to serve: the first of a new version may bring a large database to its schema."""
READY_SEC = 1
"""One that is asked whether it serves may take so long; then it is asked again, and signals are heard in between."""
AGAIN_SEC = 5
"""Where one ends sooner after its start, the next is started so long after that: what is amiss may take a while."""
STOPS = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("uvicorn.error")  # which the supervisor has tell on standard error

Application = Callable[[str], ASGIApp]
"""What makes a process's application of the settings' JSON: a function of a module, since its name is sent."""


class WorkerConfig(uvicorn.Config):
    """A server's configuration that is sent to a new process: the application and its limits are made there."""

    def __init__(self, settings: BackendSettings, workers: int, application: Application) -> None:
        super().__init__(
            partial(application, settings.model_dump_json()),
            factory=True,
            workers=workers,
            timeout_worker_healthcheck=START_SEC,
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

    if hasattr(signal, "SIGHUP"):
        # A terminal that is closed sends it to all processes at once; the supervisor then renews one after another.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    steady_heap()
    try:
        return create_app(BackendSettings.model_validate_json(settings_json))
    except (OwnfeedError, OSError) as refused:
        sys.stderr.write(f"ownfeed: {refused}\n")
        sys.exit(STARTUP_FAILURE)


@dataclass
class SignsOfLife:
    """When the supervisor first saw a process, and when that gave its last sign of life: of time.monotonic."""

    since: float
    heard: float


class StopAsked(threading.Event):
    """Whether the supervisor is to stop: also where it has heard the signal and hasn't come to it.

    It renews its processes within the handling of one signal, for minutes where they start slowly.
    """

    def __init__(self, heard: Sequence[int]) -> None:
        super().__init__()
        self._heard = heard

    def is_set(self) -> bool:
        """Whether it was set, or a signal that sets it waits."""
        return super().is_set() or any(each in STOPS for each in self._heard)


class SharedPort(Multiprocess):
    """The supervisor; once all processes serve, it writes into the data folder where they do.

    failed: whether it has stopped because a process could not be started.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], address: ServerAddress) -> None:
        super().__init__(config, sockets)
        self.should_exit = StopAsked(self.signal_queue)
        self._address, self._said, self.failed = address, False, False
        self._watched: dict[Process, SignsOfLife] = {}

    def keep_subprocess_alive(self) -> None:
        """Replace what is dead or hung, twice a second; the first time that all serve, say where.

        Until then one that can't be started stops the server, since each would fail the same way. Later it doesn't,
        and is started again: the others serve, and what it lacked, such as the database, may come back.
        """
        now = time.monotonic()
        self._watched = {each: self._watched.get(each, SignsOfLife(now, now)) for each in self.processes}
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if self._lives(process):
                continue
            process.kill()  # one that is hung
            process.join()
            if process.exitcode == STARTUP_FAILURE and not self._said:
                self.failed = True
                self.should_exit.set()
            elif time.monotonic() - self._watched[process].since >= AGAIN_SEC:
                _log.warning("Process %s ended with %s; another is started.", process.pid, process.exitcode)
                self.processes[place] = Process(self.config, self.sockets)
                self.processes[place].start()
        if not self._said and all(process.is_ready(READY_SEC) for process in self.processes):
            host, port = self.sockets[-1].getsockname()[:2]  # the console's, where it has its own
            self._address.say(url_of(host, port))
            self._said = True

    def _lives(self, process: Process) -> bool:
        """Whether it runs and has given a sign of life of late; one that starts or computes may be silent for long."""
        if not process.process.is_alive():
            return False
        watched = self._watched[process]
        if process.ping(READY_SEC):
            watched.heard = time.monotonic()
        return time.monotonic() - watched.heard < SIGN_OF_LIFE_SEC


def serve_backend(settings: BackendSettings, workers: int | None, steps: Steps) -> None:
    """Prepare what a first start lacks, then serve until a signal comes: in so many processes; None: in this one."""
    if workers is not None:
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
    """Serve in so many processes until a signal comes. Raises OSError where the port is taken.

    Exits with uvicorn's own status if the start fails, so that what watches services doesn't take it for a stop.
    """
    check_port(settings.host, settings.port)
    address = ServerAddress(settings.servers_dir)
    listening = ports(settings)
    try:
        config = WorkerConfig(settings, workers, application)
        supervisor = SharedPort(config, listening, address)
        supervisor.run()
    finally:
        address.forget()
        for each in listening:
            each.close()
    if supervisor.failed:
        sys.exit(STARTUP_FAILURE)

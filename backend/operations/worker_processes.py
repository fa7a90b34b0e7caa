"""`ownfeed serve`: prepares a first start, then serves from this process, or from several on one port.

Several are uvicorn's own workers under its supervisor. They share the database and the data folder; docs/operate.md
lists what each keeps to itself.
"""

import gc
import os
import sys
from collections.abc import Callable
from functools import partial

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from backend.errors import OwnfeedError
from backend.server.address import ServerAddress
from backend.server.http_server import BACKLOG, check_port, http_config, not_held, ports, serve_until_stopped
from backend.server.progress import Steps
from backend.settings import BackendSettings, url_of
from backend.setup.first_start_process import FirstStartProcess

WORKER_SEC = 120
"""A worker without a sign of life for this long is replaced; a renewed one has this long to start serving."""
STEADY_HEAP = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "1048576", "MALLOC_TRIM_THRESHOLD_": "1048576"}
"""Read by glibc at each process's start: few heaps, and large arrays return to the system when freed."""

Application = Callable[[str], ASGIApp]
"""Builds a worker's application from the settings' JSON. A module-level function, since processes receive its name."""


def serve_backend(settings: BackendSettings, workers: int | None, steps: Steps) -> None:
    """Prepare what a first start lacks, report which limits the port lacks, then serve until a signal arrives.

    workers: number of processes; None: only this one.
    """
    if workers is not None:
        with FirstStartProcess(settings) as preparing:
            preparing.follow(steps)
        sys.stderr.write(f"ownfeed: {not_held(settings)}\n")
        serve_by_workers(settings, workers)
        return
    from backend.setup.first_start import make_servable

    if settings.own_feeds_token_file is None:
        make_servable(settings, steps)  # else it is prepared while the server serves: `backend.setup.first_release`
    check_port(settings.host, settings.port)
    sys.stderr.write(f"ownfeed: {not_held(settings)}\n")
    serve_until_stopped(_built(settings), settings)


def worker_app(settings_json: str) -> ASGIApp:
    """The application of one worker.

    Ends the process, and with it the server, if it can't be built.
    """
    try:
        return _built(BackendSettings.model_validate_json(settings_json))
    except (OwnfeedError, OSError) as refused:
        sys.stderr.write(f"ownfeed: {refused}\n")
        sys.exit(STARTUP_FAILURE)


def _built(settings: BackendSettings) -> ASGIApp:
    """The application, with everything loaded so far excluded from garbage collection.

    It stays until the end. With 50,000 articles the collector took 0.2 s to go through it, again and again, and no
    request was answered meanwhile.
    """
    from backend.app import create_app

    gc.disable()
    try:
        app = create_app(settings)
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()
    return app


def serve_by_workers(settings: BackendSettings, workers: int, application: Application = worker_app) -> None:
    """Serve from several processes until a signal arrives. Raises OSError if the port is taken.

    uvicorn's supervisor replaces a worker that has ended or hangs, and renews all, one after another, on SIGHUP. Exits
    with uvicorn's own status if a worker can't start, so that a process manager sees a failure and restarts the server.
    """
    check_port(settings.host, settings.port)
    for name, value in STEADY_HEAP.items():
        os.environ.setdefault(name, value)
    config = uvicorn.Config(
        partial(application, settings.model_dump_json()),
        factory=True,
        workers=workers,
        timeout_worker_healthcheck=WORKER_SEC,
        **http_config(settings),
    )
    address, listening = ServerAddress(settings.servers_dir), ports(settings)
    supervisor = Multiprocess(config, listening)
    try:
        for each in listening:
            each.listen(BACKLOG)  # clients that connect before the first worker serves wait for it
        address.say(url_of(*listening[-1].getsockname()[:2]))  # the console's, if it has its own port
        supervisor.run()
    finally:
        address.forget()
        for each in listening:
            each.close()
    if any(each.exitcode == STARTUP_FAILURE for each in supervisor.processes):
        sys.exit(STARTUP_FAILURE)

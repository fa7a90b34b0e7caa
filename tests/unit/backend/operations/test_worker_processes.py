"""`ownfeed serve`: how several processes start and fail, and how one process ends."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from backend.errors import BackendSettingsRefused
from backend.operations.worker_processes import serve_by_workers, worker_app
from backend.server.address import ServerAddress
from backend.settings import load_settings
from tests.doubles.served_backend import wait_until


def test_failed_start_exits_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, known = load_settings(data_dir=tmp_path, port=0), []

    def run(self: Multiprocess) -> None:
        known.append(ServerAddress(settings.servers_dir).known())
        self.processes = cast(Any, [SimpleNamespace(exitcode=0), SimpleNamespace(exitcode=STARTUP_FAILURE)])

    monkeypatch.setattr(Multiprocess, "__init__", lambda self, *_: None)  # it would take this process's signals
    monkeypatch.setattr(Multiprocess, "run", run)
    with pytest.raises(SystemExit) as ended:
        serve_by_workers(settings, 2)
    assert ended.value.code == STARTUP_FAILURE
    assert known[0] is not None
    assert ServerAddress(settings.servers_dir).known() is None


def test_worker_that_cannot_start_reports_why_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def create(_: object) -> None:
        raise BackendSettingsRefused("The database isn't there.")

    monkeypatch.setattr("backend.app.create_app", create)
    with pytest.raises(SystemExit) as ended:
        worker_app(load_settings(data_dir=tmp_path).model_dump_json())
    assert ended.value.code == STARTUP_FAILURE
    assert capsys.readouterr().err == "ownfeed: The database isn't there.\n"


def test_collector_leaves_out_what_was_loaded_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Oracle: the interpreter's own lists of the objects that its collector looks at."""

    class App:
        pass

    def create(_: object) -> App:
        assert not gc.isenabled()
        return App()

    monkeypatch.setattr("backend.app.create_app", create)
    try:
        app = worker_app(load_settings(data_dir=tmp_path).model_dump_json())
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        assert not any(each is app for each in gc.get_objects())
    finally:
        gc.unfreeze()
    assert any(each is app for each in gc.get_objects())


ENDS = {signal.SIGHUP: 128 + signal.SIGHUP, signal.SIGINT: 0, signal.SIGTERM: -signal.SIGTERM}
"""Of one process by a signal: systemd restarts it after the first and takes the others for a stop."""
SERVES = """
import asyncio, sys, time
from contextlib import asynccontextmanager
from pathlib import Path
from fastapi import FastAPI
from backend.server.http_server import serve_until_stopped
from backend.settings import load_settings

@asynccontextmanager
async def lifespan(_):
    asyncio.create_task(asyncio.to_thread(time.sleep, 600))  # as the step of a round that nobody waits for
    yield
    Path(sys.argv[1], "stopping").touch()
    await asyncio.sleep(1)  # others come meanwhile

serve_until_stopped(FastAPI(lifespan=lifespan), load_settings(data_dir=sys.argv[1], port=0))
raise SystemExit("the interpreter goes on")
"""


@pytest.mark.parametrize(("number", "status"), ENDS.items(), ids=lambda each: str(int(each)))
def test_first_stop_signal_ends_the_process_cleanly(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """The interpreter would abort at its end where a thread computes in a native library, and the event loop would wait
    for it.

    Regression: SIGTERM left the server's address.
    """
    servers = load_settings(data_dir=tmp_path).servers_dir
    with subprocess.Popen([sys.executable, "-c", SERVES, str(tmp_path)], stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: process.poll() is not None or ServerAddress(servers).known() is not None)
            process.send_signal(number)
            wait_until((tmp_path / "stopping").exists)  # signals that come at once are heard by their numbers
            for other in ENDS:
                process.send_signal(other)
            _, reported = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, reported) == (status, "")
    assert not list(servers.iterdir()), "its address went with it"

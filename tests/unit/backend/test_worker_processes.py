"""The supervisor of several processes, and what one process does that has none.

Oracle: what each of them would answer when it is asked whether it serves, and a clock that the test sets.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Process

from backend import worker_processes
from backend.server_address import ServerAddress
from backend.settings import BackendSettings, load_settings
from backend.worker_processes import AGAIN_SEC, READY_SEC, SIGN_OF_LIFE_SEC, SharedPort, serve_by_workers, worker_app
from tests.doubles.served_backend import wait_until


class StartingProcess:
    """Serves from its so-many-th answer on; answers and lives until it is told otherwise.

    exitcode: with what it has ended; None while it lives.
    """

    pid = 1

    def __init__(self, serves: Iterable[bool] = repeat(True)) -> None:
        self._serves = iter(serves)
        self.silent, self.exitcode, self.started = False, cast(int | None, None), False
        self.process = self
        self.asked: list[float] = []

    def is_alive(self) -> bool:
        return self.exitcode is None

    def ping(self, timeout: float) -> bool:
        self.asked.append(timeout)
        return not self.silent

    def is_ready(self, timeout: float) -> bool:
        return self.exitcode is None and next(self._serves)

    def start(self) -> None:
        self.started = True

    def kill(self) -> None:
        self.exitcode = -signal.SIGKILL if self.exitcode is None else self.exitcode

    def join(self) -> None:
        assert self.exitcode is not None


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    kept = {each: signal.getsignal(each) for each in signal.valid_signals()}
    yield
    for number, handler in kept.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the supervisor sees, in seconds."""
    now = [100.0]
    monkeypatch.setattr("backend.worker_processes.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedPort]:
    """Of two processes that live, and of more like them where it starts any."""
    monkeypatch.setattr(worker_processes, "Process", lambda *_: StartingProcess())
    address = ServerAddress(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = SharedPort(uvicorn.Config(cast(Any, None), workers=2), [listening], address)
        made.processes = cast(list[Process], [StartingProcess(), StartingProcess()])
        yield made
    address.forget()


def look(supervisor: SharedPort) -> list[StartingProcess]:
    """Let it look once; the processes that there are then."""
    supervisor.keep_subprocess_alive()
    return cast(list[StartingProcess], list(supervisor.processes))


def test_where_they_listen_is_said_once_all_serve_however_long_that_takes(supervisor: SharedPort) -> None:
    slow = [StartingProcess([False, False, True, True]), StartingProcess([False, True])]
    supervisor.processes = cast(list[Process], slow)
    said = []
    for _ in range(5):  # a further question would find no answer
        supervisor.keep_subprocess_alive()
        said.append(supervisor._address.known())
    port = supervisor.sockets[0].getsockname()[1]
    assert said == [None, None, None, *2 * [f"http://127.0.0.1:{port}"]]


def test_what_can_not_be_started_stops_the_server_only_before_all_have_served(
    supervisor: SharedPort, clock: list[float]
) -> None:
    first, second = look(supervisor)
    first.exitcode = STARTUP_FAILURE  # a second one's start, say, while the database is gone
    assert look(supervisor) == [first, second], "it began a moment ago, and would fail again"
    clock[0] += AGAIN_SEC
    again, other = look(supervisor)
    assert (again.started, other) == (True, second)
    assert not supervisor.should_exit.is_set()

    early = StartingProcess(repeat(False))
    never = SharedPort(supervisor.config, supervisor.sockets, supervisor._address)
    never.processes = cast(list[Process], [early, second])
    early.exitcode = STARTUP_FAILURE
    assert look(never) == [early, second]
    assert never.should_exit.is_set()
    assert never.failed
    assert not supervisor.failed


def test_a_silent_process_is_replaced_after_a_minute_and_signals_are_heard_meanwhile(
    supervisor: SharedPort, clock: list[float]
) -> None:
    first, second = look(supervisor)
    first.silent = True
    clock[0] += SIGN_OF_LIFE_SEC - 1
    assert look(supervisor) == [first, second]
    clock[0] += 1
    again, other = look(supervisor)
    assert (again.started, first.exitcode, other, second.exitcode) == (True, -signal.SIGKILL, second, None)
    assert {*first.asked, *second.asked} == {READY_SEC}, "so long a look waits for one process"


def test_a_stop_is_heard_while_a_new_process_takes_long_to_start(supervisor: SharedPort) -> None:
    first, second = look(supervisor)
    supervisor.signal_queue += [signal.SIGHUP, signal.SIGTERM]
    supervisor.handle_signals()
    assert cast(list[object], supervisor.processes) == [first, second], "neither was renewed"
    assert supervisor.should_exit.wait(0)


def test_a_start_that_fails_is_no_success_to_whoever_watches_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: SharedPort) -> None:
        self.failed = True

    monkeypatch.setattr(SharedPort, "run", run)
    with pytest.raises(SystemExit) as ended:
        serve_by_workers(load_settings(data_dir=tmp_path, port=0), 2)
    assert ended.value.code == STARTUP_FAILURE


ENDS = {signal.SIGHUP: 128 + signal.SIGHUP, signal.SIGINT: 0, signal.SIGTERM: -signal.SIGTERM}
"""Of one process by a signal: systemd starts it anew after the first and takes the others for a stop."""
SERVES = """
import asyncio, sys, time
from contextlib import asynccontextmanager
from pathlib import Path
from fastapi import FastAPI
from backend.server import serve_until_stopped
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
def test_one_process_ends_in_order_by_the_first_signal_that_stops_it(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """The interpreter's own end would abort where a thread computes in a native library, and that of the event loop
    waits for it. Red before: SIGTERM left the server's address."""
    servers = load_settings(data_dir=tmp_path).servers_dir
    with subprocess.Popen([sys.executable, "-c", SERVES, str(tmp_path)], stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: process.poll() is not None or ServerAddress(servers).known() is not None)
            process.send_signal(number)
            wait_until((tmp_path / "stopping").exists)  # signals that come at once are heard by their numbers
            for other in ENDS:
                process.send_signal(other)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, told) == (status, "")
    assert not list(servers.iterdir()), "its address went with it"


def test_a_process_under_the_supervisor_outlives_a_signal_that_goes_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(settings: BackendSettings) -> FastAPI:
        signal.raise_signal(signal.SIGHUP)
        return FastAPI()

    monkeypatch.setattr("backend.app.create_app", create)
    monkeypatch.setattr("device_app.process.steady_heap", lambda: None)
    assert isinstance(worker_app(load_settings(data_dir=tmp_path).model_dump_json()), FastAPI)

"""Computes batches as tasks of a Ray cluster, through a separate process (`ray_driver`).

Ray ends a process that has lost its cluster. So that process is never the server, which continues without a cluster.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, TypeVar

from backend.embedding.batch_executor import BatchTask, ClusterUnavailable, ResultRefused
from backend.embedding.driver_pipe import AnswerUnreadable, receive_answer, send
from backend.errors import OwnfeedError

NODE_THREADS = 1
"""Threads of a task, which has one CPU of its node."""
READY_WITHIN_SEC, RESULT_WITHIN_SEC = 60.0, 300.0
"""Time limits for joining a cluster, and for a batch, including a retry after a node has died."""
AWAY_SEC = 30.0
"""How long a cluster that didn't answer isn't tried again: each try takes seconds of processor time."""
END_WITHIN_SEC = 10.0
KEPT_VARIABLES = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
KEPT_BEGINNINGS = ("PYTHON", "RAY_")
"""Prefixes of environment variables that are passed on. The cluster gets no settings and no credentials of the storage
or the database."""

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class ClusterTaskFailed(OwnfeedError):
    """A batch can't be computed on any node, or a node returned an invalid result."""

    code, status, title = "embed-task-failed", 500, "A batch of article vectors could not be computed"


class RayExecutor:
    """Computes batches on the nodes of a cluster.

    Args:
        address: host and port of its head. A node must run on this machine; it may be one without CPUs.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = Lock()
        self._driver: _Driver | None = None
        self._away: tuple[str, float] | None = None

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield the result of each batch, in order. Raises ClusterUnavailable, ClusterTaskFailed."""
        given: list[Batch] = []  # before the first result
        answered, rest = False, iter(batches)

        def noted() -> Iterator[Batch]:
            for batch in rest:
                if not answered:
                    given.append(batch)
                yield batch

        with self._turn:
            for again in (True, False):
                driver, whole = self._ready(), False
                try:
                    for result in driver.map(task, chain(list(given), noted())):
                        if not answered:
                            answered = True
                            given.clear()
                        yield result
                    whole = True
                    return
                except _Ended as ended:
                    if answered or not again:  # else it may have ended as idle when the request arrived
                        why = f"the process that gives it tasks has ended ({driver.last_said()})"
                        raise self._unavailable(why) from ended
                except _Refused as refused:
                    raise self._unavailable(str(refused)) from refused
                finally:
                    if not whole:  # its pending results would be taken for another task's
                        driver.end()
                        self._driver = None

    def close(self) -> None:
        """End the process."""
        with self._turn:
            if self._driver is not None:
                self._driver.end()
                self._driver = None

    def _ready(self) -> _Driver:
        if self._driver is not None and self._driver.alive():
            return self._driver
        if self._away is not None and time.monotonic() < self._away[1]:
            raise ClusterUnavailable(self._address, self._away[0])
        driver = _Driver(self._address)
        try:
            driver.join()
        except _Refused as refused:
            driver.end()
            raise self._unavailable(str(refused)) from refused
        except _Ended as ended:
            why = f"the process that joins it has ended ({driver.last_said()})"
            driver.end()
            raise self._unavailable(why) from ended
        self._driver, self._away = driver, None
        return driver

    def _unavailable(self, why: str) -> ClusterUnavailable:
        why = why if why.endswith(".") else f"{why}."
        self._away = why, time.monotonic() + AWAY_SEC
        return ClusterUnavailable(self._address, why)


class _Refused(Exception):
    """The process reports an error of the cluster."""


class _Ended(Exception):
    """The process has ended on its own."""


def environment_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process: selected variables of the server, and its own, which limit Ray's threads here."""
    kept = {
        name: value for name, value in variables.items() if name in KEPT_VARIABLES or name.startswith(KEPT_BEGINNINGS)
    }
    return kept | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}


class _Driver:
    """The process and the pipe to it."""

    def __init__(self, address: str) -> None:
        self._connection, its = Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  it stays as long as the process
        command = [sys.executable, "-m", "backend.embedding.ray_driver", str(its.fileno()), address]
        try:
            self._process = subprocess.Popen(
                command,
                env=environment_of(os.environ),
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
            )
        finally:
            its.close()
        self._key: str | None = None
        self._window = 0

    def alive(self) -> bool:
        """Whether it waits for batches: it ends on its own when none arrive."""
        return self._process.poll() is None and not self._connection.poll()

    def join(self) -> None:
        """Wait until the cluster is joined. Raises _Ended, _Refused."""
        self._window = int(str(self._answer(READY_WITHIN_SEC)))

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield results in order.

        Enough batches are in progress to keep all nodes busy, however many there are.

        Raises _Ended, _Refused, ClusterTaskFailed.
        """
        if task.key != self._key:
            self._send(("task", task.key, task.portable()))
            self._key = task.key
        under_way: deque[Batch] = deque()
        for batch in batches:
            self._send(("batch", batch))
            under_way.append(batch)
            if len(under_way) >= self._window:
                yield self._result(task, under_way.popleft())
        while under_way:
            yield self._result(task, under_way.popleft())
        with suppress(_Ended):  # all results have arrived, and the next task finds out
            self._send(("rest",))

    def last_said(self) -> str:
        """The last line of its output before it ended on its own; '' for none."""
        self._said.seek(0)
        return (self._said.read().decode(errors="replace").strip().splitlines() or [""])[-1][:300]

    def end(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait(END_WITHIN_SEC)
        self._said.close()

    def __del__(self) -> None:
        if not self._said.closed:
            self.end()

    def _send(self, message: object) -> None:
        try:
            send(self._connection, message)
        except OSError as ended:
            raise _Ended from ended

    def _result(self, task: BatchTask[Batch, Result], batch: Batch) -> Result:
        found: Any = self._answer(RESULT_WITHIN_SEC)
        try:
            task.check(batch, found)
        except ResultRefused as wrong:
            raise ClusterTaskFailed(f"What a node gave for a batch can't be its result: {wrong}.") from wrong
        result: Result = found
        return result

    def _answer(self, within_sec: float) -> object:
        connection: Connection = self._connection
        try:
            if not connection.poll(within_sec):
                raise _Refused(f"it has not answered within {within_sec:g} s")
            kind, content = receive_answer(connection)
        except (EOFError, OSError) as ended:
            raise _Ended from ended
        except AnswerUnreadable as wrong:
            raise ClusterTaskFailed(f"An answer of the cluster can't be read: {wrong}.") from wrong
        if kind == "refused":
            raise _Refused(content)
        if kind not in ("ready", "result"):
            raise ClusterTaskFailed(str(content))
        return content

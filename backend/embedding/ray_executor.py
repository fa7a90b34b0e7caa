"""Batches as tasks of a Ray cluster, through a process of its own (`ray_driver`).

Ray ends a process that has lost its cluster. So it is never the server's, which goes on without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock
from typing import TypeVar

from backend.embedding.batch_executor import BatchTask, ClusterUnavailable
from backend.embedding.pickled_pipe import receive, send
from backend.errors import OwnfeedError

NODE_THREADS = 1
"""Of a task, which has one CPU of its node."""
READY_WITHIN_SEC, RESULT_WITHIN_SEC = 60.0, 300.0
"""How long a cluster may take to be joined, and for a batch: a node that died is one whose tasks are done again."""
AWAY_SEC = 30.0
"""So long nobody asks a cluster again that didn't answer: each try takes seconds of a processor."""
END_WITHIN_SEC = 10.0

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class ClusterTaskFailed(OwnfeedError):
    """A batch could not be computed on its node, and would not be on another."""

    code, status, title = "embed-task-failed", 500, "A batch of news could not be computed"


class RayExecutor:
    """The nodes of a cluster.

    Args:
        address: host and port of its head. A node has to run on this machine, if one without CPUs.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = Lock()
        self._driver: _Driver | None = None
        self._away: tuple[str, float] | None = None

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """What comes of each batch, in their order. Raises ClusterUnavailable, ClusterTaskFailed."""
        with self._turn:
            driver, whole = self._ready(), False
            try:
                yield from driver.map(task, batches)
                whole = True
            except (EOFError, OSError) as ended:
                why = f"the process that gives it tasks has ended ({driver.last_said()})"
                raise self._unavailable(why) from ended
            except _Refused as refused:
                raise self._unavailable(str(refused)) from refused
            finally:
                if not whole:  # what it has under way would be taken for another task's
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
        except (EOFError, OSError) as ended:
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
    """What the process says of the cluster."""


class _Driver:
    """The process, and what is said to it."""

    def __init__(self, address: str) -> None:
        self._connection, its = Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  it stays as long as the process
        command = [sys.executable, "-m", "backend.embedding.ray_driver", str(its.fileno()), address]
        # Ray's threads beside what computes are none of this machine's business.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
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
        """Whether it waits for batches: it ends by itself when none come."""
        return self._process.poll() is None and not self._connection.poll()

    def join(self) -> None:
        """Wait until the cluster is joined. Raises EOFError, OSError, _Refused."""
        self._window = int(self._answer(READY_WITHIN_SEC))

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Results in order; so many batches are under way as keep all nodes busy, however many there are."""
        if task.key != self._key:
            send(self._connection, ("task", task.key, task.portable()))
            self._key = task.key
        under_way = 0
        for batch in batches:
            send(self._connection, ("batch", batch))
            under_way += 1
            if under_way >= self._window:
                yield self._answer(RESULT_WITHIN_SEC)
                under_way -= 1
        for _ in range(under_way):
            yield self._answer(RESULT_WITHIN_SEC)

    def last_said(self) -> str:
        """The last line that it said before it ended by itself; '' for none."""
        self._said.seek(0)
        return (self._said.read().decode(errors="replace").strip().splitlines() or [""])[-1][:300]

    def end(self) -> None:
        """End it."""
        self._connection.close()
        self._process.kill()
        self._process.wait(END_WITHIN_SEC)
        self._said.close()

    def __del__(self) -> None:
        if not self._said.closed:
            self.end()

    def _answer(self, within_sec: float) -> object:
        connection: Connection = self._connection
        if not connection.poll(within_sec):
            raise _Refused(f"it has not answered within {within_sec:g} s")
        kind, content = receive(connection)
        if kind == "refused":
            raise _Refused(content)
        if kind == "failed":
            raise ClusterTaskFailed(content)
        return content

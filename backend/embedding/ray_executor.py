"""Computes batches as tasks of a Ray cluster, through a separate process (`ray_driver`).

Ray ends a process that has lost its cluster. So that process is never the server, which continues without a cluster.

Messages to the process are pickled with pickle itself, since `Connection.send` adds libraries' rules for processes of
one parent, by which torch shares a tensor's memory instead of sending it. Answers are not pickled, since unpickling can
execute code: an answer is the length of a header (8 bytes, little-endian), the header in JSON, and the content's arrays
one after another. In the header an array is {"array": [dtype, shape]}, other types are {"list": ...} and so on.
"""

from __future__ import annotations

import json
import math
import os
import pickle
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

import numpy as np
from numpy.typing import NDArray

from backend.embedding.batch_executor import BatchTask, ClusterUnavailable, ResultRefused
from backend.errors import OwnfeedError

LENGTH_BYTES = 8
DTYPES = ("float16", "float32", "float64", "int32", "int64")


class AnswerUnreadable(ValueError):
    """An answer does not have this form."""


def send(connection: Connection, message: object) -> None:
    """Send a message. Raises OSError."""
    connection.send_bytes(pickle.dumps(message, protocol=5))


def messages(connection: Connection, idle_sec: float) -> Iterator[Any]:
    """Yield messages until none has arrived for `idle_sec` at the start or after a ("rest",).

    After a task the other end may take any time until its ("rest",). Raises EOFError, OSError once it has ended.
    """
    rests = True
    while not rests or connection.poll(idle_sec):
        message = receive(connection)
        rests = message[0] == "rest"
        yield message


def receive(connection: Connection) -> Any:
    """Receive a message. Raises EOFError, OSError."""
    return pickle.loads(connection.recv_bytes())


def send_answer(connection: Connection, kind: str, content: object) -> None:
    """Send an answer of arrays, numbers, strings and None, in lists, tuples and dicts with string keys.

    Raises AnswerUnreadable for other content, before anything is sent; OSError.
    """
    arrays: list[NDArray[Any]] = []
    header = json.dumps([kind, _described(content, arrays)]).encode()
    parts = [len(header).to_bytes(LENGTH_BYTES, "little"), header, *(each.tobytes() for each in arrays)]
    connection.send_bytes(b"".join(parts))


def receive_answer(connection: Connection) -> tuple[str, Any]:
    """Receive an answer's kind and content. Raises AnswerUnreadable, EOFError, OSError."""
    message = connection.recv_bytes()
    start = LENGTH_BYTES + int.from_bytes(message[:LENGTH_BYTES], "little")
    try:
        kind, described = json.loads(message[LENGTH_BYTES:start])
    except (ValueError, TypeError, RecursionError) as broken:
        raise AnswerUnreadable("its header can't be read") from broken
    arrays = _Arrays(message, start)
    content = arrays.content(described)
    if arrays.place != len(message) or not isinstance(kind, str):
        raise AnswerUnreadable("it has more bytes than its header declares")
    return kind, content


def _described(content: object, arrays: list[NDArray[Any]]) -> object:
    """The header's description of the content; its arrays are appended to `arrays`."""
    if content is None or isinstance(content, str | int | float):
        return content
    if isinstance(content, np.ndarray) and content.dtype.name in DTYPES:
        arrays.append(content)
        return {"array": [content.dtype.name, list(content.shape)]}
    if isinstance(content, list | tuple):
        return {type(content).__name__: [_described(each, arrays) for each in content]}
    if isinstance(content, dict) and all(isinstance(name, str) for name in content):
        return {"dict": {name: _described(each, arrays) for name, each in content.items()}}
    raise AnswerUnreadable(f"{type(content).__name__} is not allowed in it")


class _Arrays:
    """A message's content, whose arrays are read in order from `place` on."""

    def __init__(self, message: bytes, place: int) -> None:
        self._message, self.place = message, place

    def content(self, described: Any) -> Any:
        """Rebuild the described content. Raises AnswerUnreadable."""
        if described is None or isinstance(described, str | int | float):
            return described
        match described:
            case {"array": [str(dtype), list(shape)]}:
                return self._array(dtype, shape)
            case {"list": list(each)}:
                return [self.content(one) for one in each]
            case {"tuple": list(each)}:
                return tuple(self.content(one) for one in each)
            case {"dict": dict(named)}:
                return {name: self.content(one) for name, one in named.items()}
        raise AnswerUnreadable("its header has a part of an unknown kind")

    def _array(self, dtype: str, shape: list[Any]) -> NDArray[Any]:
        if dtype not in DTYPES or not all(type(each) is int and each >= 0 for each in shape):
            raise AnswerUnreadable(f"an array of {dtype} and shape {shape} is not allowed in it")
        count, start = math.prod(shape), self.place
        self.place += count * np.dtype(dtype).itemsize
        if self.place > len(self._message):
            raise AnswerUnreadable(f"an array of {dtype} and shape {shape} is cut off")
        return np.frombuffer(self._message, dtype, count, start).reshape(shape).copy()


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
                driver, is_complete = self._ready(), False
                try:
                    for result in driver.map(task, chain(list(given), noted())):
                        if not answered:
                            answered = True
                            given.clear()
                        yield result
                    is_complete = True
                    return
                except _Ended as ended:
                    if answered or not again:  # else it may have ended as idle when the request arrived
                        why = f"the process that gives it tasks has ended ({driver.last_line()})"
                        raise self._unavailable(why) from ended
                except _Refused as refused:
                    raise self._unavailable(str(refused)) from refused
                finally:
                    if not is_complete:  # its pending results would be taken for another task's
                        driver.end()
                        self._driver = None

    def close(self) -> None:
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
            why = f"the process that joins it has ended ({driver.last_line()})"
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
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  it stays as long as the process
        command = [sys.executable, "-m", "backend.embedding.ray_driver", str(its.fileno()), address]
        try:
            self._process = subprocess.Popen(
                command,
                env=environment_of(os.environ),
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
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

    def last_line(self) -> str:
        """The last line of its output before it ended on its own; '' for none."""
        self._stderr.seek(0)
        return (self._stderr.read().decode(errors="replace").strip().splitlines() or [""])[-1][:300]

    def end(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait(END_WITHIN_SEC)
        self._stderr.close()

    def __del__(self) -> None:
        if not self._stderr.closed:
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
            raise ClusterTaskFailed(f"A node returned an invalid result for a batch: {wrong}.") from wrong
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
            raise ClusterTaskFailed(f"An answer from the cluster can't be read: {wrong}.") from wrong
        if kind == "refused":
            raise _Refused(content)
        if kind not in ("ready", "result"):
            raise ClusterTaskFailed(str(content))
        return content

"""Run a process for each view, which returns only a protected gradient."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from device_app.training.multiview.job import ViewFailed, ViewJob, read_frame, to_bytes, write_frame
from device_app.training.multiview.worker import version

WORKER = "device_app.training.multiview.worker"
LONGEST_SEC = 120.0
IDLE_SEC = 60.0
"""How long an idle worker is kept, for the other view and for the next round."""
NO_LOCKDOWN = "this system can't keep the views of a device apart (it needs Linux 5.13 or newer, with Landlock)."


class ViewWorkers:
    """The worker processes, started on demand and shared by all devices of this process.

    Args:
        most: the maximum number that compute at the same time; None for one per core.
    """

    def __init__(self, most: int | None = None) -> None:
        self._room = threading.BoundedSemaphore(most or os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._idle: list[tuple[float, subprocess.Popen[bytes]]] = []

    def answer(self, job: bytes) -> tuple[int, bytes]:
        """Return the exit code and answer of a job's process.

        Raises OSError if none could be started, or it took LONGEST_SEC.
        """
        with self._room:
            process = self._take()
            late = threading.Timer(LONGEST_SEC, _kill, (process,))
            late.daemon = True
            late.start()
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                write_frame(process.stdin.fileno(), job)
                found = read_frame(process.stdout.fileno())
            except BaseException:
                _end(process)
                raise
            finally:
                late.cancel()
        self._give_back(process)
        return found[0], found[1:]

    def close(self) -> None:
        """End all idle workers."""
        self._end_idle_since(float("inf"))

    def _take(self) -> subprocess.Popen[bytes]:
        with self._lock:
            while self._idle:
                _, process = self._idle.pop()
                if process.poll() is None:
                    return process
                _end(process)
        return subprocess.Popen(
            [sys.executable, "-m", WORKER],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # what it starts ends with it
        )

    def _give_back(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._idle.append((time.monotonic(), process))
        closing = threading.Timer(IDLE_SEC, lambda: self._end_idle_since(time.monotonic() - 0.9 * IDLE_SEC))
        closing.daemon = True
        closing.start()

    def _end_idle_since(self, until: float) -> None:
        with self._lock:
            expired = [process for since, process in self._idle if since <= until]
            self._idle = [(since, process) for since, process in self._idle if since > until]
        for process in expired:
            _end(process)


WORKERS = ViewWorkers()


class SpawnedViews:
    """A process per view.

    The device never reads a view's data in the clear; it receives clipped, noisy gradients. The device's own process is
    trusted: it serves the pages on which the reader reads and searches, and has both stores open. One view's
    computation is isolated from the other's store and gradient.
    """

    def __init__(self, workers: ViewWorkers = WORKERS) -> None:
        self._workers = workers

    def why_not(self) -> str | None:
        """Return why views can't be kept apart here; None if they can."""
        return None if version() else NO_LOCKDOWN

    def gradient(self, job: ViewJob) -> Mapping[str, NDArray[np.float64]] | None:
        """See ViewProcesses.

        Raises ViewFailed if the process fails, returns an invalid answer, or takes more than two minutes.
        """
        try:
            code, answer = self._workers.answer(to_bytes(job))
        except (OSError, EOFError) as broken:
            raise ViewFailed(f"view {job.view}: its process could not be run ({type(broken).__name__})") from None
        return _answer(job, code, answer)


def _answer(job: ViewJob, code: int, answer: bytes) -> Mapping[str, NDArray[np.float64]] | None:
    if code != 0:
        raise ViewFailed(f"view {job.view}: its process ended with {code}")
    if answer == b"nothing":
        return None
    try:
        found = load(answer)
    except (SafetensorError, ValueError) as broken:
        raise ViewFailed(f"view {job.view}: its process returned no tensors") from broken
    wanted = {f"g.{name}": value.shape for name, value in job.parameters.items()}
    if {name: each.shape for name, each in found.items()} != wanted:
        raise ViewFailed(f"view {job.view}: its process returned different tensors from those requested")
    return {name: np.asarray(each, dtype=np.float64) for name, each in found.items()}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill it and the view's process that it may wait for.

    Its pipes stay open: another thread may be reading them.
    """
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it, and release all its resources."""
    _kill(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _environment() -> dict[str, str]:
    """Return what Python needs to start, and one thread per library; nothing else of this process's environment."""
    needed = ("SYSTEMROOT", "LD_LIBRARY_PATH", "PATH")
    kept = {name: os.environ[name] for name in needed if name in os.environ}
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return (
        kept | one | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1"}
    )

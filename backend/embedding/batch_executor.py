"""Computes batches of titles in this process, in one that ends when idle, or on a Ray cluster (`ray_executor`).

Batches are cut before they are computed, each is computed with an explicit number of threads, and results are returned
in the order of batches. So vectors and sums are bit-identical for any number of nodes.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib.util import find_spec
from itertools import chain
from multiprocessing import get_context
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from pydantic import BaseModel, ConfigDict

from backend.errors import BackendSettingsRefused, Unavailable
from backend.server.child_processes import end_with_parent
from backend.settings import BackendSettings

Batch = TypeVar("Batch")
Batch_contra = TypeVar("Batch_contra", contravariant=True)
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

_log = logging.getLogger(__name__)


class ClusterUnavailable(Unavailable):
    """No Ray cluster answers at the address of the setting `embed_cluster`, or it stopped answering."""

    code, status, title = "embed-cluster-unavailable", 503, "The cluster that computes article vectors does not answer"

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"Setting embed_cluster: the Ray cluster at {address} can't be used: {why}")


class BatchTask(Protocol[Batch_contra, Result_co]):
    """A computation that is opened once and then run on many batches.

    Picklable once it is portable.
    """

    at_once: ClassVar[bool]
    """Whether batches are computed at the same time, a thread each, instead of in turn with all threads."""

    @property
    def key(self) -> str:
        """A content key: tasks with the same key give the same results."""

    def portable(self) -> Self:
        """A copy that needs no files of this machine except installed ones."""

    def open(self, threads: int) -> Callable[[Batch_contra], Result_co]:
        """Return the function that computes a batch, with this many threads."""

    def check(self, batch: Batch_contra, result: object) -> None:
        """Check that a node's result has the form of this batch's result. Raises ResultRefused."""


class BatchExecutor(Protocol):
    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield the result of each batch, in order. Raises ClusterUnavailable."""


class ResultRefused(ValueError):
    """A result differs in form from what its task returns, or has numbers that are not finite."""


def check_array(name: str, found: object, dtype: DTypeLike, shape: Sequence[int | None]) -> None:
    """Check an array's type and shape; shape: None for an unknown length. Raises ResultRefused."""
    wanted = np.dtype(dtype)
    if not isinstance(found, np.ndarray):
        raise ResultRefused(f"{name}: an array was expected, not {type(found).__name__}")
    if found.dtype != wanted:
        raise ResultRefused(f"{name}: {wanted.name} was expected, not {found.dtype.name}")
    if found.ndim != len(shape) or any(
        one is not None and one != other for one, other in zip(shape, found.shape, strict=True)
    ):
        expected = ", ".join("any" if each is None else str(each) for each in shape)
        raise ResultRefused(f"{name}: shape ({expected}) was expected, not {found.shape}")
    if not np.isfinite(found).all():
        raise ResultRefused(f"{name}: not every number is finite")


def check_states(found: object, lengths: Sequence[int], width: int | None) -> None:
    """Check token states [L_i, S] of each title.

    lengths: L_i. width: S; None if unknown, but it must be the same for all. Raises ResultRefused.
    """
    if not isinstance(found, list) or len(found) != len(lengths):
        raise ResultRefused(f"states: a list of {len(lengths)} was expected")
    for row, (states, length) in enumerate(zip(found, lengths, strict=True)):
        check_array(f"states of row {row}", states, np.float16, (length, width))
        width = states.shape[1]


class LocalExecutor:
    """Computes batches in this process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._opened: tuple[str, Callable[[Any], Any]] | None = None

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        if self._opened is None or self._opened[0] != task.key:
            self._opened = task.key, task.open(1 if task.at_once else self._threads)
        run = self._opened[1]
        return _at_once(run, batches, self._threads) if task.at_once and self._threads > 1 else map(run, batches)


def _at_once(run: Callable[[Batch], Result], batches: Iterable[Batch], threads: int) -> Iterator[Result]:
    with ThreadPoolExecutor(threads, thread_name_prefix="batches") as pool:
        started: deque[Future[Result]] = deque()
        try:
            for batch in batches:
                started.append(pool.submit(run, batch))
                if len(started) > threads:
                    yield started.popleft().result()
            while started:
                yield started.popleft().result()
        finally:
            for each in started:
                each.cancel()


IDLE_SEC = 30.0
"""How long the separate process waits for the next batches: starting it again takes about a second."""
NICENESS = 10
"""Requests have priority over it."""


class SeparateProcess:
    """Computes batches in a process that is started for them and ends when none have come for IDLE_SEC.

    A server needs a model for seconds after new titles arrive. What the model takes, 150 MB and two threads' time, is
    then neither in the server's memory nor in the way of its requests.
    """

    def __init__(self, threads: int, idle_sec: float = IDLE_SEC) -> None:
        self._threads, self._idle_sec = threads, idle_sec
        self._lock = threading.Lock()
        self._process: ProcessPoolExecutor | None = None
        self._end: threading.Timer | None = None

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield the result of each batch, in order, once all are computed.

        Raises ProcessEnded if the process is killed; the next call starts another.
        """
        with self._lock:
            if self._end is not None:
                self._end.cancel()
            if self._process is None:
                self._process = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin)
            try:
                found: list[Result] = self._process.submit(_compute, self._threads, task, list(batches)).result()
            except BrokenProcessPool as ended:
                self._process = None
                raise ProcessEnded from ended
            finally:  # also after a batch that failed
                self._end = threading.Timer(self._idle_sec, self.close)
                self._end.daemon = True
                self._end.start()
        return iter(found)

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._end is not None:
                self._end.cancel()
            if self._process is not None:
                self._process.shutdown()
            self._process = self._end = None


class ProcessEnded(Unavailable):
    """The process that computes batches was killed, for example because memory ran out."""

    code, status, title = "embedding-process-ended", 503, "The process that computes article vectors ended"

    def __init__(self) -> None:
        super().__init__("The process that computes article vectors was killed; it is started again for the next ones.")


def _begin() -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the server, too, which ends this process
    if hasattr(os, "nice"):
        os.nice(NICENESS)


_local = cache(LocalExecutor)
"""The executor of the separate process, which keeps its task open."""


def _compute(threads: int, task: BatchTask[Batch, Result], batches: Sequence[Batch]) -> list[Result]:
    return list(_local(threads).map(task, batches))


class FallbackExecutor:
    """Uses a cluster; from the first batch that the cluster doesn't answer, computes in this process."""

    def __init__(self, cluster: BatchExecutor, here: BatchExecutor) -> None:
        self._cluster, self._here = cluster, here

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        given: deque[Batch] = deque()
        rest = iter(batches)

        def noted() -> Iterator[Batch]:
            for batch in rest:
                given.append(batch)
                yield batch

        try:
            for result in self._cluster.map(task, noted()):
                given.popleft()
                yield result
        except ClusterUnavailable as away:
            _log.warning("%s; this machine computes meanwhile, as embed_without_cluster says", away.detail.rstrip("."))
            yield from self._here.map(task, chain(list(given), rest))


class ExecutorSettings(BaseModel):
    """The settings of the executor.

    cluster: host and port of a Ray cluster; None for this process. without: what happens while it doesn't answer:
    batches wait, or are computed here.
    """

    model_config = ConfigDict(frozen=True)

    cluster: str | None = None
    without: Literal["wait", "here"] = "wait"

    @classmethod
    def of(cls, settings: BackendSettings) -> ExecutorSettings:
        """From the server's settings."""
        return cls(cluster=settings.embed_cluster, without=settings.embed_without_cluster)

    def check(self) -> None:
        """Raise BackendSettingsRefused if a cluster is named and Ray isn't installed."""
        if self.cluster is not None and find_spec("ray") is None:
            raise BackendSettingsRefused(
                f"Setting embed_cluster: {self.cluster}, but Ray isn't installed: pip install -c constraints.txt "
                "'.[ray]'.",
                field="embed_cluster",
            )

    def open(self, threads: int) -> BatchExecutor:
        """Open the executor. Raises BackendSettingsRefused.

        threads: number in this process, if no cluster is named; a cluster's task has one thread, and so has this
        process in its place.
        """
        self.check()
        if self.cluster is None:
            return LocalExecutor(threads)
        from backend.embedding.ray_executor import NODE_THREADS, RayExecutor  # imported only if a cluster is named

        cluster = RayExecutor(self.cluster)
        return cluster if self.without == "wait" else FallbackExecutor(cluster, LocalExecutor(NODE_THREADS))


HERE = ExecutorSettings()
"""Compute every batch in this process."""

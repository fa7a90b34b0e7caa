"""Who computes batches of titles: this process, or the nodes of a Ray cluster (`ray_executor`).

Batches are cut before anybody computes them, each is computed with a number of threads that is set on purpose, and what
comes of them is given back in their order. So vectors and sums are the same to the bit on however many nodes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from pydantic import BaseModel, ConfigDict

from backend.errors import BackendSettingsRefused, Unavailable
from backend.settings import BackendSettings

Batch = TypeVar("Batch")
Batch_contra = TypeVar("Batch_contra", contravariant=True)
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

_log = logging.getLogger(__name__)


class ClusterUnavailable(Unavailable):
    """No Ray cluster answers at the address of the setting `embed_cluster`, or it stopped to."""

    code, status, title = "embed-cluster-unavailable", 503, "The cluster that reads the news doesn't answer"

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"Setting embed_cluster: the Ray cluster at {address} can't be used: {why}")


class BatchTask(Protocol[Batch_contra, Result_co]):
    """A computation that is opened once and then made of many batches. Picklable, once it is portable."""

    @property
    def key(self) -> str:
        """By content: tasks of one key give the same results."""
        ...

    def portable(self) -> Self:
        """One that needs no file of this machine but what is installed."""
        ...

    def open(self, threads: int) -> Callable[[Batch_contra], Result_co]:
        """What computes a batch, with so many threads."""
        ...

    def check(self, batch: Batch_contra, result: object) -> None:
        """Whether what a node gave has the form of this batch's result. Raises ResultRefused."""
        ...


class BatchExecutor(Protocol):
    """Computes batches."""

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """What comes of each batch, in their order. Raises ClusterUnavailable."""
        ...


class ResultRefused(ValueError):
    """A result has another form than its task gives, or numbers that are none."""


def check_array(name: str, found: object, dtype: DTypeLike, shape: Sequence[int | None]) -> None:
    """shape: None for a length that isn't known. Raises ResultRefused."""
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
    """Token states [L_i, S] of each title. lengths: L_i. width: S; None where it isn't known, but it is one for all.

    Raises ResultRefused."""
    if not isinstance(found, list) or len(found) != len(lengths):
        raise ResultRefused(f"states: a list of {len(lengths)} was expected")
    for row, (states, length) in enumerate(zip(found, lengths, strict=True)):
        check_array(f"states of row {row}", states, np.float16, (length, width))
        width = states.shape[1]


class LocalExecutor:
    """This process, batch by batch."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._opened: tuple[str, Callable[[Any], Any]] | None = None

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """What comes of each batch, in their order."""
        if self._opened is None or self._opened[0] != task.key:
            self._opened = task.key, task.open(self._threads)
        return map(self._opened[1], batches)


class FallbackExecutor:
    """A cluster, and from the batch on that it doesn't answer this process, as the operator has said."""

    def __init__(self, cluster: BatchExecutor, here: BatchExecutor) -> None:
        self._cluster, self._here = cluster, here

    def map(self, task: BatchTask[Batch, Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """What comes of each batch, in their order."""
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
    """What the settings say of it.

    cluster: host and port of a Ray cluster; None for this process. without: what becomes of batches while it doesn't
    answer: they wait, or are computed here.
    """

    model_config = ConfigDict(frozen=True)

    cluster: str | None = None
    without: Literal["wait", "here"] = "wait"

    @classmethod
    def of(cls, settings: BackendSettings) -> ExecutorSettings:
        """As the settings have it."""
        return cls(cluster=settings.embed_cluster, without=settings.embed_without_cluster)

    def check(self) -> None:
        """Raises BackendSettingsRefused where a cluster is named and Ray isn't installed."""
        if self.cluster is not None and find_spec("ray") is None:
            raise BackendSettingsRefused(
                f"Setting embed_cluster: {self.cluster}, but Ray isn't installed; pip install -c constraints.txt "
                "'.[ray]' brings it.",
                field="embed_cluster",
            )

    def open(self, threads: int) -> BatchExecutor:
        """The executor. threads: of this process, where no cluster is named; a task of a cluster has one, and so has
        this process in its place. Raises BackendSettingsRefused."""
        self.check()
        if self.cluster is None:
            return LocalExecutor(threads)
        from backend.embedding.ray_executor import NODE_THREADS, RayExecutor  # nobody who names none needs it

        cluster = RayExecutor(self.cluster)
        return cluster if self.without == "wait" else FallbackExecutor(cluster, LocalExecutor(NODE_THREADS))


HERE = ExecutorSettings()
"""Every batch in this process."""

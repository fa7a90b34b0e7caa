"""Who computes the updates of a cohort: this process, or one process a core; both give the same numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from types import TracebackType
from typing import Protocol

import numpy as np

from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import LocalTask, Update

SourceOf = Callable[[int], SampleSource]
"""Reader number -> the reader's samples."""


@dataclass(frozen=True)
class SimulatedDevice:
    """What every simulated device runs. `seed` fixes each reader's draws in each round, whoever computes them."""

    task: LocalTask
    grad: GradientFn
    source: SourceOf
    seed: int

    def update(self, params: Params, reader: int, round_number: int) -> Update:
        """One reader's update."""
        rng = np.random.default_rng((self.seed, round_number, reader))
        return self.task.run(params, self.source(reader), self.grad, rng)


class Clients(Protocol):
    """Computes a cohort's updates, in the order of the readers."""

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """One update a reader."""
        ...


@dataclass(frozen=True)
class OneProcess:
    """One client after another, here."""

    device: SimulatedDevice

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """One update a reader."""
        return (self.device.update(params, reader, round_number) for reader in readers)


class ManyProcesses:
    """A process a core, each with its own engine of one thread; use as a context manager.

    Args:
        make_device: a picklable call that builds the device in each process.
        processes: how many; by default the cores this process may use.
    """

    def __init__(self, make_device: Callable[[], SimulatedDevice], processes: int | None = None) -> None:
        self._count = processes or len(os.sched_getaffinity(0))
        self._pool = ProcessPoolExecutor(
            self._count, mp_context=get_context("spawn"), initializer=_settle, initargs=(make_device,)
        )

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """One update a reader."""
        shares = [readers[place :: self._count] for place in range(self._count)]
        jobs = [self._pool.submit(_work, params, share, round_number) for share in shares]
        done = [job.result() for job in jobs]
        return (done[place % self._count][place // self._count] for place in range(len(readers)))

    def __enter__(self) -> ManyProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


_device_here: SimulatedDevice | None = None
"""This worker's device, set once by `_settle` in a process that does nothing else."""


def _settle(make_device: Callable[[], SimulatedDevice]) -> None:
    global _device_here
    _device_here = make_device()


def _work(params: Params, readers: Sequence[int], round_number: int) -> list[Update]:
    if _device_here is None:
        raise RuntimeError("this process has no device")
    return [_device_here.update(params, reader, round_number) for reader in readers]

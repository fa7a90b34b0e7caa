"""Computes the updates of a cohort, in this process or in one process per core, with the same numbers.

Gradient engines: ONNX Runtime as on the devices, and torch as its oracle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from types import TracebackType
from typing import Protocol

import numpy as np
from torch import nn

from device_app.training.gradients import GRADIENT_PREFIX, Batch, GradientFn, Gradients, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import LocalTask, Update
from exporters.graph import export_gradient_graph
from exporters.signature import GraphInput, GraphSpec
from models.shapes import CLICKS, NEGATIVES

SourceOf = Callable[[int], SampleSource]
"""Reader number -> the reader's samples."""


@dataclass(frozen=True)
class SimulatedDevice:
    """The task of a simulated device. `seed` fixes each reader's draws in each round, in any process."""

    task: LocalTask
    grad: GradientFn
    source: SourceOf
    seed: int

    def update(self, params: Params, reader: int, round_number: int) -> Update:
        """Return one reader's update."""
        rng = np.random.default_rng((self.seed, round_number, reader))
        return self.task.run(params, self.source(reader), self.grad, rng)


class Clients(Protocol):
    """Computes a cohort's updates, in the order of the readers."""

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """Return one update for each reader."""
        ...


@dataclass(frozen=True)
class OneProcess:
    """Runs one client after another in this process."""

    device: SimulatedDevice

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """Return one update for each reader."""
        return (self.device.update(params, reader, round_number) for reader in readers)


class ManyProcesses:
    """One process per core, each with its own single-threaded engine; use as a context manager.

    Args:
        make_device: a picklable call that builds the device in each process.
        processes: number of processes; by default the cores this process may use.
    """

    def __init__(self, make_device: Callable[[], SimulatedDevice], processes: int | None = None) -> None:
        self._count = processes or len(os.sched_getaffinity(0))
        self._pool = ProcessPoolExecutor(
            self._count, mp_context=get_context("spawn"), initializer=_settle, initargs=(make_device,)
        )

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """Return one update for each reader."""
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


def ranker_inputs(dim: int, features: int = 0, negatives: int = NEGATIVES) -> tuple[GraphInput, ...]:
    """The inputs of a ranker's loss: clicks, mask, candidates, and features if it has any."""
    found = (
        GraphInput("clicks", ("batch", CLICKS, dim)),
        GraphInput("click_mask", ("batch", CLICKS)),
        GraphInput("candidates", ("batch", 1 + negatives, dim)),
    )
    return (*found, GraphInput("features", ("batch", 1 + negatives, features))) if features else found


def gradient_graph(model: nn.Module, inputs: tuple[GraphInput, ...]) -> bytes:
    """The model's gradient graph as a release would carry it, not compared with torch here."""
    spec = GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True)
    graph: bytes = export_gradient_graph(model, spec).SerializeToString(deterministic=True)
    return graph


@dataclass(frozen=True)
class SharedGradients:
    """An engine that leaves private parameters unchanged: a reader's own value is not trained for everyone."""

    engine: GradientFn
    private: tuple[str, ...]

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        """Gradients of the batch's mean loss, zero for private parameters."""
        found = self.engine(params, batch)
        own = {GRADIENT_PREFIX + name for name in self.private}
        return Gradients(
            found.loss, {name: np.zeros_like(each) if name in own else each for name, each in found.tensors.items()}
        )

"""Computes the updates of a cohort, in this process or in one process per core, with the same numbers.

Updates are added where they are computed, in blocks of readers whose size doesn't depend on the engine, and the blocks
are added in their order: sums are equal to the bit whatever computes them. What is passed on is a block's sum, not a
reader's update. Gradient engines: ONNX Runtime as on the devices, and torch as its oracle.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Shapes, gradient_shapes
from device_app.training.gradients import GRADIENT_PREFIX, Batch, GradientFn, Gradients, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import LocalTask, Update
from experiments.simulation.shared_tensors import Layout, SharedTensors
from models.shapes import CLICKS, NEGATIVES

if TYPE_CHECKING:
    from torch import nn

    from exporters.signature import GraphInput

BLOCK = 2
"""Readers whose updates are added before anything is passed on; larger blocks leave cores idle at a round's end."""

SourceOf = Callable[[int], SampleSource]
"""Reader number -> the reader's samples."""
Protect = Callable[[Update, np.random.Generator], Mapping[str, NDArray[np.float32]]]
"""Protects an update before it leaves the device; the generator is the simulation's own."""
Sums = Mapping[str, NDArray[np.float64]]
"""The sum of several updates, by tensor name."""


def in_clear(update: Update, rng: np.random.Generator) -> Mapping[str, NDArray[np.float32]]:
    """Return the update's tensors unchanged, without noise."""
    return update.tensors


@dataclass(frozen=True)
class SimulatedDevice:
    """The task of a simulated device, and how its updates are protected.

    `seed` fixes each reader's draws in each round, in any process.
    """

    task: LocalTask
    grad: GradientFn
    source: SourceOf
    seed: int
    protect: Protect = in_clear

    def update(self, params: Params, reader: int, round_number: int) -> Update:
        """Return one reader's update, protected."""
        rng = np.random.default_rng((self.seed, round_number, reader))
        update = self.task.run(params, self.source(reader), self.grad, rng)
        if self.protect is in_clear:
            return update
        noise = np.random.default_rng((self.seed, round_number, reader, 1))
        return replace(update, tensors=self.protect(update, noise))


@dataclass(frozen=True)
class PartialSum:
    """The sum of a block's protected updates.

    Args:
        sums: float64, by tensor name; valid until the next block is requested.
        loss: the sum of the readers' mean losses before the step.
        readers: the number of readers, or the sum of their weights.
    """

    sums: Sums
    loss: float
    readers: int


class Clients(Protocol):
    """Computes a cohort's updates and adds them block by block."""

    def partial_sums(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[PartialSum]:
        """Return the sums of `blocks_of(readers)`, in order."""
        ...


def blocks_of(readers: Sequence[int]) -> list[Sequence[int]]:
    """Cut a cohort into blocks of `BLOCK` neighbours."""
    return [readers[first : first + BLOCK] for first in range(0, len(readers), BLOCK)]


def sum_updates(updates: Iterable[Update], sums: Sums) -> float:
    """Write the sum of at least one update to `sums` and return the sum of their losses."""
    loss = 0.0
    for place, update in enumerate(updates):
        for name, total in sums.items():
            if place:
                total += update.tensors[name]
            else:
                total[...] = update.tensors[name]
        loss += update.loss
    return loss


def empty_sums(shapes: Shapes) -> dict[str, NDArray[np.float64]]:
    """Return room for a sum."""
    return {name: np.empty(shape) for name, shape in shapes.items()}


def block_sum(
    device: SimulatedDevice, params: Params, block: Sequence[int], round_number: int, sums: Sums
) -> PartialSum:
    """Compute the sum of one block's updates here, in `sums`, and return it."""
    loss = sum_updates((device.update(params, reader, round_number) for reader in block), sums)
    return PartialSum(sums, loss, len(block))


@dataclass(frozen=True)
class OneProcess:
    """Runs one client after another in this process."""

    device: SimulatedDevice

    def partial_sums(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[PartialSum]:
        sums = empty_sums(gradient_shapes(params))
        return (block_sum(self.device, params, block, round_number, sums) for block in blocks_of(readers))


@dataclass(frozen=True)
class WeightedReaders:
    """Runs one client after another in this process, each weighted by its samples n_u (FedNewsRec, eq. 6)."""

    device: SimulatedDevice

    def partial_sums(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[PartialSum]:
        """Return each reader's protected update times n_u, and n_u as its count."""
        for reader in readers:
            update = self.device.update(params, reader, round_number)
            sums = {name: update.samples * each.astype(np.float64) for name, each in update.tensors.items()}
            yield PartialSum(sums, update.loss, update.samples)


class ManyProcesses:
    """One process per core, each with its own single-threaded engine; use as a context manager.

    A process takes the next block when it has finished one, reads the weights from shared memory and leaves the sum
    there, so that a round copies neither. Memory grows with the number of processes, not with the cohort.

    Args:
        make_device: a picklable call that builds the device in each process.
        processes: number of processes; by default the cores this process may use.
    """

    def __init__(self, make_device: Callable[[], SimulatedDevice], processes: int | None = None) -> None:
        self._count = processes or len(os.sched_getaffinity(0))
        self._pool = ProcessPoolExecutor(
            self._count, mp_context=get_context("spawn"), initializer=_settle, initargs=(make_device,)
        )
        self._shared: SharedTensors | None = None
        self._calls = 0

    def partial_sums(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[PartialSum]:
        shared = self._memory_for(params)
        shared.set_weights(params)
        self._calls += 1
        upcoming, free = iter(blocks_of(readers)), deque(range(shared.slots))
        running: deque[tuple[int, int, Future[float]]] = deque()
        while True:
            while free and (block := next(upcoming, None)) is not None:
                slot = free.popleft()
                job = self._pool.submit(_work, shared.layout, slot, self._calls, block, round_number)
                running.append((slot, len(block), job))
            if not running:
                return
            slot, count, job = running.popleft()
            yield PartialSum(shared.sums(slot), job.result(), count)
            free.append(slot)

    def _memory_for(self, params: Params) -> SharedTensors:
        weights = {name: value.shape for name, value in params.items()}
        if self._shared is None or self._shared.layout.weights != weights:
            if self._shared is not None:
                self._shared.unlink()
            self._shared = SharedTensors.create(weights, gradient_shapes(params), slots=2 * self._count)
        return self._shared

    def __enter__(self) -> ManyProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._shared is not None:
            self._shared.unlink()


_device_here: SimulatedDevice | None = None
"""This worker's device, set once by `_settle` in a process that does nothing else."""
_shared_here: SharedTensors | None = None
"""The memory that this worker is attached to."""
_weights_here: tuple[int, Params] = (0, {})
"""The number of the call, and the weights as one object for as long as they are the same."""


def _settle(make_device: Callable[[], SimulatedDevice]) -> None:
    global _device_here
    _device_here = make_device()


def _work(layout: Layout, slot: int, call: int, block: Sequence[int], round_number: int) -> float:
    """Leave the sum of a block's updates in the slot, and return the sum of its losses."""
    global _shared_here, _weights_here
    if _device_here is None:
        raise RuntimeError("this process has no device")
    if _shared_here is None or _shared_here.layout.name != layout.name:
        _shared_here = SharedTensors.attach(layout)
    if _weights_here[0] != call:
        _weights_here = (call, _shared_here.weights())
    device, params, sums = _device_here, _weights_here[1], _shared_here.sums(slot)
    return sum_updates((device.update(params, reader, round_number) for reader in block), sums)


def ranker_inputs(dim: int, features: int = 0, negatives: int = NEGATIVES) -> tuple[GraphInput, ...]:
    """The inputs of a ranker's loss: clicks, mask, candidates, and features if it has any."""
    from exporters.signature import GraphInput  # imports torch, which the processes of a simulation don't need

    found = (
        GraphInput("clicks", ("batch", CLICKS, dim)),
        GraphInput("click_mask", ("batch", CLICKS)),
        GraphInput("candidates", ("batch", 1 + negatives, dim)),
    )
    return (*found, GraphInput("features", ("batch", 1 + negatives, features))) if features else found


def gradient_graph(model: nn.Module, inputs: tuple[GraphInput, ...]) -> bytes:
    """The model's gradient graph as a release would carry it, not compared with torch here."""
    from exporters.graph import export_gradient_graph
    from exporters.signature import GraphSpec

    spec = GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True)
    graph: bytes = export_gradient_graph(model, spec).SerializeToString(deterministic=True)
    return graph


@dataclass(frozen=True)
class SharedGradients:
    """An engine that leaves private parameters unchanged: a reader's own values are not trained for everyone."""

    engine: GradientFn
    private: tuple[str, ...]

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        """Return gradients of the batch's mean loss, zero for private parameters."""
        found = self.engine(params, batch)
        own = {GRADIENT_PREFIX + name for name in self.private}
        return Gradients(
            found.loss, {name: np.zeros_like(each) if name in own else each for name, each in found.tensors.items()}
        )

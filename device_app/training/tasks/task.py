"""What a device computes in a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.prices import OneClick
from device_app.sync.installed_release import Release
from device_app.training.gradients import GRADIENT_PREFIX, Batch, GradientFn, Params
from device_app.training.multiview.local import LocalViews
from device_app.training.samples import SampleSource
from device_app.training.stored_samples import StoredSamples
from device_app.training.union_draws import UnionDraws
from device_app.wire.releases import ModelRole
from device_app.wire.rounds import RoundManifest

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Update:
    """What a reader's data come to, in clear: it has to be clipped and made noisy or masked before it may leave.

    tensors are named `g.<parameter>` where they are gradients; loss is the mean loss before the step, 0 where there is
    none; samples counts what went in. paid, if given, is called in the transaction that pays for the update: it writes
    down what must not be given a second time.
    """

    tensors: Mapping[str, NDArray[np.float32]]
    loss: float
    samples: int
    paid: Callable[[], None] | None = None


ZEROS = Update({}, loss=0.0, samples=1)
"""In the place of an update that can't be computed: its tensors count as zeros."""


@dataclass(frozen=True)
class TaskInputs:
    """What a task is made from.

    Args:
        release: the one in use, which is the round's.
        manifest: of the round.
        reading: the reader's feeds and clicks.
        materials: the bytes of a material of the round, by its name in the manifest, fetched if it isn't here yet;
            raises NotEligible if it can't be had.
        threads: of ONNX Runtime.
        now: the device's time.
        draws: for the last unions of news.
        views: of this device, each with its own store; None on a device that keeps none apart.
    """

    release: Release
    manifest: RoundManifest
    reading: StoredSamples
    materials: Callable[[str], bytes]
    threads: int
    now: datetime
    draws: UnionDraws = field(default_factory=UnionDraws)
    views: LocalViews | None = None


class LocalTask(Protocol):
    """Pure once it's made: no clock, no disk, no network; the same arguments give the same update."""

    def shapes(self, params: Params) -> Shapes:
        """Every tensor of an update. The price counts their coordinates, so it is this program that says them."""
        ...

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The update of one reader.

        params and grad are of the round's model; params are empty where it has none. A task that needs no samples or no
        gradients leaves them alone.
        """
        ...


def zeros(given: TaskInputs) -> Update:
    """Of a task that writes nothing down."""
    return ZEROS


def as_far_as_everything(given: TaskInputs) -> OneClick | None:
    """Of a task that can't say how far one click moves its update: one that is clipped as a whole."""
    return None


@dataclass(frozen=True)
class TaskKind:
    """A task as this program knows it.

    Args:
        make: the task for one round.
        role: of the models it's for; None for a task of no particular model.
        graph: purpose of the graph that the model must have; `grad` runs it, if it's the gradient.
        needs_samples: whether a device takes part only if it has clicks to make samples of.
        channel: of the ledger, which pays; the reader switches each on by itself.
        reads_release: whether it reads anything of the release; one that doesn't is done under any.
        held_out: whether its samples are those that gradients leave out.
        one_click: how far a single click exchanged for another moves the update; None where that is as far as
            exchanging everything. It is asked before the round is joined, too, and raises as `make`.
        zeros: the update that stands for one which can't be computed.
    """

    make: Callable[[TaskInputs], LocalTask]
    role: ModelRole | None = None
    graph: str | None = None
    needs_samples: bool = True
    channel: Literal["training", "counts"] = "training"
    reads_release: bool = True
    held_out: bool = False
    one_click: Callable[[TaskInputs], OneClick | None] = as_far_as_everything
    zeros: Callable[[TaskInputs], Update] = zeros


def gradient_shapes(params: Params) -> Shapes:
    """Of an update that is a gradient for each parameter."""
    return {GRADIENT_PREFIX + name: value.shape for name, value in params.items()}


BATCH = 8


def slices_of(count: int) -> Iterator[slice]:
    """Of `count` samples, BATCH at a time: what a run needs is bounded by it (`wire.graphs`)."""
    for start in range(0, count, BATCH):
        yield slice(start, min(start + BATCH, count))


def pooled_gradient(count: int, batch: Callable[[slice], Batch], params: Params, grad: GradientFn) -> Update:
    """The gradient of the mean loss over `count` samples; `batch` gives the inputs for a slice of them.

    Batches bound the memory and change nothing: their means are weighed by their sizes, in float64.
    """
    loss = 0.0
    sums: dict[str, NDArray[np.float64]] = {}
    for rows in slices_of(count):
        found = grad(params, batch(rows))
        share = (rows.stop - rows.start) / count
        loss += share * found.loss
        for name, gradient in found.tensors.items():
            sums[name] = sums.get(name, 0.0) + share * gradient.astype(np.float64)
    return Update({name: total.astype(np.float32) for name, total in sums.items()}, loss, count)

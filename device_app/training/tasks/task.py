"""The interface of a task: what a device computes in a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.accounting.cost_of_sums import OneClick
from device_app.sync.installed_release import Release
from device_app.training.gradients import GRADIENT_PREFIX, Batch, GradientFn, Params
from device_app.training.multiview.local import LocalViews
from device_app.training.samples import NobodysReading, SampleSource, StoredSamples
from device_app.training.union_draws import UnionDraws
from protocol.releases import ModelRole
from protocol.rounds import RoundManifest

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Update:
    """A task's result, in clear: it has to be clipped and made noisy or masked before it may leave.

    tensors are named `g.<parameter>` if they are gradients; loss is the mean loss before the step, 0 if there is none;
    samples is the number of samples used. paid, if given, is called in the transaction that charges for the update: it
    records what must not be contributed twice. unchanged, if given, says whether its data, besides the reader's current
    clicks, is still there.
    """

    tensors: Mapping[str, NDArray[np.float32]]
    loss: float
    samples: int
    paid: Callable[[], None] | None = None
    unchanged: Callable[[], bool] | None = None


ZEROS = Update({}, loss=0.0, samples=0)
"""Replaces an update that can't be computed: its tensors count as zeros."""


@dataclass(frozen=True)
class TaskInputs:
    """What a task is made from.

    Args:
        release: the one in use, which is the round's.
        manifest: the round's manifest.
        reading: the reader's feeds and clicks; nobody's where only the form of an update is wanted.
        materials: the bytes of a material of the round, by its name in the manifest, fetched if it isn't here yet;
            raises NotEligible if it can't be had.
        threads: ONNX Runtime's threads.
        now: the device's time.
        draws: draws for the last unions of articles.
        views: this device's views, each with its own store; None on a device that keeps none apart.
    """

    release: Release
    manifest: RoundManifest
    reading: StoredSamples | NobodysReading
    materials: Callable[[str], bytes]
    threads: int
    now: datetime
    draws: UnionDraws = field(default_factory=UnionDraws)
    views: LocalViews | None = None


class LocalTask(Protocol):
    """Pure once it's made: no clock, no disk, no network; the same arguments give the same update."""

    def shapes(self, params: Params) -> Shapes:
        """Every tensor of an update. The cost depends on their coordinates, so this program defines them, not the
        server."""
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
        role: role of the models it's for; None for a task of no particular model.
        graph: purpose of the graph that the model must have; `grad` runs it, if it's the gradient.
        needs_samples: whether it draws samples from the reader's clicks; without any its update is zeros.
        channel: the ledger's channel that pays; the reader switches each on by itself.
        reads_release: whether it reads anything of the release; one that doesn't is done under any.
        held_out: whether its samples are those that gradients leave out.
        one_click: how far a single click exchanged for another moves the update; None where that is as far as
            exchanging everything. It is asked before the round is joined, too, and raises as `make`.
        all_displayed: whether its samples hold every article that was ever displayed, and not only some of them.
        all_negatives: whether a click's negatives are all articles displayed and never clicked, and not those of the
            same feed.
        zeros: the update that stands for one which can't be computed; tensors that it doesn't have count as zeros.
    """

    make: Callable[[TaskInputs], LocalTask]
    role: ModelRole | None = None
    graph: str | None = None
    needs_samples: bool = True
    channel: Literal["training", "counts"] = "training"
    reads_release: bool = True
    held_out: bool = False
    all_displayed: bool = False
    all_negatives: bool = False
    one_click: Callable[[TaskInputs], OneClick | None] = as_far_as_everything
    zeros: Callable[[TaskInputs], Update] = zeros


def gradient_shapes(params: Params) -> Shapes:
    """Of an update that is a gradient for each parameter."""
    return {GRADIENT_PREFIX + name: value.shape for name, value in params.items()}


BATCH = 8


def slices_of(count: int) -> Iterator[slice]:
    """Of `count` samples, BATCH at a time: what a run needs is bounded by it (`protocol.graph_check`)."""
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

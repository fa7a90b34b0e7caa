"""The interface of a task: what a device computes in a round."""

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
from device_app.training.samples import EmptyHistory, SampleSource, StoredSamples
from device_app.training.union_draws import UnionDraws
from protocol.releases import ModelRole
from protocol.rounds import RoundManifest

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Update:
    """A task's result, in the clear: it must be clipped, and noised or masked, before it may leave the device.

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
        release: the current release, which is the round's.
        manifest: the round's manifest.
        reading: the reader's feeds and clicks; `EmptyHistory` if only the form of an update is needed.
        materials: returns the bytes of a data item of the round, by its name in the manifest, downloading it if needed;
        raises NotEligible if it can't be downloaded.
        threads: ONNX Runtime's threads.
        now: the device's time.
        draws: the samples drawn for the last unions of articles.
        views: this device's views, each with its own store; None on a device that doesn't isolate them.
    """

    release: Release
    manifest: RoundManifest
    reading: StoredSamples | EmptyHistory
    materials: Callable[[str], bytes]
    threads: int
    now: datetime
    draws: UnionDraws = field(default_factory=UnionDraws)
    views: LocalViews | None = None


class LocalTask(Protocol):
    """A task for one round. It is pure: no clock, no disk, no network; the same arguments give the same update."""

    def shapes(self, params: Params) -> Shapes:
        """Return the shape of every tensor of an update.

        The cost depends on their coordinates, so this program defines them, not the server."""

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the update of one reader.

        params and grad are those of the round's model; params are empty if it has none. A task that needs no samples or
        no gradients ignores them.
        """


def zeros(inputs: TaskInputs) -> Update:
    """Return zeros, for a task that records nothing."""
    return ZEROS


def as_far_as_everything(inputs: TaskInputs) -> OneClick | None:
    """Return None, for a task that can't bound how far one click moves its update."""
    return None


@dataclass(frozen=True)
class TaskKind:
    """The properties of a task.

    Args:
        make: makes the task for one round.
        role: the role of the models it is for; None for a task that is not tied to a model.
        graph: the purpose of the graph that the model must have; `grad` runs it if it is the gradient.
        needs_samples: whether it draws samples from the reader's clicks; without any its update is zeros.
        channel: the ledger's channel that is charged; the reader can switch each on separately.
        reads_release: whether it uses the release; otherwise it can run under any release.
        held_out: whether its samples are those that gradients leave out.
        one_click: how far the update moves if a single click is replaced by another; None if that is as far as
        replacing everything. It is also called before the round is joined, and raises like `make`.
        all_displayed: whether its samples hold every article that was ever displayed, and not only some of them.
        all_negatives: whether a click's negatives are all articles displayed and never clicked, and not those of the
            same feed.
        zeros: the substitute for an update that can't be computed; missing tensors count as zeros.
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
    """Return the shapes of an update with a gradient for each parameter."""
    return {GRADIENT_PREFIX + name: value.shape for name, value in params.items()}


BATCH = 8


def slices_of(count: int) -> Iterator[slice]:
    """Return slices of `count` samples, BATCH at a time, which bounds the cost of a run (`protocol.graph_check`)."""
    for start in range(0, count, BATCH):
        yield slice(start, min(start + BATCH, count))


def pooled_gradient(count: int, batch: Callable[[slice], Batch], params: Params, grad: GradientFn) -> Update:
    """Return the gradient of the mean loss over `count` samples; `batch` returns the inputs of a slice.

    Batches bound the memory without changing the result: their means are weighted by their sizes, in float64.
    """
    if 0 < count <= BATCH:
        whole = grad(params, batch(slice(0, count)))
        return Update(dict(whole.tensors), whole.loss, count)
    loss = 0.0
    sums: dict[str, NDArray[np.float64]] = {}
    for rows in slices_of(count):
        found = grad(params, batch(rows))
        share = (rows.stop - rows.start) / count
        loss += share * found.loss
        for name, gradient in found.tensors.items():
            sums[name] = sums.get(name, 0.0) + share * gradient.astype(np.float64)
    return Update({name: total.astype(np.float32) for name, total in sums.items()}, loss, count)

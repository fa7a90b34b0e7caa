"""What a round asks this device to compute: the task on the release's model, from the samples the task may use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, NotEligible, ReleaseRefused
from device_app.logs import kind_of
from device_app.privacy.prices import OneClick
from device_app.privacy.private_parameters import SharedUpdate, divide, zero_update
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.ranking.features import FEATURES
from device_app.ranking.session import shared_session
from device_app.store.parameters import PrivateParameters
from device_app.sync.installed_release import Release
from device_app.training.gradients import GradientFn, OnnxGradients, Params, no_gradients, stepped
from device_app.training.multiview.local import LocalViews
from device_app.training.samples import NO_SAMPLES, ReaderSamples, SampleSource
from device_app.training.stored_samples import StoredSamples
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import LocalTask, Shapes, TaskInputs, TaskKind, Update
from device_app.training.union_draws import UnionDraws
from device_app.wire.releases import BlobRef
from device_app.wire.rounds import MATERIALS_LIMIT_BYTES, RoundManifest

_log = logging.getLogger(__name__)
GRADIENTS = ("gradient", "table_gradient")
"""Purposes of graphs that give gradients."""

Draw = Callable[[str], np.random.Generator]
"""Round id -> the generator that draws its samples: fresh on a device, seeded in a simulation."""


def fresh_draw(_: str) -> np.random.Generator:
    """Seeded by the operating system: which negatives a device draws is nobody else's knowledge."""
    return np.random.default_rng()


class ComputationFactory:
    """Makes computations from what they take besides release and round.

    Args:
        reading: the reader's feeds and clicks.
        private: values of the parameters that this device keeps for itself.
        materials: fetches what a round's task needs besides the release.
        draw: where samples are drawn from.
        threads: of ONNX Runtime.
        views: of this device, for tasks in which they meet.
    """

    def __init__(
        self,
        reading: StoredSamples,
        private: PrivateParameters,
        materials: Callable[[BlobRef], bytes],
        clock: Callable[[], datetime],
        *,
        draw: Draw = fresh_draw,
        threads: int = 1,
        views: LocalViews | None = None,
    ) -> None:
        self.reading, self.private, self.threads = reading, private, threads
        self.materials, self.draw, self.clock, self.views = materials, draw, clock, views
        self.draws = UnionDraws()
        self._session: object = None

    def make(self, release: Release, manifest: RoundManifest, samples: ReaderSamples | None) -> Computation:
        """The computation of one round on one release. samples: the reader's, as `reading` has them for its encoder."""
        return Computation(self, release, manifest, samples)

    def gradients(self, graph: bytes, *, private: tuple[str, ...], own: Params) -> OnnxGradients:
        """The gradients of a graph, with these values of its private parameters."""
        # Held between rounds: the devices of a fleet share one session, which would otherwise be loaded for each.
        self._session = shared_session(graph, threads=OnnxGradients.THREADS)
        return OnnxGradients(graph, private=private, own=own)


class Computation:
    """One round's task on one release: what an update will be like, and the update."""

    def __init__(
        self, factory: ComputationFactory, release: Release, manifest: RoundManifest, samples: ReaderSamples | None
    ) -> None:
        self._factory, self._release, self._manifest, self._samples = factory, release, manifest, samples
        self._marks = [factory.reading.mark()]
        if samples is not None and samples.mark is not None:
            self._marks.append(samples.mark)
        self._kind: TaskKind = TASKS[manifest.task]
        self._entry = None if manifest.model is None else release.manifest.models.get(manifest.model)
        self._given = TaskInputs(
            release=release,
            manifest=manifest,
            reading=factory.reading,
            materials=self._material,
            threads=factory.threads,
            now=factory.clock(),
            draws=factory.draws,
            views=factory.views,
        )

    def shapes(self) -> Shapes:
        """Of the tensors of an update. Raises NotEligible where no samples were gathered, or materials don't come."""
        self._source()
        return self._task.shapes(self._params)

    def one_click(self) -> OneClick | None:
        """How far one click exchanged for another moves the update; None: as far as everything. Raises NotEligible."""
        return self._kind.one_click(self._given)

    def update(self) -> ComputedUpdate:
        """The task's update, without what stays private; zeros in its place where it can't be computed.

        Raises NotEligible and ValueError for what holds of every reader alike: no samples gathered, no gradient graph.
        Its `paid` raises NotEligible, so that nothing is paid, if clicks were deleted or muted since they were read.

        Formal guarantees: graphs, weights, vectors and materials are the server's, and may be made so that the
        computation fails, gives values that are not finite, or other tensors than were said, for some clicks and not
        for others. None of this shows in what is sent or charged: such a device gives zeros, in the same form, under
        the same noise, at the same price. So does one all of whose clicks are held out, or none of them where a task is
        about these: the share is the server's to choose, too. How long it computes is not covered.
        """
        source, rng = self._source(), self._factory.draw(self._manifest.round)
        left_out = self._leaves_own_out(rng)
        gradients = self._gradients(left_out)
        nothing = zero_update(self._task.shapes(self._params), self._entry)
        empty = self._kind.zeros(self._given), nothing, dict[str, NDArray[np.float32]]()
        try:
            if isinstance(source, ReaderSamples) and not source.available:
                update, shared, own = empty
            else:
                with np.errstate(all="ignore"):
                    update = self._task.run(self._params, source, gradients, rng)
                    shared, own = self._divided(update, nothing)
                if left_out:
                    own = {}
        except Exception as fault:  # whatever it is: what a release can cause may not show in what leaves
            _log.warning(
                "the update for %s could not be computed and counts as zeros: %s", self._manifest.round, kind_of(fault)
            )
            update, shared, own = empty
        return ComputedUpdate(
            shared=shared,
            samples=update.samples,
            channel=self._kind.channel,
            one_click=self.one_click(),
            paid=self._paid(update, own),
        )

    def _divided(self, update: Update, like: SharedUpdate) -> tuple[SharedUpdate, dict[str, NDArray[np.float32]]]:
        """What may be shared of an update, and the gradients that stay here. Raises ValueError for an update of other
        tensors than said, or with values that are not finite."""
        shared, own = divide(update.tensors, self._entry)
        said = {name: each.shape for name, each in like.tensors.items()}
        if (found := {name: each.shape for name, each in shared.tensors.items()}) != said:
            raise ValueError(f"task {self._manifest.task!r}: computed {found}, which is not what it said")
        for name, each in update.tensors.items():
            if each.dtype != np.float32 or not np.isfinite(each).all():
                raise ValueError(f"tensor {name}: {each.dtype}, or values that are not finite")
        return shared, own

    @cached_property
    def _task(self) -> LocalTask:
        return self._kind.make(self._given)

    @cached_property
    def _params(self) -> Params:
        return {} if self._manifest.model is None else self._release.weights(self._manifest.model)

    def _material(self, name: str) -> bytes:
        """Raises NotEligible, which declines the round, for whatever keeps the bytes away."""
        materials = self._manifest.materials
        size_bytes = sum(ref.size_bytes for ref in materials.values())
        if size_bytes > MATERIALS_LIMIT_BYTES:
            raise NotEligible(f"its materials have {size_bytes} bytes, the limit is {MATERIALS_LIMIT_BYTES}.")
        if name not in materials:
            raise NotEligible(f"the round brings no {name!r}.")
        try:
            return self._factory.materials(materials[name])
        except (BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused) as trouble:
            raise NotEligible(f"{name!r} of the round can't be had: {trouble}") from trouble

    def _source(self) -> SampleSource:
        """The samples that the task may use, perhaps none. Raises NotEligible if none were gathered."""
        if not self._kind.needs_samples:
            return NO_SAMPLES
        if self._samples is None:
            raise NotEligible("another round was opened while it looked for one.")
        share, held = self._manifest.held_out, self._kind.held_out
        return self._samples.held_out(share) if held else self._samples.without_held_out(share)

    def _leaves_own_out(self, rng: np.random.Generator) -> bool:
        """Whether the device's own parameters count as zero in this round and stay as they are: with LSTUR, so that
        its other parameters learn for readers without a vector, too. No reader's clicks have a part in it."""
        own = self._entry is not None and bool(self._entry.private)
        return own and self._manifest.dropout > 0 and bool(rng.random() < self._manifest.dropout)

    def _gradients(self, left_out: bool) -> GradientFn:
        model = self._manifest.model
        if self._kind.graph not in GRADIENTS or model is None:
            return no_gradients
        graph, manifest = self._release.graph(model, self._kind.graph), self._release.manifest
        own = {} if left_out else self._factory.private.get(model, manifest.encoder)
        return self._factory.gradients(graph, private=manifest.models[model].private, own=own)

    def _paid(self, update: Update, gradients: Params) -> Callable[[], None]:
        """What to do in the transaction that pays: a last look at what the update was computed from, the task's own,
        and the step on private parameters."""
        model, encoder, private = self._manifest.model, self._release.manifest.encoder, self._factory.private

        def paid() -> None:
            if not all(map(self._factory.reading.holds, self._marks)):
                raise NotEligible("its reader has deleted or muted clicks that this was computed from.")
            if update.paid is not None:
                update.paid()
            if model is None or not gradients:
                return
            moved = stepped(private.get(model, encoder), gradients)
            if all(np.isfinite(value).all() for value in moved.values()):
                private.keep(model, encoder, moved)

        return paid


def trainable(release: Release, kind: TaskKind) -> tuple[str, ...] | None:
    """Models of the release that the task can be done on; None for a task of no particular model."""
    if kind.role is None:
        return None
    return tuple(
        name
        for name, entry in release.manifest.models.items()
        if entry.role == kind.role
        and (kind.graph is None or release.has_graph(name, kind.graph))
        and FEATURES.keys() >= set(entry.features)
    )

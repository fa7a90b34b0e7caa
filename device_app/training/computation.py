"""What a round asks this device to compute: the task on the release's model, from the samples the task may use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, NotEligible, ReleaseRefused
from device_app.privacy.prices import OneClick
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.shared import shared_part
from device_app.ranking.features import FEATURES
from device_app.ranking.session import shared_session
from device_app.store.parameters import PrivateParameters
from device_app.sync.release import Release
from device_app.training.gradients import GradientFn, OnnxGradients, Params, no_gradients
from device_app.training.multiview.local import LocalViews
from device_app.training.private_step import private_gradients, stepped
from device_app.training.samples import NO_SAMPLES, ReaderSamples, SampleSource
from device_app.training.stored_samples import StoredSamples
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import Shapes, TaskInputs, TaskKind, Update
from device_app.wire.releases import BlobRef, ModelEntry
from device_app.wire.rounds import MATERIALS_LIMIT_BYTES, RoundManifest

GRADIENTS = ("gradient", "table_gradient")
"""Purposes of graphs that give gradients."""

Draw = Callable[[str], np.random.Generator]
"""Round id -> the generator that draws its samples: fresh on a device, seeded in a simulation."""


def fresh_draw(_: str) -> np.random.Generator:
    """Seeded by the operating system: which negatives a device draws is nobody else's knowledge."""
    return np.random.default_rng()


class Computation:
    """Computes updates; between `gather` and `forget` it holds the reader's samples.

    materials: fetches what a round's task needs besides the release. draw: where samples are drawn from.
    threads: of ONNX Runtime. views: of this device, for tasks in which they meet.
    """

    def __init__(
        self,
        *,
        reading: StoredSamples,
        private: PrivateParameters,
        materials: Callable[[BlobRef], bytes],
        draw: Draw,
        clock: Callable[[], datetime],
        threads: int,
        views: LocalViews | None,
    ) -> None:
        self._reading, self._private, self._materials = reading, private, materials
        self._draw, self._clock, self._threads, self._views = draw, clock, threads, views
        self._samples: ReaderSamples | None = None
        self._session: object = None

    def gather(self, release: Release) -> int:
        """Keep the reader's samples at hand; how many there are."""
        self._samples = self._reading.samples(release.manifest.encoder)
        return self._samples.available

    def forget(self) -> None:
        """Let go of the samples."""
        self._samples = None

    def shapes(self, release: Release, manifest: RoundManifest) -> Shapes:
        """Of the tensors of an update. Raises NotEligible where the task has no samples or its materials don't come."""
        kind = TASKS[manifest.task]
        self._source(manifest, kind)
        return kind.make(self._given(release, manifest)).shapes(_params(release, manifest))

    def one_click(self, release: Release, manifest: RoundManifest) -> OneClick | None:
        """How far one click exchanged for another moves the update; None: as far as everything. Raises NotEligible."""
        return TASKS[manifest.task].one_click(self._given(release, manifest))

    def update(self, release: Release, manifest: RoundManifest) -> ComputedUpdate:
        """The task's update, without what stays private.

        Raises NotEligible, and ValueError for a task that did not compute what it said.
        """
        kind = TASKS[manifest.task]
        task = kind.make(self._given(release, manifest))
        params = _params(release, manifest)
        samples = self._source(manifest, kind)
        update = task.run(params, samples, self._gradients(release, manifest, kind), self._draw(manifest.round))
        entry = _entry(release, manifest)
        shared = shared_part(update.tensors, entry)
        if (found := {name: each.shape for name, each in shared.tensors.items()}) != dict(task.shapes(params)):
            raise ValueError(f"task {manifest.task!r}: computed {found}, which is not what it said")
        own = private_gradients(update.tensors, entry)
        return ComputedUpdate(
            shared=shared,
            samples=update.samples,
            channel=kind.channel,
            one_click=self.one_click(release, manifest),
            paid=self._paid(update, release, manifest.model, own),
        )

    def _given(self, release: Release, manifest: RoundManifest) -> TaskInputs:
        return TaskInputs(
            release=release,
            manifest=manifest,
            reading=self._reading,
            materials=lambda name: self._material(manifest, name),
            threads=self._threads,
            now=self._clock(),
            views=self._views,
        )

    def _material(self, manifest: RoundManifest, name: str) -> bytes:
        """Raises NotEligible, which declines the round, for whatever keeps the bytes away."""
        size_bytes = sum(ref.size_bytes for ref in manifest.materials.values())
        if size_bytes > MATERIALS_LIMIT_BYTES:
            raise NotEligible(f"its materials have {size_bytes} bytes, the limit is {MATERIALS_LIMIT_BYTES}.")
        if name not in manifest.materials:
            raise NotEligible(f"the round brings no {name!r}.")
        try:
            return self._materials(manifest.materials[name])
        except (BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused) as trouble:
            raise NotEligible(f"{name!r} of the round can't be had: {trouble}") from trouble

    def _source(self, manifest: RoundManifest, kind: TaskKind) -> SampleSource:
        """The samples that the task may use. Raises NotEligible if there are none."""
        if not kind.needs_samples:
            return NO_SAMPLES
        if self._samples is None:
            raise NotEligible("another round was opened while it looked for one.")
        share = manifest.held_out
        part = self._samples.held_out(share) if kind.held_out else self._samples.without_held_out(share)
        if not part.available:
            raise NotEligible("none of its clicks is held out." if kind.held_out else "all of its clicks are held out.")
        return part

    def _gradients(self, release: Release, manifest: RoundManifest, kind: TaskKind) -> GradientFn:
        if kind.graph not in GRADIENTS or manifest.model is None:
            return no_gradients
        graph = release.graph(manifest.model, kind.graph)
        # Held between rounds: the devices of a fleet share one session, which would otherwise be loaded for each.
        self._session = shared_session(graph, threads=OnnxGradients.THREADS)
        own = self._private.get(manifest.model, release.manifest.encoder)
        return OnnxGradients(graph, private=release.manifest.models[manifest.model].private, own=own)

    def _paid(
        self, update: Update, release: Release, model: str | None, gradients: Params
    ) -> Callable[[], None] | None:
        """What to do in the transaction that pays: the task's own, and the step on private parameters."""
        if model is None or not gradients:
            return update.paid
        encoder = release.manifest.encoder

        def paid() -> None:
            if update.paid is not None:
                update.paid()
            self._private.keep(model, encoder, stepped(self._private.get(model, encoder), gradients))

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


def _params(release: Release, manifest: RoundManifest) -> Params:
    return {} if manifest.model is None else release.weights(manifest.model)


def _entry(release: Release, manifest: RoundManifest) -> ModelEntry | None:
    return None if manifest.model is None else release.manifest.models.get(manifest.model)

"""Compute a round's update: run its task on the release's model and the reader's samples."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, NotEligible, ReleaseRefused
from device_app.privacy.accounting.cost_of_sums import OneClick
from device_app.privacy.private_parameters import SharedUpdate, divide, zero_update
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.process import kind_of
from device_app.ranking.ranker import FEATURES
from device_app.ranking.session import shared_session
from device_app.store.preferences import PrivateParameters
from device_app.sync.installed_release import Release
from device_app.training.gradients import GradientFn, OnnxGradients, Params, no_gradients, stepped
from device_app.training.multiview.local import LocalViews
from device_app.training.samples import (
    NO_SAMPLES,
    OTHERS_LIMIT,
    EmptyHistory,
    ReaderSamples,
    ReadingMark,
    SampleSource,
    StoredSamples,
)
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import LocalTask, Shapes, TaskInputs, TaskKind, Update
from device_app.training.union_draws import UnionDraws
from protocol.releases import BlobRef
from protocol.rounds import MATERIALS_LIMIT_BYTES, RoundManifest

_log = logging.getLogger(__name__)
GRADIENTS = ("gradient", "table_gradient")
"""Purposes of graphs that compute gradients."""

ENOUGH_CLICKS = 5
"""A device whose reader has fewer clicks takes part like any other, but its update is zeros."""

Draw = Callable[[str], np.random.Generator]
"""Round id -> the generator that draws its samples: fresh on a device, seeded in a simulation."""


def fresh_draw(_: str) -> np.random.Generator:
    """Return a generator seeded by the operating system.

    Nobody else can know which negatives the device draws.
    """
    return np.random.default_rng()


class ComputationFactory:
    """Makes computations; holds what they need besides release and round.

    Args:
        reading: the reader's feeds and clicks.
        private: values of the parameters that never leave this device.
        materials: fetches what a round's task needs besides the release.
        draw: makes the generator that draws samples.
        threads: ONNX Runtime's threads.
        views: this device's views, for tasks that combine them.
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

    def make(self, release: Release, manifest: RoundManifest) -> Computation:
        return Computation(self, release, manifest)

    def gradients(self, graph: bytes, *, private: tuple[str, ...], own: Params) -> OnnxGradients:
        """Return the gradients of a graph, with these values of its private parameters."""
        # Held between rounds: the devices of a fleet share one session, which would otherwise be loaded for each.
        self._session = shared_session(graph, threads=OnnxGradients.THREADS)
        return OnnxGradients(graph, private=private, own=own)


class Computation:
    """One round's task on one release: the form of its update, and the update.

    The form depends only on the release and the round: no data of the reader is read before `gather`, which a device
    calls after it has joined.
    """

    def __init__(self, factory: ComputationFactory, release: Release, manifest: RoundManifest) -> None:
        self._factory, self._release, self._manifest = factory, release, manifest
        self._marks: list[ReadingMark] = []
        self._samples: ReaderSamples | None = None
        self._also_unchanged: Callable[[], bool] = lambda: True
        self._kind: TaskKind = TASKS[manifest.task]
        self._entry = None if manifest.model is None else release.manifest.models.get(manifest.model)
        self._given = TaskInputs(
            release=release,
            manifest=manifest,
            reading=EmptyHistory(counts=factory.reading.counts),
            materials=self._material,
            threads=factory.threads,
            now=factory.clock(),
            draws=factory.draws,
            views=factory.views,
        )

    @property
    def round(self) -> str:
        """The round's id."""
        return self._manifest.round

    def shapes(self) -> Shapes:
        """Return the shapes of an update's tensors.

        Raises NotEligible if the round's data are unavailable.
        """
        return self._task.shapes(self._params)

    def one_click(self) -> OneClick | None:
        """Return how far replacing one click by another moves the update.

        None: as far as replacing all data. Raises NotEligible.
        """
        return self._kind.one_click(self._given)

    def gather(self) -> None:
        """Read the data that the task computes from, and record the state of the reader's clicks."""
        self._marks = [self._factory.reading.mark()]
        if self._kind.needs_samples:
            others = None if self._kind.all_displayed else OTHERS_LIMIT
            self._samples = self._factory.reading.samples(self._release.manifest.encoder, others)
            if self._kind.all_negatives:
                self._samples = self._samples.with_all_negatives()
            if self._samples.mark is not None:
                self._marks.append(self._samples.mark)

    def unchanged(self) -> bool:
        """Return whether all gathered data is still there, and none of it was muted."""
        return all(map(self._factory.reading.holds, self._marks)) and self._also_unchanged()

    def update(self) -> ComputedUpdate:
        """Return the task's update without its private part; `nothing` if it can't be computed.

        Raises NotEligible and ValueError for causes that are the same for every reader: no gradient graph. Its `paid`
        raises NotEligible, so that nothing is charged, if any data it comes from was deleted or muted meanwhile.

        Formal guarantees: graphs, weights, vectors and the round's data come from the server, which may choose them so
        that the computation fails, gives values that are not finite, or other tensors than declared, for certain clicks
        only. None of this is visible in what is sent or charged: such a device sends zeros, in the same form, under the
        same noise, at the same cost. So does a device whose reader has fewer than ENOUGH_CLICKS clicks, or none that
        can be used for the task. When it is sent doesn't depend on how long the computation takes (`due_updates`).
        """
        if not self._marks:
            self.gather()
        rng = self._factory.draw(self._manifest.round)
        left_out = self._leaves_own_out(rng)
        gradients = self._gradients(left_out)
        like = zero_update(self.shapes(), self._entry)
        source = self._source()
        if isinstance(source, ReaderSamples) and not (source.available and self._has_enough()):
            return self.nothing()
        try:
            with np.errstate(all="ignore"):
                task = self._kind.make(replace(self._given, reading=self._factory.reading))
                update = task.run(self._params, source, gradients, rng)
                shared, own = self._divided(update, like)
                self._also_unchanged = update.unchanged or self._also_unchanged
        except Exception as fault:  # whatever it is: what a release can cause may not show in what leaves
            _log.warning(
                "the update for %s could not be computed and counts as zeros: %s", self._manifest.round, kind_of(fault)
            )
            return self.nothing()
        return ComputedUpdate(
            shared=shared,
            samples=update.samples,
            channel=self._kind.channel,
            one_click=self.one_click(),
            paid=self._paid(update, {} if left_out else own),
        )

    def nothing(self) -> ComputedUpdate:
        """Return zeros in the update's form, computed without the reader's data.

        A device sends them if it has nothing to contribute, or if its update is not ready when it is due.

        Formal guarantees: in what is sent and charged it is indistinguishable from another update, like `zero_update`.
        """
        update = self._kind.zeros(self._given)
        shared = zero_update(self.shapes(), self._entry)
        if update.tensors:
            shared, _ = self._divided(update, shared)
        return ComputedUpdate(
            shared=shared,
            samples=update.samples,
            channel=self._kind.channel,
            one_click=self.one_click(),
            paid=update.paid,
        )

    def _has_enough(self) -> bool:
        return self._marks[-1].clicks >= ENOUGH_CLICKS

    def _divided(self, update: Update, like: SharedUpdate) -> tuple[SharedUpdate, dict[str, NDArray[np.float32]]]:
        """Split an update into the part that may be shared and the gradients that stay here.

        Raises ValueError for tensors other than declared, or values that are not finite.
        """
        shared, own = divide(update.tensors, self._entry)
        declared = {name: each.shape for name, each in like.tensors.items()}
        if (found := {name: each.shape for name, each in shared.tensors.items()}) != declared:
            raise ValueError(f"task {self._manifest.task!r}: computed shapes {found}, declared {declared}")
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
        """Return a material's bytes.

        Raises NotEligible, which declines the round, if they are unavailable for any reason.
        """
        materials = self._manifest.materials
        size_bytes = sum(ref.size_bytes for ref in materials.values())
        if size_bytes > MATERIALS_LIMIT_BYTES:
            raise NotEligible(f"its data have {size_bytes} bytes, the limit is {MATERIALS_LIMIT_BYTES}.")
        if name not in materials:
            raise NotEligible(f"the round includes no {name!r}.")
        try:
            return self._factory.materials(materials[name])
        except (BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused) as trouble:
            raise NotEligible(f"{name!r} of the round can't be downloaded: {trouble}") from trouble

    def _source(self) -> SampleSource:
        """Return the samples that the task may use; may be empty."""
        if self._samples is None:
            return NO_SAMPLES
        share, held = self._manifest.held_out, self._kind.held_out
        return self._samples.held_out(share) if held else self._samples.without_held_out(share)

    def _leaves_own_out(self, rng: np.random.Generator) -> bool:
        """Return whether this round leaves out the device's private parameters.

        They are then zero and stay unchanged. With LSTUR, this trains the other parameters for readers without a
        vector, too. It depends on no reader's clicks.
        """
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
        """Return the function to call in the transaction that charges.

        It checks again that all data behind the update is there, lets the task record what it must, and steps private
        parameters.
        """
        model, encoder, private = self._manifest.model, self._release.manifest.encoder, self._factory.private

        def paid() -> None:
            if not self.unchanged():
                raise NotEligible("something that the update was computed from has been deleted or muted.")
            if update.paid is not None:
                update.paid()
            if model is None or not gradients:
                return
            moved = stepped(private.get(model, encoder), gradients)
            if all(np.isfinite(value).all() for value in moved.values()):
                private.keep(model, encoder, moved)

        return paid


def trainable(release: Release, kind: TaskKind) -> tuple[str, ...] | None:
    """Return models of the release that the task can run on.

    None for a task that is not tied to a model.
    """
    if kind.role is None:
        return None
    return tuple(
        name
        for name, entry in release.manifest.models.items()
        if entry.role == kind.role
        and (kind.graph is None or release.has_graph(name, kind.graph))
        and FEATURES.keys() >= set(entry.features)
    )

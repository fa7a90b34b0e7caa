"""A device's part in FL-MV-DSSM: the mean of its views' protected gradients of the item tower (Algorithm 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from device_app.errors import NotEligible
from device_app.privacy.local_aggregate import NoisyGradient, local_secure_aggregate
from device_app.ranking.views_ranker import of_view, released_name
from device_app.training.gradients import GRADIENT_PREFIX, GradientFn, Params
from device_app.training.multiview.job import View, ViewJob, ViewTerms
from device_app.training.multiview.local import LocalViews
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import ZEROS, Shapes, TaskInputs, TaskKind, Update, gradient_shapes

MATERIAL = "views"


@dataclass(frozen=True)
class MultiViewTask:
    """g_I = local_secure_aggregate of the views' g_I,i, each clipped and with noise of its own.

    A view computes in its own process, on its own store. It either updates its own user tower there (SEMI), or
    contributes its user tower's gradient within the same clip and under the same noise (FL-DSSM; FL-MV-DSSM, if the
    release has a user tower for each view, whose g_U,i is averaged separately). This process sees only protected
    gradients: the loss is not sent (0), and every device counts as one sample, since a weight would reveal how much
    data a view has.

    A view without data contributes zeros under its noise, so the number of noisy gradients in the mean is the same on
    every device. A device with one view therefore has half the weight in the item tower's gradient.

    Args:
        views: this device's views.
        terms: the round's terms.
        round_id, model, encoder: names of the round, its model and its encoder.
        graph: the gradient graph of one view.
        negatives: N_neg.
        samples_limit: the maximum number of samples of a view.
    """

    views: LocalViews
    terms: ViewTerms
    round_id: str
    model: str
    encoder: str
    graph: bytes
    negatives: int
    samples_limit: int

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: a gradient for every shared parameter."""
        return gradient_shapes(params)

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the mean of the views' protected gradients.

        It counts as changed if something that the second view learns from was deleted meanwhile.

        Formal guarantees: each coordinate has the same Gaussian noise on every device of a round, independent of its
        views' data: sigma C / sqrt(n) for the item tower with n participating views, sigma C for the user tower of each
        of them. A user tower whose view isn't drawn is exactly zero, which follows from the draw alone.
        """
        searched = self.views.searched()
        noisy = self.views.gradients(
            self.round_id,
            self.encoder,
            self.terms,
            lambda view: of_view(params, view),
            lambda view, store, items: ViewJob(
                view=view,
                store=store,
                encoder=self.encoder,
                model=self.model,
                graph=self.graph,
                parameters=of_view(params, view),
                items=items,
                terms=self.terms,
                negatives=self.negatives,
                samples_limit=self.samples_limit,
                seed=int(rng.integers(2**63)),
            ),
            rng,
        )
        mean = self._mean(params, noisy)
        return Update(mean, 0.0, 1, unchanged=lambda: searched <= self.views.searched())

    def noise(self, params: Params, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Return the substitute for an update that can't be computed: zeros for each participating view, under its
        noise."""
        return self._mean(params, self.views.noise(self.terms, lambda view: of_view(params, view), rng))

    def _mean(self, params: Params, views: Mapping[View, NoisyGradient]) -> dict[str, NDArray[np.float32]]:
        """Return the mean of the views' gradients, under the release's parameter names."""
        named = [
            {
                GRADIENT_PREFIX + released_name(params, view, name.removeprefix(GRADIENT_PREFIX)): each
                for name, each in gradient.tensors.items()
            }
            for view, gradient in views.items()
        ]
        return {name: _mixed(name, shape, named).astype(np.float32) for name, shape in self.shapes(params).items()}


def _mixed(
    name: str, shape: tuple[int, ...], views: Sequence[Mapping[str, NDArray[np.float64]]]
) -> NDArray[np.float64]:
    """Return the mean of one tensor over the views that have it; zeros if none has, such as a tower whose view wasn't
    drawn.
    """
    gradients = [NoisyGradient({name: each[name]}) for each in views if name in each]
    return local_secure_aggregate(gradients)[name] if gradients else np.zeros(shape)


def multi_view_task(inputs: TaskInputs) -> MultiViewTask:
    """Make the task from the round's terms.

    Raises NotEligible if views can't be isolated or the round's terms can't be read, and ProtectionTooWeak for less
    noise than the reader accepts."""
    manifest, release = inputs.manifest, inputs.release
    if inputs.views is None:
        raise NotEligible("this device does not keep separate views.")
    if manifest.model is None:
        raise NotEligible("the round names no model.")
    try:
        terms = ViewTerms.model_validate_json(inputs.materials(MATERIAL))
    except ValidationError as broken:
        raise NotEligible(f"the round's terms for views can't be read: {broken.errors()[0]['msg']}.") from broken
    inputs.views.check(terms)
    return MultiViewTask(
        views=inputs.views,
        terms=terms,
        round_id=manifest.round,
        model=manifest.model,
        encoder=release.manifest.encoder,
        graph=release.graph(manifest.model, "gradient"),
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
    )


def without_views(inputs: TaskInputs) -> Update:
    """Return the views' noise, counted as one sample like every device's, so that zeros can't be recognised."""
    task = multi_view_task(inputs)
    return replace(ZEROS, tensors=task.noise(inputs.release.weights(task.model), np.random.default_rng()), samples=1)


MULTI_VIEW = TaskKind(multi_view_task, role="ranker", graph="gradient", needs_samples=False, zeros=without_views)

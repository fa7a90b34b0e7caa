"""FL-MV-DSSM's part of a device: every view's protected gradient of the item tower, and their mean (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from device_app.errors import NotEligible
from device_app.privacy.local_aggregate import NoisyGradient, local_secure_aggregate
from device_app.ranking.views_ranker import of_view, released_name
from device_app.training.gradients import GRADIENT_PREFIX, GradientFn, Params
from device_app.training.multiview.job import ViewJob, ViewTerms
from device_app.training.multiview.local import LocalViews
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, TaskKind, Update, gradient_shapes

MATERIAL = "views"


@dataclass(frozen=True)
class MultiViewTask:
    """g_I = local_secure_aggregate of the views' g_I,i, each clipped and with noise of its own.

    A view computes in a process of its own, on its own store, and steps its own user tower there (SEMI), or gives its
    user tower's gradient in the same clip and under the same noise (FL-DSSM; FL-MV-DSSM, where the release has a user
    tower for each view, whose g_U,i goes on by itself and is zero on a device without that view). This process
    sees protected gradients and nothing else: the loss is not told (0), and every device counts as one sample, since
    how much a view holds would be told by a weight.

    Args:
        views: of this device.
        terms: of the round.
        round_id, model, encoder: of the round and its release.
        graph: the gradient graph of one view.
        negatives: N_neg.
        samples_limit: most samples of a view.
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
        """A gradient for every shared parameter."""
        return gradient_shapes(params)

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The mean of the views' protected gradients. Raises NotEligible if no view has anything to learn from.

        Nothing is paid, nor leaves, if something that the second view learns from was deleted meanwhile.
        """
        searched = self.views.searched()
        noisy = self.views.gradients(
            self.round_id,
            self.encoder,
            self.terms,
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
        named = [
            {
                GRADIENT_PREFIX + released_name(params, view, name.removeprefix(GRADIENT_PREFIX)): each
                for name, each in gradient.tensors.items()
            }
            for view, gradient in noisy.items()
        ]
        mean = {name: _mixed(name, shape, named) for name, shape in self.shapes(params).items()}

        def paid() -> None:
            if searched - self.views.searched():
                raise NotEligible("its reader has deleted searches or topics that this was computed from.")

        return Update({name: each.astype(np.float32) for name, each in mean.items()}, 0.0, 1, paid)


def _mixed(
    name: str, shape: tuple[int, ...], views: Sequence[Mapping[str, NDArray[np.float64]]]
) -> NDArray[np.float64]:
    """Of one tensor the mean over the views that gave it; zeros where none did, as of a view that was not asked."""
    given = [NoisyGradient({name: each[name]}) for each in views if name in each]
    return local_secure_aggregate(given)[name] if given else np.zeros(shape)


def multi_view_task(given: TaskInputs) -> MultiViewTask:
    """Raises NotEligible where views can't be kept apart or the round's terms can't be read, ProtectionTooWeak for less
    noise than the reader accepts."""
    manifest, release = given.manifest, given.release
    if given.views is None:
        raise NotEligible("this device has no views to keep apart.")
    if manifest.model is None:
        raise NotEligible("the round names no model.")
    try:
        terms = ViewTerms.model_validate_json(given.materials(MATERIAL))
    except ValidationError as broken:
        raise NotEligible(f"the round's terms for views can't be read: {broken.errors()[0]['msg']}.") from broken
    given.views.check(terms)
    return MultiViewTask(
        views=given.views,
        terms=terms,
        round_id=manifest.round,
        model=manifest.model,
        encoder=release.manifest.encoder,
        graph=release.graph(manifest.model, "gradient"),
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
    )


MULTI_VIEW = TaskKind(multi_view_task, role="ranker", graph="gradient", needs_samples=False)

"""Evaluates a release's ranker against its predecessor's on this device's held-out clicks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.ranking.views_ranker import of_view, user_tower
from device_app.training.gradients import Batch, BoundGraph, GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.full_gradient import ranker_batch
from device_app.training.tasks.task import Shapes, TaskInputs, Update, slices_of
from protocol.ring import SHAPES, written
from protocol.tensors import TensorError, TensorSpec, unpack

BEFORE = "before"
"""The material with the predecessor's weights."""
ScoreFn = Callable[[Params, Batch], NDArray[np.float32]]


@dataclass(frozen=True)
class EvaluateTask:
    """The mean AUC of held-out clicks against unclicked articles of the same feeds, under both weights.

    A device without held-out clicks sends zeros, meaning no gain or loss: the more such devices are in the sum, the
    less visible a loss is, and nobody learns which devices they are.

    For one click and K other articles drawn from its feed, AUC is the share of the others that score lower, with ties
    counting half; its mean over draws is the AUC of the feed. Both weights are evaluated on the same draws.

    Args:
        score: the release's graph; batch -> scores [b, 1 + K].
        before: the predecessor's weights.
        negatives: K.
        samples_limit: the maximum number of clicks used.
        features: the same as for the gradient.
    """

    score: ScoreFn
    before: Params
    negatives: int
    samples_limit: int
    features: tuple[str, ...] = ()

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: three numbers, for any model."""
        return SHAPES

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the device's numbers. Raises ValueError if there are no samples."""
        drawn = samples.draw(negatives=self.negatives, limit=self.samples_limit, rng=rng, features=self.features)
        batches = [ranker_batch(drawn, rows) for rows in slices_of(len(drawn))]
        found = (
            mean_auc(np.concatenate([self.score(weights, batch) for batch in batches]))
            for weights in (_of_clicks(params), _of_clicks(self.before))
        )
        numbers = written(*found)
        return Update({name: np.array([each], np.float32) for name, each in numbers.items()}, 0.0, len(drawn))


def mean_auc(scores: NDArray[np.float32]) -> float:
    """Return the mean AUC of scores [n, 1 + K], the clicked article first."""
    clicked, others = scores[:, :1], scores[:, 1:]
    return float(np.mean((clicked > others) + 0.5 * (clicked == others)))


def _of_clicks(params: Params) -> Params:
    """Return the parameters to evaluate with.

    For a ranker of views, those of the reading view, whose samples these are; if user towers stay on devices, with the
    initial tower of a new view. For any other ranker, all parameters unchanged.
    """
    shared = of_view(params, "reading")
    return {**shared, **user_tower(shared, None)}


def evaluate_task(inputs: TaskInputs) -> EvaluateTask:
    """Make the task for the ranker that the round names.

    Raises NotEligible if the predecessor's weights don't have the same names and shapes.
    """
    release, manifest = inputs.release, inputs.manifest
    assert manifest.model is not None
    weights = release.weights(manifest.model)
    specs = {name: TensorSpec("float32", each.shape) for name, each in weights.items()}
    content = inputs.materials(BEFORE)
    try:
        before = unpack(content, specs, limit_bytes=len(content))
    except TensorError as broken:
        raise NotEligible(f"the predecessor's weights do not fit: {broken}.") from broken
    entry = release.manifest.models[manifest.model]
    graph = BoundGraph(release.graph(manifest.model, "score"), threads=inputs.threads, private=entry.private)
    return EvaluateTask(
        score=lambda params, batch: graph(params, **batch)["scores"],
        before=before,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=entry.features,
    )

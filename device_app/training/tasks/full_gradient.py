"""A ranker's gradient on one reader's clicks: a device's upload in FedSGD (FedNewsRec, eq. 2 as a mean)."""

from dataclasses import dataclass

import numpy as np

from device_app.training.gradients import Batch, GradientFn, Params
from device_app.training.samples import Samples, SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, Update, gradient_shapes, pooled_gradient


@dataclass(frozen=True)
class FullGradientTask:
    """dL_u/dw of every parameter, for the mean loss over the reader's n_u samples, drawn again for each round.

    It works for every ranker whose gradient graph takes clicks, click_mask and candidates, and optionally features,
    whatever its architecture. It is the mean, not FedNewsRec's sum (its eq. 2), which would weight a reader by n_u
    twice.

    Args:
        negatives: K.
        samples_limit: the maximum number of samples used.
        features: the columns of the graph's input `features`, in order; none for a graph without that input.
    """

    negatives: int
    samples_limit: int
    features: tuple[str, ...] = ()

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: a gradient for every shared parameter."""
        return gradient_shapes(params)

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the reader's gradient. Raises ValueError if there are no samples."""
        drawn = samples.draw(negatives=self.negatives, limit=self.samples_limit, rng=rng, features=self.features)
        return pooled_gradient(len(drawn), lambda rows: ranker_batch(drawn, rows), params, grad)


def full_gradient_task(inputs: TaskInputs) -> FullGradientTask:
    """Make the task for any ranker of the release."""
    manifest = inputs.manifest
    assert manifest.model is not None
    return FullGradientTask(
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        features=inputs.release.manifest.models[manifest.model].features,
    )


def ranker_batch(samples: Samples, rows: slice) -> Batch:
    """Return the inputs of a ranker's gradient graph.

    clicks [b, 50, D], click_mask [b, 50], candidates [b, 1 + K, D], and features [b, 1 + K, F] if the samples have
    them."""
    batch = {
        "clicks": samples.clicks[rows],
        "click_mask": samples.click_mask[rows],
        "candidates": samples.candidates[rows],
    }
    return batch if samples.features is None else batch | {"features": samples.features[rows]}

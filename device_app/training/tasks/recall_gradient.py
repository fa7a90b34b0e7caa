"""The recall model's gradient on one reader's clicks (Uni-FedRec, "Loss Function" and section 3.5)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from device_app.reading.click_clusters import average_linkage, membership, quotas
from device_app.training.gradients import Batch, BoundGraph, GradientFn, Params
from device_app.training.samples import Samples, SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, Update, gradient_shapes, pooled_gradient
from protocol.releases import RecallProtocol

ContextFn = Callable[[Params, NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]
"""(params, clicks [b, 50, D], click_mask [b, 50]) -> contexts [b, 50, D]."""


@dataclass(frozen=True)
class RecallTask:
    """dL_u/dw: the gradient of the mean loss over the reader's samples.

    Clusters are found on the context vectors under the current weights, as when serving; no gradient flows through the
    clustering. Dropout is on the inputs, as in the paper's published code: the kept numbers of clicked articles and
    candidates are scaled by 1 / (1 - dropout). That code applies it again between contexts and pooling, which an
    exported graph does not.

    Args:
        contexts: the release's `context` graph.
        protocol: cluster distance and channel limit.
        negatives: K.
        samples_limit: the maximum number of samples used.
        dropout: share of the inputs' numbers that are set to 0 at random in each sample.
    """

    contexts: ContextFn
    protocol: RecallProtocol
    negatives: int
    samples_limit: int
    dropout: float = 0.0

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: a gradient for every parameter."""
        return gradient_shapes(params)

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the reader's gradient. Raises ValueError if there are no samples."""
        drawn = samples.draw(negatives=self.negatives, limit=self.samples_limit, rng=rng)
        thinned = drawn
        if self.dropout:
            clicks, candidates = (dropped(each, self.dropout, rng) for each in (drawn.clicks, drawn.candidates))
            thinned = replace(drawn, clicks=clicks, candidates=candidates)

        def batch(rows: slice) -> Batch:
            inputs = {"clicks": thinned.clicks[rows], "candidates": thinned.candidates[rows]}
            return {**self._batch(params, drawn, rows), **inputs}

        return pooled_gradient(len(drawn), batch, params, grad)

    def _batch(self, params: Params, samples: Samples, rows: slice) -> Batch:
        clicks, mask = samples.clicks[rows], samples.click_mask[rows]
        contexts = self.contexts(params, clicks, mask)  # [b, 50, D]
        limit = self.protocol.channels_limit
        members = np.zeros((len(clicks), limit, mask.shape[1]), dtype=np.float32)
        shares = np.zeros((len(clicks), limit), dtype=np.float32)
        for row, (context, real) in enumerate(zip(contexts, mask > 0, strict=True)):
            labels = average_linkage(context[real], self.protocol.cluster_distance, limit)
            members[row][:, real] = membership(labels, limit)
            shares[row] = quotas(labels, limit)
        return {
            "clicks": clicks,
            "click_mask": mask,
            "membership": members,
            "quotas": shares,
            "candidates": samples.candidates[rows],
        }


def dropped(values: NDArray[np.float32], share: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the values after dropout: each is 0 with probability `share`, else multiplied by 1 / (1 - share)."""
    kept = rng.random(values.shape) >= share
    return np.asarray(np.where(kept, values / np.float32(1 - share), np.float32(0.0)), dtype=np.float32)


def recall_task(inputs: TaskInputs) -> RecallTask:
    """Make the task on the release's `context` graph."""
    manifest = inputs.manifest
    assert manifest.model is not None
    context = BoundGraph(inputs.release.graph(manifest.model, "context"), threads=inputs.threads)
    return RecallTask(
        contexts=lambda params, clicks, mask: context(params, clicks=clicks, click_mask=mask)["contexts"],
        protocol=inputs.release.manifest.recall,
        negatives=manifest.negatives,
        samples_limit=manifest.samples_limit,
        dropout=manifest.dropout,
    )

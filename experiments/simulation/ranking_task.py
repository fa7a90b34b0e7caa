"""A ranker's gradient on one reader's clicks: what a device uploads in FedSGD (ALGORITHMS 4.2, the mean loss)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource
from device_app.training.tasks.task import Update
from experiments.simulation.readers import batch_of

BATCH = 8


@dataclass(frozen=True)
class RankingTask:
    """dL_u/dw of the mean loss over the reader's samples; a LocalTask.

    Batches bound the memory and change nothing: their means are weighed by their sizes.
    """

    negatives: int
    samples_limit: int

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The reader's gradient."""
        drawn = samples.draw(negatives=self.negatives, limit=self.samples_limit, rng=rng)
        loss = 0.0
        sums: dict[str, NDArray[np.float64]] = {}
        for start in range(0, len(drawn), BATCH):
            batch = batch_of(drawn, slice(start, start + BATCH))
            found = grad(params, batch)
            share = len(batch["clicks"]) / len(drawn)
            loss += share * found.loss
            for name, gradient in found.tensors.items():
                sums[name] = sums.get(name, 0.0) + share * gradient.astype(np.float64)
        return Update({name: total.astype(np.float32) for name, total in sums.items()}, loss, len(drawn))

"""The gradient of a mean over samples, batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from device_app.training.gradients import Batch, GradientFn, Params
from device_app.training.tasks.task import Update

BATCH = 8


def pooled_gradient(count: int, batch: Callable[[slice], Batch], params: Params, grad: GradientFn) -> Update:
    """The gradient of the mean loss over `count` samples; `batch` gives the inputs for a slice of them.

    Batches bound the memory and change nothing: their means are weighed by their sizes, in float64.
    """
    loss = 0.0
    sums: dict[str, NDArray[np.float64]] = {}
    for start in range(0, count, BATCH):
        rows = slice(start, min(start + BATCH, count))
        found = grad(params, batch(rows))
        share = (rows.stop - rows.start) / count
        loss += share * found.loss
        for name, gradient in found.tensors.items():
            sums[name] = sums.get(name, 0.0) + share * gradient.astype(np.float64)
    return Update({name: total.astype(np.float32) for name, total in sums.items()}, loss, count)

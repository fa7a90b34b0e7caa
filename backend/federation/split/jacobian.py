"""Compute a news encoder's gradient from those of its vectors (Efficient-FedRec, eq. 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from backend.embedding.batch_executor import BatchExecutor, LocalExecutor
from backend.federation.split.torch_tasks import ModuleGradients, ModuleInputs, SlopedBatch

Batch = tuple[NDArray[np.int64], ModuleInputs]
"""Row indices [b] and the encoder's inputs for these rows."""


def vector_jacobian(
    encoder: nn.Module,
    batches: Iterable[Batch],
    vector_gradients: NDArray[np.floating[Any]],
    executor: BatchExecutor | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Return g = sum_i (d e_i / d w)^T G_i for every trained parameter w, by torch name.

    The encoder runs on one batch of articles at a time, and their rows of G are the incoming gradient of the backward
    pass. The result does not depend on how rows are split into batches if the encoder processes rows independently.

    Args:
        encoder: maps a batch's inputs to vectors [b, D].
        batches: batches that together contain each row of `vector_gradients` once.
        vector_gradients: G [n, D], the gradient of the loss for each vector.
        executor: computes the batches; their gradients are summed in float64 and in order. None: this process
            computes them with torch's threads.

    Raises ValueError unless every row occurs once, and ClusterUnavailable.
    """
    named: list[NDArray[np.int64]] = []
    totals = {name: np.zeros(each.shape) for name, each in encoder.named_parameters() if each.requires_grad}

    def sloped() -> Iterator[SlopedBatch]:
        for rows, inputs in batches:
            named.append(rows)
            yield inputs, np.ascontiguousarray(vector_gradients[rows])

    for found in (executor or LocalExecutor(torch.get_num_threads())).map(ModuleGradients(encoder), sloped()):
        for name, each in found.items():
            totals[name] += each
    if sorted(np.concatenate(named).tolist() if named else []) != list(range(len(vector_gradients))):
        raise ValueError(f"batches must name each of {len(vector_gradients)} rows once")
    return totals

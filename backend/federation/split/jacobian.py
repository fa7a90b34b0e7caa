"""The gradient of a news encoder from the gradients of its vectors (Efficient-FedRec, eq. 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Batch = tuple[NDArray[np.int64], tuple[Tensor, ...]]
"""Rows [b] and the encoder's inputs for them."""


def vector_jacobian(
    encoder: nn.Module, batches: Iterable[Batch], vector_gradients: NDArray[np.floating[Any]]
) -> dict[str, NDArray[np.float64]]:
    """g = sum_i (d e_i / d w)^T G_i for every parameter w that trains, by torch name.

    The encoder is run on a batch of news at a time and called backward with their rows of G as the incoming gradient.
    The sum does not depend on how the rows are split into batches, provided that the encoder treats rows one by one.

    Args:
        encoder: the batch's inputs -> vectors [b, D].
        batches: that together name each row of `vector_gradients` once.
        vector_gradients: G [n, D], the gradient of the loss for each vector.

    Raises ValueError unless every row is named once.
    """
    named: list[NDArray[np.int64]] = []
    parameters = {name: each for name, each in encoder.named_parameters() if each.requires_grad}
    totals = {name: torch.zeros_like(each, dtype=torch.float64) for name, each in parameters.items()}
    for rows, inputs in batches:
        vectors = encoder(*inputs)
        incoming = torch.from_numpy(np.ascontiguousarray(vector_gradients[rows])).to(vectors.dtype)
        found = torch.autograd.grad(vectors, list(parameters.values()), incoming, materialize_grads=True)
        for total, each in zip(totals.values(), found, strict=True):
            total += each.double()
        named.append(rows)
    if sorted(np.concatenate(named).tolist() if named else []) != list(range(len(vector_gradients))):
        raise ValueError(f"batches must name each of {len(vector_gradients)} rows once")
    return {name: total.numpy() for name, total in totals.items()}

"""The vector that a ranker gives to a reader, whatever its architecture: its scores of the axes of the news space.

For a ranker of one user vector these scores are that vector. For candidate attention they are nearly the mean click
times the metric. A device needs no graph for it but the one it ranks with.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from backend.federation.optimizers import Weights
from experiments.simulation.readers import Library
from experiments.simulation.strategies.method import VectorsAt
from exporters.signature import call

CHUNK = 64


def vectors_of(model: nn.Module, library: Library, clicks: NDArray[np.int64]) -> VectorsAt:
    """Vectors [n, D] of readers with these clicks [n, 50], by weights; no clicks give zeros."""

    def vectors_at(weights: Weights) -> NDArray[np.float32]:
        values = {name: torch.from_numpy(np.asarray(value, dtype=np.float32)) for name, value in weights.items()}
        axes = torch.eye(library.vectors.shape[1])[None]
        found = []
        with torch.inference_mode():
            for start in range(0, len(clicks), CHUNK):
                rows = clicks[start : start + CHUNK]
                read = torch.from_numpy(library.vectors[rows])
                mask = torch.from_numpy((rows != library.padding).astype(np.float32))
                candidates = axes.expand(len(rows), -1, -1)
                found.append(call(model, "forward", values, [read, mask, candidates]).numpy())
        return np.concatenate([*found, np.zeros((0, axes.shape[1]), np.float32)])

    return vectors_at

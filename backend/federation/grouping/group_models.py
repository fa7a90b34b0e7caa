"""Group models next to a global model: steps and re-initialisation.

Source: FINDING, Algorithm 1 and eq. 8. Weights and optimizer moments are combined with the same coefficients, since
moments that stayed behind would belong to other weights. The paper does not mention moments; its code does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.federation.optimizers import Gradient, Memory, MemoryOptimizer, SteppedWeights, Weights


@dataclass(frozen=True)
class Model:
    """Weights, and the optimizer's state for them."""

    weights: Weights
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True)
class Models:
    """The global model w_g and the K group models w_k."""

    shared: Model
    groups: tuple[Model, ...]

    @classmethod
    def alike(cls, weights: Weights, groups: int) -> Models:
        """Return the initial models: every group's model is the global one.

        Raises ValueError for no group.
        """
        if groups < 1:
            raise ValueError(f"groups: at least 1, got {groups}")
        shared = Model(weights)
        return cls(shared, (shared,) * groups)

    def stepped(self, optimizer: MemoryOptimizer, total: Gradient, by_group: Mapping[int, Gradient]) -> Models:
        """Return the models after a step: the global one along `total`, each group along its mean.

        total: the mean gradient of all clients. A group that is not in `by_group` had no client and stays unchanged.
        Interpolate the groups first (`interpolation.interpolated`). Raises ValueError for a group that does not exist.
        """
        for group in by_group:
            if not 0 <= group < len(self.groups):
                raise ValueError(f"group: 0 to {len(self.groups) - 1}, got {group}")
        return Models(
            _step(self.shared, optimizer, total),
            tuple(
                _step(model, optimizer, by_group[group]) if group in by_group else model
                for group, model in enumerate(self.groups)
            ),
        )

    def reinitialised(self, moves: NDArray[np.floating[Any] | np.integer[Any]]) -> Models:
        """Return new groups as averages of the old ones, weighted by how many readers moved.

        w_j = sum_i M_ij w_i / sum_i M_ij (eq. 8).

        moves: M [old groups, new groups], not negative. A new group that nobody moved to gets the global model; there
        the formula is 0/0, and the paper's code gives NaN. Raises ValueError for another shape or a negative count.
        """
        counts = np.asarray(moves, dtype=np.float64)
        if counts.ndim != 2 or counts.shape[0] != len(self.groups) or not counts.shape[1] or (counts < 0).any():
            raise ValueError(
                f"moves: counts from {len(self.groups)} old groups to new ones, none negative, got {counts.shape}"
            )
        sizes = counts.sum(axis=0)
        return Models(
            self.shared,
            tuple(
                _average(self.groups, counts[:, new] / sizes[new]) if sizes[new] > 0 else self.shared
                for new in range(counts.shape[1])
            ),
        )


def _step(model: Model, optimizer: MemoryOptimizer, gradient: Gradient) -> Model:
    weights, memory = optimizer.advance(model.weights, gradient, model.memory)
    return Model(weights, memory)


def _average(models: tuple[Model, ...], parts: NDArray[np.float64]) -> Model:
    """Return the weighted average of the models; parts: [models], adding up to 1."""
    first = models[0]
    weights: SteppedWeights = {
        name: np.asarray(
            sum(part * model.weights[name].astype(np.float64) for part, model in zip(parts, models, strict=True)),
            dtype=value.dtype,
        )
        for name, value in first.weights.items()
    }
    names = {name for model in models for name in model.memory.tensors}
    known = {name: next(model for model in models if name in model.memory.tensors) for name in names}
    moments = {
        name: np.asarray(
            sum(part * moment(model, name, known[name]) for part, model in zip(parts, models, strict=True)),
            dtype=np.float64,
        )
        for name in names
    }
    steps = round(float(np.dot(parts, [model.memory.steps for model in models])))
    return Model(weights, Memory(steps, moments))


def moment(model: Model, name: str, like: Model) -> NDArray[np.float64]:
    """Return a moment, or zeros if the model has not stepped yet."""
    found = model.memory.tensors.get(name)
    return np.zeros_like(like.memory.tensors[name]) if found is None else found

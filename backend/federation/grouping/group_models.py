"""Group models next to a global model: steps, re-initialisation and interpolation.

Source: FINDING, Algorithm 1 and eq. 8, and for the interpolation section 4.1.2: w'_k = lambda(t, i) w_k +
(1 - lambda(t, i)) w_g (eq. 1a, with lambda(t, i) of eqs. 4 to 7). Weights and optimizer moments are combined with the
same coefficients, so that the moments still belong to the weights. The paper does not mention moments; its code does
the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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
        Interpolate the groups first (`interpolated`). Raises ValueError for a group that does not exist.
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
            sum(part * _moment(model, name, known[name]) for part, model in zip(parts, models, strict=True)),
            dtype=np.float64,
        )
        for name in names
    }
    steps = round(float(np.dot(parts, [model.memory.steps for model in models])))
    return Model(weights, Memory(steps, moments))


def _moment(model: Model, name: str, like: Model) -> NDArray[np.float64]:
    """Return a moment, or zeros if the model has not stepped yet."""
    found = model.memory.tensors.get(name)
    return np.zeros_like(like.memory.tensors[name]) if found is None else found


@dataclass(frozen=True)
class Layers:
    """Prefixes of parameter names in definition order, the bottom layer first.

    Layers are named explicitly, since a file of weights does not keep the order of definition.

    Args:
        prefixes: `attention` matches `attention.query.weight` and all other names that begin with `attention.` or
            equal it.
        frozen_below: number of frozen layers below these, such as those of a frozen news encoder. They count in N
            and i, so that the trained layers get the same coefficients as in the whole model.
    """

    prefixes: tuple[str, ...]
    frozen_below: int = 0

    def __post_init__(self) -> None:
        if not self.prefixes or len(set(self.prefixes)) != len(self.prefixes):
            raise ValueError(f"prefixes: distinct names, at least one, got {self.prefixes}")
        if self.frozen_below < 0:
            raise ValueError(f"frozen_below: at least 0, got {self.frozen_below}")

    def __len__(self) -> int:
        """Return the number of trained layers."""
        return len(self.prefixes)

    @property
    def depth(self) -> int:
        """N, including the frozen layers."""
        return len(self.prefixes) + self.frozen_below

    def place(self, parameter: str) -> int:
        """Return the index of a parameter's trained layer, from 0.

        Raises ValueError if the parameter belongs to no layer or to several.
        """
        found = [
            place
            for place, prefix in enumerate(self.prefixes)
            if parameter == prefix or parameter.startswith(prefix + ".")
        ]
        if len(found) != 1:
            raise ValueError(f"parameter {parameter}: in {len(found)} of the layers {', '.join(self.prefixes)}")
        return found[0]


class Personalisation(Protocol):
    """Gives lambda for every trained layer, the bottom one first."""

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Return [len(layers)] from 0, all global, to 1, all the group's own.

        Rounds are counted from 1.
        """
        ...


@dataclass(frozen=True)
class TimeAndLayer:
    """lambda(t, i) = g(t) h(i), g(t) = 1 - alpha^-t, h(i) = ((i + 1) / N)^beta, i = 0 the bottom layer.

    The paper's alpha = 1.0003 is meant for 12,000 rounds: g is 0.044 after 150 rounds and 0.5 after 2,311.
    """

    alpha: float = 1.0003
    beta: float = 0.5

    def __post_init__(self) -> None:
        if not self.alpha > 1:
            raise ValueError(f"alpha: above 1, got {self.alpha}")
        if not self.beta >= 0:
            raise ValueError(f"beta: at least 0, got {self.beta}")

    def of_time(self, round_number: int) -> float:
        """Return g(t)."""
        return float(-np.expm1(-round_number * np.log(self.alpha)))

    def of_layers(self, layers: Layers) -> NDArray[np.float64]:
        """Return h(i) of the trained layers."""
        from_bottom = np.arange(layers.frozen_below, layers.depth, dtype=np.float64)
        found: NDArray[np.float64] = ((from_bottom + 1) / layers.depth) ** self.beta
        return found

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Return g(t) h(i)."""
        return self.of_time(round_number) * self.of_layers(layers)


@dataclass(frozen=True)
class Constant:
    """The same lambda for all rounds and layers.

    0 is vanilla federated learning, 1 is clustered learning.
    """

    coefficient: float

    def __post_init__(self) -> None:
        if not 0 <= self.coefficient <= 1:
            raise ValueError(f"coefficient: from 0 to 1, got {self.coefficient}")

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Return the constant for each layer."""
        return np.full(len(layers), self.coefficient)


def interpolated(models: Models, layers: Layers, coefficients: NDArray[np.float64]) -> Models:
    """Return every group at w'_k = lambda w_k + (1 - lambda) w_g, layer by layer.

    coefficients: lambda [len(layers)]. A moment uses its parameter's lambda. The number of steps, which corrects the
    bias of moments, uses the mean lambda and is rounded; it only differs if a group had rounds without a client. Raises
    ValueError for invalid coefficients.
    """
    return Models(models.shared, tuple(_mixed(group, models.shared, layers, coefficients) for group in models.groups))


def _mixed(own: Model, shared: Model, layers: Layers, coefficients: NDArray[np.float64]) -> Model:
    if coefficients.shape != (len(layers),) or (coefficients < 0).any() or (coefficients > 1).any():
        raise ValueError(f"coefficients: {len(layers)} numbers from 0 to 1, got {coefficients}")
    weights: SteppedWeights = {
        name: _blend(value, shared.weights[name], float(coefficients[layers.place(name)]))
        for name, value in own.weights.items()
    }
    moments = {}
    for name in own.memory.tensors.keys() | shared.memory.tensors.keys():
        coefficient = float(coefficients[layers.place(name.split(".", 1)[1])])
        mine, theirs = _moment(own, name, shared), _moment(shared, name, own)
        moments[name] = coefficient * mine + (1 - coefficient) * theirs
    mean = float(coefficients.mean())
    return Model(weights, Memory(round(mean * own.memory.steps + (1 - mean) * shared.memory.steps), moments))


def _blend(own: NDArray[Any], shared: NDArray[Any], coefficient: float) -> NDArray[Any]:
    """Return the interpolated array; exact at both ends: `own` at 1, `shared` at 0."""
    mixed = coefficient * own.astype(np.float64) + (1 - coefficient) * shared.astype(np.float64)
    return np.asarray(mixed, dtype=own.dtype)

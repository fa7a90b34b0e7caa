"""FINDING's interpolation between group models and the global model (section 4.1.2).

w'_k = lambda(t, i) w_k + (1 - lambda(t, i)) w_g (eq. 1a, with lambda(t, i) of eqs. 4 to 7). `Layers` divides a model's
parameters into layers, bottom first; lambda says how much of its own weights a group keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.group_models import Model, Models, moment
from backend.federation.optimizers import Memory, SteppedWeights


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

    The paper's alpha = 1.0003 is for 12,000 rounds: g reaches one half after 2,311 rounds, and .044 after 150.
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
        mine, theirs = moment(own, name, shared), moment(shared, name, own)
        moments[name] = coefficient * mine + (1 - coefficient) * theirs
    mean = float(coefficients.mean())
    return Model(weights, Memory(round(mean * own.memory.steps + (1 - mean) * shared.memory.steps), moments))


def _blend(own: NDArray[Any], shared: NDArray[Any], coefficient: float) -> NDArray[Any]:
    """Return the interpolated array; exact at both ends: `own` at 1, `shared` at 0."""
    mixed = coefficient * own.astype(np.float64) + (1 - coefficient) * shared.astype(np.float64)
    return np.asarray(mixed, dtype=own.dtype)

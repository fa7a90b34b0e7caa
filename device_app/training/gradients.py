"""Gradients of a model's parameters, by ONNX Runtime on the device, and a step along them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.session import GraphSession

GRADIENT_PREFIX = "g."
LOSS = "loss"
PRIVATE_RATE = 0.1
"""Step size of a device's own step on its private parameters: plain gradient descent, one step a round. A step is at
most .2 if scores are <u, d> with unit vectors d."""

Params = Mapping[str, NDArray[np.float32]]
Batch = Mapping[str, NDArray[Any]]
"""Inputs of a gradient graph: float32, and int64 where they are rows."""


@dataclass(frozen=True)
class Gradients:
    """The mean loss of a batch, and its gradient for each parameter, named `g.<parameter>`."""

    loss: float
    tensors: Mapping[str, NDArray[np.float32]]


class GradientFn(Protocol):
    """Computes gradients: `OnnxGradients` on devices, torch as the oracle in tests."""

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        """Return gradients of the batch's mean loss."""


def no_gradients(params: Params, batch: Batch) -> Gradients:
    """Raise ValueError: for tasks without a gradient graph."""
    raise ValueError("gradients: this task's model has no gradient graph")


class BoundGraph:
    """An ONNX graph that keeps its last parameters bound for all batches of a round.

    private names parameters that are zero if not given (`GraphSession`); own holds those that this device has learned.
    """

    def __init__(
        self, graph: bytes, *, threads: int = 1, private: Collection[str] = (), own: Params | None = None
    ) -> None:
        self._graph, self._threads, self._private, self._own = graph, threads, private, own or {}
        self._bound: tuple[Params, GraphSession] | None = None

    def __call__(self, params: Params, **inputs: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Return every output by name.

        Raises GraphMismatch if parameters or inputs do not fit the graph.
        """
        if self._bound is None or self._bound[0] is not params:
            session = GraphSession(self._graph, params, threads=self._threads, private=self._private)
            self._bound = (params, session.with_private(self._own))
        return self._bound[1](**inputs)


class OnnxGradients:
    """A release's gradient graph: loss, and a gradient for each parameter.

    It always uses one thread: ONNX Runtime's adding ScatterND, which sums the gradients of repeated rows, has a race
    between the threads of one graph (errors up to 3e-2 were seen with two).
    """

    THREADS = 1

    def __init__(self, graph: bytes, *, private: Collection[str] = (), own: Params | None = None) -> None:
        self._graph = BoundGraph(graph, threads=self.THREADS, private=private, own=own)

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        """Return gradients of the batch's mean loss. Raises GraphMismatch."""
        outputs = self._graph(params, **batch)
        return Gradients(
            loss=float(outputs[LOSS]),
            tensors={name: value for name, value in outputs.items() if name.startswith(GRADIENT_PREFIX)},
        )


def stepped(values: Params, gradients: Params, rate: float = PRIVATE_RATE) -> Params:
    """Return values - rate * gradients, a device's step on its private parameters.

    Source: LSTUR's reader vector (An et al. 2019). Parameters that are missing, or have another shape, start at zero.
    """
    moved = {}
    for name, gradient in gradients.items():
        value = values.get(name)
        start = value if value is not None and value.shape == gradient.shape else np.zeros_like(gradient)
        moved[name] = (start - np.float32(rate) * gradient).astype(np.float32)
    return moved

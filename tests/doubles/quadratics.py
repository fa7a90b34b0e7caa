"""Readers whose losses are quadratics with a ripple, in float64.

Exact gradients for identities of methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.training.tasks.task import Update

LOW, TOP = "low.w", "top.w"


@dataclass(frozen=True)
class Quadratics:
    """f_u(w) = sum a_u (w - c_u)^2 / 2 - ripple cos w, over every coordinate; n_u samples."""

    slopes: NDArray[np.float64]
    centres: NDArray[np.float64]
    samples: NDArray[np.int64]
    ripple: float = 0.0

    @classmethod
    def some(cls, readers: int, *, seed: int = 0, ripple: float = 0.3) -> Quadratics:
        rng = np.random.default_rng(seed)
        return cls(rng.uniform(0.5, 2, readers), 3 * rng.normal(size=(readers, 2)), rng.integers(1, 9, readers), ripple)

    def update(self, params: object, reader: int, round_number: int, step: int = 0) -> Update:
        found, loss = {}, 0.0
        for place, name in enumerate((LOW, TOP)):
            value = params[name]  # type: ignore[index]
            away = value - self.centres[reader, place]
            found["g." + name] = self.slopes[reader] * away + self.ripple * np.sin(value)
            loss += float((self.slopes[reader] * away**2 / 2 - self.ripple * np.cos(value)).sum())
        return Update(found, loss, int(self.samples[reader]))


def start() -> dict[str, NDArray[np.float64]]:
    return {LOW: np.array([0.4, -1.0]), TOP: np.array([1.5])}

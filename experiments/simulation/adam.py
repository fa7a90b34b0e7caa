"""Adam as a server's optimizer (Kingma and Ba 2015; ALGORITHMS 3.2: the standard form, descending)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.federation.optimizers import Gradient, Weights


class Adam:
    """m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w <- w - eta m^ / (sqrt v^ + tau), m^ and v^ bias-corrected.

    torch.optim.Adam in float64, with the moments kept between steps.
    """

    def __init__(self, learning_rate: float, *, beta1: float = 0.9, beta2: float = 0.999, tau: float = 1e-8) -> None:
        if not learning_rate > 0:
            raise ValueError(f"learning_rate: must be above 0, got {learning_rate}")
        self.learning_rate, self.beta1, self.beta2, self.tau = learning_rate, beta1, beta2, tau
        self._mean: dict[str, NDArray[np.float64]] = {}
        self._square: dict[str, NDArray[np.float64]] = {}
        self._steps = 0

    def step(self, weights: Weights, gradient: Gradient) -> dict[str, NDArray[np.float32]]:
        """One step; weights without a gradient stay."""
        self._steps += 1
        moved = {name: np.array(value, dtype=np.float32) for name, value in weights.items()}
        for name, slope in gradient.items():
            mean = self._mean[name] = self.beta1 * self._mean.get(name, 0.0) + (1 - self.beta1) * slope
            square = self._square[name] = self.beta2 * self._square.get(name, 0.0) + (1 - self.beta2) * slope**2
            corrected = mean / (1 - self.beta1**self._steps)
            spread = np.sqrt(square / (1 - self.beta2**self._steps)) + self.tau
            exact = weights[name].astype(np.float64) - self.learning_rate * corrected / spread
            moved[name] = np.asarray(exact, dtype=np.float32)  # a single number would stop being an array
        return moved

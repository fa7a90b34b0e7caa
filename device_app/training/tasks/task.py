"""What a device computes in a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.training.gradients import GradientFn, Params
from device_app.training.samples import SampleSource


@dataclass(frozen=True)
class Update:
    """The reader's gradient, in clear: it has to be clipped and made noisy before it may leave.

    tensors are named `g.<parameter>`; loss is the mean loss before the step; samples counts what went in.
    """

    tensors: Mapping[str, NDArray[np.float32]]
    loss: float
    samples: int


class LocalTask(Protocol):
    """Pure: no clock, no disk, no network; the same arguments give the same update."""

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """The update of one reader."""
        ...

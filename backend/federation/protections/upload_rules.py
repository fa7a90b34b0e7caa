"""What an update must look like before it is let into a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Shapes
from backend.federation.errors import UpdateRefused
from device_app.wire.tensors import TensorError, TensorSpec, unpack

FLOAT32_BYTES = 4
HEADER_BYTES = 4_096
HEADER_BYTES_PER_TENSOR = 512


@dataclass(frozen=True)
class UploadRules:
    """The tensors of one round's updates, the largest body, and the largest value."""

    shapes: Shapes
    limit_bytes: int
    value_limit: float

    @classmethod
    def of(cls, shapes: Shapes, value_limit: float) -> UploadRules:
        """The rules for updates of these tensors whose values are at most so large."""
        content = sum(FLOAT32_BYTES * math.prod(shape) for shape in shapes.values())
        return cls(
            shapes=shapes,
            limit_bytes=content + HEADER_BYTES + HEADER_BYTES_PER_TENSOR * len(shapes),
            value_limit=value_limit,
        )

    def read(self, content: bytes) -> dict[str, NDArray[np.float32]]:
        """The update's tensors. Raises UpdateRefused, naming the tensor and the limit."""
        try:
            specs = {name: TensorSpec("float32", shape) for name, shape in self.shapes.items()}
            update = unpack(content, specs, limit_bytes=self.limit_bytes)
        except TensorError as broken:
            raise UpdateRefused(f"{broken}.", field="body") from broken
        for name, array in update.items():
            if np.abs(array).max(initial=0.0) > self.value_limit:
                raise UpdateRefused(
                    f"Tensor {name} has values that clipping and noise can't give.",
                    field=name,
                    limit=f"{self.value_limit:g}",
                )
        return update

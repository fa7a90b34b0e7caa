"""Convert arrays to and from safetensors bytes, and check them when reading.

Shapes and dtypes are declared, and values must be finite.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

ROWS_AT_ONCE = 16_384
DTYPES = {
    "float32": np.float32,
    "float16": np.float16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int32": np.int32,
    "int64": np.int64,
}


class TensorError(ValueError):
    """A blob differs from its declaration; the message names the tensor and the limit."""


@dataclass(frozen=True)
class TensorSpec:
    """The declaration of one tensor. None in `shape` leaves that axis free, up to `axis_limit`."""

    dtype: str
    shape: tuple[int | None, ...]
    axis_limit: int = 1_000_000

    def check(self, name: str, array: NDArray[Any]) -> None:
        """Raise TensorError unless `array` has this dtype, this shape and only finite values."""
        if array.dtype != DTYPES[self.dtype]:
            raise TensorError(f"tensor {name}: dtype {array.dtype}, expected {self.dtype}")
        wanted = tuple("any" if axis is None else axis for axis in self.shape)
        fits = len(array.shape) == len(self.shape) and all(
            size <= self.axis_limit if axis is None else size == axis
            for size, axis in zip(array.shape, self.shape, strict=True)
        )
        if not fits:
            raise TensorError(
                f"tensor {name}: shape {array.shape}, expected {wanted}, free axes up to {self.axis_limit}"
            )
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise TensorError(f"tensor {name}: has values that are not finite")


def pack(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """Write tensors as one safetensors blob; the same tensors give the same bytes."""
    for name, array in tensors.items():
        if array.dtype.name not in DTYPES:
            raise TensorError(f"tensor {name}: dtype {array.dtype} is not allowed on the wire")
    return save({name: np.asarray(tensors[name], order="C") for name in sorted(tensors)})


def unpack(blob: bytes, specs: Mapping[str, TensorSpec], *, limit_bytes: int) -> dict[str, NDArray[Any]]:
    """Read a blob that must hold exactly the tensors of `specs`.

    Raises TensorError, naming what is wrong.
    """
    if len(blob) > limit_bytes:
        raise TensorError(f"blob of {len(blob)} bytes, limit {limit_bytes}")
    try:
        tensors = load(blob)
    except (SafetensorError, ValueError, KeyError) as broken:
        raise TensorError(f"not a safetensors blob: {broken}") from broken
    if missing := sorted(specs.keys() - tensors.keys()):
        raise TensorError(f"tensor {missing[0]}: missing")
    if unknown := sorted(tensors.keys() - specs.keys()):
        raise TensorError(f"tensor {unknown[0]}: not expected here")
    for name, spec in specs.items():
        spec.check(name, tensors[name])
    return tensors


def quantise(vectors: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return rows [n, D] as int8 codes and one float32 scale per row.

    The error is at most scale / 2 per coordinate.
    """
    peaks = np.maximum(vectors.max(axis=1, initial=0.0), -vectors.min(axis=1, initial=0.0))
    steps = peaks / 127.0
    # Below the smallest normal float a step has no precision left to divide by; such a row is as good as zero.
    scales = np.where(steps >= np.finfo(np.float32).tiny, steps, 1.0).astype(np.float32)
    codes = np.empty(vectors.shape, dtype=np.int8)
    for start in range(0, len(vectors), ROWS_AT_ONCE):  # a large pool needs no second copy of itself
        block = slice(start, start + ROWS_AT_ONCE)
        codes[block] = np.rint(vectors[block] / scales[block, None])
    return {"codes": codes, "scales": scales}


def dequantise(codes: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Undo `quantise`: float32 [n, D]."""
    return codes.astype(np.float32) * scales[:, None]

"""Reading the vectors that come with candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.errors import AnswerMalformed
from device_app.wire.recall import RecallAnswer
from device_app.wire.tensors import TensorError, TensorSpec, dequantise, unpack

VECTORS_LIMIT_BYTES = 8 * 1024 * 1024


def read_vectors(answer: RecallAnswer, dimensions: int) -> NDArray[np.float32]:
    """float32 [R, D], one row a candidate, in the answer's order. Raises AnswerMalformed."""
    return read_codes(answer.vectors, len(answer.candidates), dimensions, "recall", VECTORS_LIMIT_BYTES)


def read_codes(blob: bytes, rows: int, dimensions: int, what: str, limit_bytes: int) -> NDArray[np.float32]:
    """float32 [rows, dimensions] from a blob of `codes` and `scales`. Raises AnswerMalformed."""
    specs = {"codes": TensorSpec("int8", (rows, dimensions)), "scales": TensorSpec("float32", (rows,))}
    try:
        tensors = unpack(blob, specs, limit_bytes=limit_bytes)
    except TensorError as broken:
        raise AnswerMalformed(what, str(broken)) from broken
    return dequantise(tensors["codes"], tensors["scales"])

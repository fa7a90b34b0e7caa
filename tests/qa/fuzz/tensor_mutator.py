"""Mutations of safetensors blobs that often stay such blobs.

A fuzzer of bytes alone never recomputes lengths and offsets of a header, so it doesn't reach the rules for a blob's
contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from protocol.tensors import DTYPES
from tests.qa.fuzz.json_mutator import JsonMutator, Mutate

LENGTH_BYTES = 8
"""Of the header's length, little-endian, before it."""
BYTES_SHARE, HEADER_SHARE = 0.2, 0.3
"""Of mutations that are of bytes, and of the header's JSON with the numbers left as they were."""
ODD_NUMBERS = (0, 1, -1, 127, -128, 2**31 - 1, 2**63 - 1, 1e-40, 65_504.0, 3e38, np.inf, -np.inf, np.nan)


class TensorMutator:
    """Changes the tensors of a blob, its header, or its bytes."""

    def __init__(self, mutate_bytes: Mutate) -> None:
        self.mutate_bytes, self._mutate_json = mutate_bytes, JsonMutator(mutate_bytes)

    def __call__(self, data: bytes, limit_bytes: int, seed: int) -> bytes:
        """Return another blob of at most limit_bytes, determined by the seed and mutate_bytes."""
        rng = Random(seed)
        change = rng.random()
        if change >= BYTES_SHARE:
            in_header = change < BYTES_SHARE + HEADER_SHARE
            mutated = self._other_header(data, limit_bytes, seed) if in_header else _other_tensors(data, rng)
            if mutated is not None and len(mutated) <= limit_bytes:
                return mutated
        return self.mutate_bytes(data, limit_bytes)

    def _other_header(self, data: bytes, limit_bytes: int, seed: int) -> bytes:
        end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
        header = self._mutate_json(data[LENGTH_BYTES:end], limit_bytes, seed)
        return len(header).to_bytes(LENGTH_BYTES, "little") + header + data[end:]


def _other_tensors(data: bytes, rng: Random) -> bytes | None:
    """Return changed tensors; None for an invalid blob, or a tensor without numbers whose axes are too long."""
    try:
        tensors = load(data)
        name = rng.choice(sorted(tensors) or ["a"])
        changed = np.ascontiguousarray(_other_tensor(tensors.get(name, np.zeros(3, np.float32)), rng))
        kept: Mapping[str, NDArray[Any]] = tensors if rng.random() < 0.8 else {}
        return save({**kept, rng.choice((name, name, name, name + "_", "", "a")): changed})
    except (SafetensorError, ValueError, KeyError):
        return None


def _other_tensor(tensor: NDArray[Any], rng: Random) -> NDArray[Any]:
    change = rng.choice(("dtype", "flat", "axis", "transposed", "longer", "shorter", "number"))
    if change == "dtype":
        with np.errstate(invalid="ignore", over="ignore"):
            return tensor.astype(rng.choice(list(DTYPES.values())))
    if change == "flat":
        return tensor.reshape(-1)
    if change == "axis":
        return tensor[..., None]
    if change == "transposed" or not tensor.ndim:
        return tensor.T
    if change == "longer":
        return np.concatenate([tensor, tensor[: rng.choice((1, 40))]])
    if change == "shorter":
        return tensor[: rng.randint(0, len(tensor))]
    return _other_number(tensor, rng)


def _other_number(tensor: NDArray[Any], rng: Random) -> NDArray[Any]:
    changed = tensor.flatten()
    if changed.size:
        with np.errstate(invalid="ignore", over="ignore"):
            odd = np.asarray([rng.choice(ODD_NUMBERS)], np.float64).astype(tensor.dtype)
        changed[rng.randrange(changed.size)] = odd[0]
    return changed.reshape(tensor.shape)

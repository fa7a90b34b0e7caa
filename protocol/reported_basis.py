"""The public statistics of the lists that codebook reports lead to.

They are a few vectors, the same for every device. A list ranks the pool by P(i | y) = sum_k w_k(y) P(i | k), P(i | k) =
pop(i) exp(s <v_k, d_i>) / Z_k. A device holds single articles and no pool: with log Z_k it knows how much likelier than
by popularity alone a list shows any of them, and with the gradient of log Z_k with respect to v_k how a change of v_k
changes that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from protocol.recall import CODEBOOK_LIMIT
from protocol.tensors import TensorError, TensorSpec, pack, unpack

GRAPH, BASIS, BEFORE = "basis.gradient", "basis", "before"
"""Materials of a round: the ONNX graph of the gradient, the basis in question, and the one that serves."""
STEPS = "steps"
"""The trained parameter: the steps of the basic interests along the axes, [K, m]."""
DIMENSIONS_LIMIT = 4_096
BLOB_LIMIT_BYTES = 16 * 1024 * 1024

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReportLists:
    """K basic interests, and the pool's statistics for each.

    prototypes float32 [K, D], rows of length 1. log_normalisers float32 [K]: log sum_i pop(i) exp(s <v_k, d_i>), with
    pop adding up to 1 over the pool. slopes float32 [K, D]: their gradients for v_k, s times the mean article of P(. |
    k). shares float32 [K] of the readers at each, adding up to 1. axes float32 [m, D], orthonormal: directions that a
    round may move prototypes in; none if nothing is trained. sharpness: s.
    """

    prototypes: NDArray[np.float32]
    log_normalisers: NDArray[np.float32]
    slopes: NDArray[np.float32]
    shares: NDArray[np.float32]
    axes: NDArray[np.float32]
    sharpness: float

    @property
    def size(self) -> int:
        """K."""
        return len(self.prototypes)

    def log_posterior(self, epsilon: float) -> Floats:
        """Return log w_k(y), [K, K], one row for each report y.

        It is Bayes' rule after randomised response at epsilon.
        """
        logs = np.log(self.shares.astype(np.float64))[None, :] + epsilon * np.eye(self.size)
        return np.asarray(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))

    def lifts(self, clicked: NDArray[np.float32], epsilon: float) -> Floats:
        """Return log P(i

        y) - log pop(i), [n, K], of clicked articles [n, D]. | P(i | y) is the article's probability in the list of
        report y.
        """
        scores = self.sharpness * (clicked @ self.prototypes.T).astype(np.float64) - self.log_normalisers  # [n, K]
        return np.asarray(np.logaddexp.reduce(self.log_posterior(epsilon)[None] + scores[:, None, :], axis=2))

    def pack(self) -> bytes:
        """Pack as a round's material."""
        tensors = {name: getattr(self, name) for name in _NAMES}
        return pack(
            {name: each.astype(np.float32) for name, each in tensors.items()}
            | {"sharpness": np.array([self.sharpness], dtype=np.float32)}
        )

    @classmethod
    def unpack(cls, blob: bytes) -> Self:
        """Read the output of `pack`. Raises TensorError for anything else."""
        specs = {
            "prototypes": TensorSpec("float32", (None, None), axis_limit=DIMENSIONS_LIMIT),
            "log_normalisers": TensorSpec("float32", (None,), axis_limit=CODEBOOK_LIMIT),
            "slopes": TensorSpec("float32", (None, None), axis_limit=DIMENSIONS_LIMIT),
            "shares": TensorSpec("float32", (None,), axis_limit=CODEBOOK_LIMIT),
            "axes": TensorSpec("float32", (None, None), axis_limit=DIMENSIONS_LIMIT),
            "sharpness": TensorSpec("float32", (1,)),
        }
        found = unpack(blob, specs, limit_bytes=BLOB_LIMIT_BYTES)
        (size, dim), sharpness = found["prototypes"].shape, float(found.pop("sharpness")[0])
        wanted = {"log_normalisers": (size,), "slopes": (size, dim), "shares": (size,)}
        for name, shape in wanted.items():
            if found[name].shape != shape:
                raise TensorError(f"tensor {name}: shape {found[name].shape}, expected {shape}")
        if found["axes"].shape[1] != dim:
            raise TensorError(f"tensor axes: {found['axes'].shape[1]} dimensions, expected {dim}")
        if not found["shares"].min() > 0:
            raise TensorError("tensor shares: every share must be above 0")
        return cls(**found, sharpness=sharpness)


_NAMES = ("prototypes", "log_normalisers", "slopes", "shares", "axes")


def report_chances(size: int, epsilon: float) -> Floats:
    """P(y | k) [K, K] of randomised response, one row per true code k.

    The true code is e^eps times as likely.
    """
    odds = np.where(np.eye(size, dtype=bool), 1.0, math.exp(-epsilon))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))

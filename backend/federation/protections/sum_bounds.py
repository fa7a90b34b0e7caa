"""Validate single updates, and bound the opened sum of n honest devices with their noise.

Nobody can check one device's vector in a secure sum, since nobody sees it. But the sum can be checked: n vectors within
the clip add up to at most n times the clip, and the length of the noise is known except for a small probability.

    |sum|   <= N C + s sqrt(d + 2 sqrt(d t) + 2 t)        t = ln(2 / TAIL)
    |sum_j| <= N C + s sqrt(2 ln(4 d / TAIL))             s = sigma sqrt(n), one coordinate's standard deviation

Shares of discrete Gaussian noise are sub-Gaussian with parameter sigma (Canonne, Kamath and Steinke 2020, corollary
17), so their sum is sub-Gaussian with parameter s. The tail of its length is that of Hsu, Kakade and Zhang 2012,
theorem 2.1: at most s (sqrt(d) + sqrt(2 t)).

A malicious client can still add anything that stays within these bounds: if the noise is longer than the clip, it hides
vectors longer than the clip. Therefore the mean is also scaled down (`Aggregate.within_reach`). The mean of one sum,
whose direction a malicious client can determine, is scaled into the ball that contains every mean of clipped vectors.
The mean of several sums joined by a robust centre is scaled to the length that its noise gives it, so that honest steps
under noise keep their length. No step is longer than its rate times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Shapes, length
from backend.federation.errors import UpdateRefused
from protocol.protections import SAMPLES, SecureSum
from protocol.ring import WeightedSum
from protocol.tensors import TensorError, TensorSpec, unpack

FLOAT32_BYTES = 4
HEADER_BYTES = 4_096
HEADER_BYTES_PER_TENSOR = 512


@dataclass(frozen=True)
class UploadRules:
    """The tensors of a round's updates, the largest body, the largest absolute value, and the cap of n_u."""

    shapes: Shapes
    limit_bytes: int
    value_limit: float
    weight_limit: int = 1

    @classmethod
    def of(cls, shapes: Shapes, value_limit: float, weight_limit: int = 1) -> UploadRules:
        """Return the rules for updates of these tensors with values of at most this size.

        weight_limit: above 1, an update also has the tensor SAMPLES with n_u, at most this.
        """
        content = sum(FLOAT32_BYTES * math.prod(shape) for shape in shapes.values()) + FLOAT32_BYTES
        return cls(
            shapes=shapes,
            limit_bytes=content + HEADER_BYTES + HEADER_BYTES_PER_TENSOR * (len(shapes) + 1),
            value_limit=value_limit,
            weight_limit=weight_limit,
        )

    def read(self, content: bytes) -> tuple[dict[str, NDArray[np.float32]], int]:
        """Return the update's tensors and its weight: n_u, or 1 if devices count alike.

        Raises UpdateRefused, naming the tensor and the limit.
        """
        weighted = self.weight_limit > 1
        try:
            specs = {name: TensorSpec("float32", shape) for name, shape in self.shapes.items()}
            if weighted:
                specs[SAMPLES] = TensorSpec("float32", (1,))
            update = unpack(content, specs, limit_bytes=self.limit_bytes)
        except TensorError as broken:
            raise UpdateRefused(f"{broken}.", field="body") from broken
        samples = float(update.pop(SAMPLES)[0]) if weighted else 1.0
        if samples not in range(1, self.weight_limit + 1):
            raise UpdateRefused(
                f"Tensor {SAMPLES} is {samples:g}, which is not a valid number of samples in this round.",
                field=SAMPLES,
                limit=f"1 to {self.weight_limit}",
            )
        for name, array in update.items():
            if np.abs(array).max(initial=0.0) > self.value_limit:
                raise UpdateRefused(
                    f"Tensor {name} has values larger than clipping and noise allow.",
                    field=name,
                    limit=f"{self.value_limit:g}",
                )
        return update, int(samples)


TAIL: Final = 1e-9
"""The largest probability that an honest sum is refused because of its noise."""
ROUNDING: Final = 1e-6
"""The relative amount by which float32 rounding may put a clipped vector outside its ball."""
ALIKE_TAIL: Final = 0.05
"""The largest probability that honest groups of a round are left out as too similar, which loses their updates.

In practice it is far smaller, since the means of groups are far shorter than the clip.
"""


def noise_length(deviation: float, coordinates: int, tail: float = TAIL) -> float:
    """Return the L2 norm that the noise exceeds with probability at most `tail`.

    deviation: the sub-Gaussian parameter of each coordinate, for a sum of n shares sigma sqrt(n); 0 without noise. The
    coordinates are independent.
    """
    t = math.log(1 / tail)
    return deviation * math.sqrt(coordinates + 2 * math.sqrt(coordinates * t) + 2 * t)


def noise_reach(deviation: float, coordinates: int, tail: float = TAIL) -> float:
    """Return the absolute value that any coordinate exceeds with probability at most `tail`."""
    return deviation * math.sqrt(2 * math.log(2 * coordinates / tail))


def noise_deviation(protection: SecureSum, survivors: int) -> float:
    """Return the noise's standard deviation on one number of the opened sum, in its unit."""
    return float(protection.sigma * 2.0**-protection.fraction_bits * math.sqrt(survivors))


def check_sum(protection: SecureSum, sums: WeightedSum, survivors: int) -> None:
    """Raise UpdateRefused, naming the limit, for a sum that is implausible for honest devices.

    Honest devices give such a sum with a probability of at most TAIL.

    Formal guarantees: a sum that passes lies within the bounds above; an honest sum meets each of them with a
    probability of at least 1 - TAIL / 2. This bounds no single device: a malicious client may add anything up to the
    bounds.
    """
    least = survivors if protection.weight_limit == 1 else 0
    most = survivors * protection.weight_limit
    if not least <= sums.samples <= most:
        raise UpdateRefused(
            f"The opened sum counts {sums.samples} samples of {survivors} devices: some device violated the round's "
            "limits.",
            field="samples",
            limit=f"{least} to {most}",
        )
    if not sums.samples:
        raise UpdateRefused(
            "No device in the opened sum had anything to train on.", field="samples", limit="at least 1"
        )
    coordinates = sum(each.size for each in sums.tensors.values())
    deviation, step = noise_deviation(protection, survivors), 2.0**-protection.fraction_bits
    given = sums.samples * protection.clip * (1 + ROUNDING)
    rounded = survivors * step
    longest = given + rounded * math.sqrt(coordinates) + noise_length(deviation, coordinates, TAIL / 2)
    _check("norm", length(sums.tensors), longest)
    reach = noise_reach(deviation, coordinates, TAIL / 2) + rounded
    highest = max(float(each.max(initial=0.0)) for each in sums.tensors.values())
    lowest = min(float(each.min(initial=0.0)) for each in sums.tensors.values())
    _check("largest number", highest, given + reach)
    _check("smallest number, negated,", -lowest, reach if protection.nonnegative else given + reach)


def alike_deviations(groups: int) -> float:
    """Return z of `too_alike` for this number of groups, at least two."""
    return math.sqrt(2 * math.log(2 * math.comb(groups, 2) / ALIKE_TAIL))


def too_alike(sums: Sequence[WeightedSum], clip: float, deviation: float) -> frozenset[int]:
    """Return the groups whose sums agree more than honest groups' sums can.

    Both groups of a pair are returned if the inner product of their sums exceeds the following, also with i and j
    exchanged:

        g_i g_j + z (g_j s_i + |S_i| s_j)        g = n C        s = deviation sqrt(n)        z = `alike_deviations`

    The clipped vectors of two groups have an inner product of at most g_i g_j. The noise of each group is independent
    of everything in the other: at most z s_j of it lies along S_i, and at most z s_i along the clipped vectors of the
    other's devices. The noise of one group can hide a malicious vector as long as its bound, but it can't hide
    the same vector in a second group.

    deviation: standard deviation of a device's share of noise. Without noise nothing can be detected: S_i . S_j is
    within g_i g_j already.

    Formal guarantees: the probability that any honest groups are returned together is at most ALIKE_TAIL. An honest
    group is returned together with a malicious one only if the malicious vector v has an inner product that large with
    the honest sum, to which, apart from noise, the mean m of the honest group's clipped vectors gives at most |v| |m|.
    """
    if not deviation or len(sums) < 2:
        return frozenset()
    names = sorted(sums[0].tensors)
    flat = np.stack([np.concatenate([each.tensors[name].ravel() for name in names]) for each in sums])
    devices = np.array([each.samples for each in sums], dtype=np.float64)
    given, noise = devices * clip * (1 + ROUNDING), deviation * np.sqrt(devices)
    lengths, z = np.linalg.norm(flat, axis=1), alike_deviations(len(sums))
    beside = np.outer(noise, given) + np.outer(lengths, noise)
    limit = np.outer(given, given) + z * np.maximum(beside, beside.T)
    alike = np.triu(flat @ flat.T > limit, 1)
    return frozenset(np.flatnonzero(alike.any(axis=0) | alike.any(axis=1)).tolist())


def _check(what: str, value: float, limit: float) -> None:
    if not value <= limit:
        raise UpdateRefused(
            f"The opened sum's {what} is {value:.6g}, more than honest updates allow: some device "
            "violated the round's limits.",
            field="body",
            limit=f"{limit:.6g}",
        )

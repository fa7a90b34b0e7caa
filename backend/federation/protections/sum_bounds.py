"""What n honest devices and their noise can give: bounds of an opened sum, and the projection of its mean.

Nobody sees one device's vector in a secure sum, so nobody can check it. What can be checked is the sum: n vectors
within the clip add up to one within n times the clip, and the noise's length is known but for a small probability.

    |sum|   <= N C + s sqrt(d + 2 sqrt(d t) + 2 t)        t = ln(2 / TAIL)
    |sum_j| <= N C + s sqrt(2 ln(4 d / TAIL))             s = sigma sqrt(n), one coordinate's standard deviation

Shares of discrete Gaussian noise are sub-Gaussian with the parameter sigma (Canonne, Kamath and Steinke 2020, corollary
17), so their sum is with s, and the tail of its length is that of Hsu, Kakade and Zhang 2012, theorem 2.1: at most
s (sqrt(d) + sqrt(2 t)). A liar may still add what stays within the bounds: noise longer than the clip hides lies longer
than the clip. So the mean is also brought back (`Aggregate.within_reach`): of one sum, where a liar decides the
direction, into the ball that holds every mean of clipped vectors; of sums joined by a centre to the length that their
noise gives it, so that honest steps under noise keep theirs. No step is longer than its rate times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from backend.federation.bounded_mean import length
from backend.federation.errors import UpdateRefused
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import SecureSum

TAIL: Final = 1e-9
"""The probability at most that an honest sum is refused for its noise."""
ROUNDING: Final = 1e-6
"""By what share float32 may put a clipped vector outside of its ball."""
ALIKE_TAIL: Final = 0.05
"""The probability at most that honest groups of a round are left out for being alike, which costs their own work. Their
means are far shorter than the clip, so it happens far more seldom."""


def noise_length(deviation: float, coordinates: int, tail: float = TAIL) -> float:
    """What the L2 norm of `coordinates` independent sub-Gaussian numbers exceeds with a probability of at most `tail`.

    deviation: the sub-Gaussian parameter of each, for a sum of n shares sigma sqrt(n); 0 without noise.
    """
    t = math.log(1 / tail)
    return deviation * math.sqrt(coordinates + 2 * math.sqrt(coordinates * t) + 2 * t)


def noise_reach(deviation: float, coordinates: int, tail: float = TAIL) -> float:
    """What the largest of them in absolute value exceeds with a probability of at most `tail`."""
    return deviation * math.sqrt(2 * math.log(2 * coordinates / tail))


def noise_deviation(protection: SecureSum, survivors: int) -> float:
    """Standard deviation of the noise on one number of the opened sum, in the numbers' unit."""
    return float(protection.sigma * 2.0**-protection.fraction_bits * math.sqrt(survivors))


def check_sum(protection: SecureSum, sums: WeightedSum, survivors: int) -> None:
    """Raises UpdateRefused, naming the limit, for a sum that so many honest devices give at most once in 1 / TAIL.

    Formal guarantees: what passes lies within the bounds above; each is met by an honest sum with a probability of at
    least 1 - TAIL / 2. Nothing is said of any one device: up to the bounds a liar adds what it likes.
    """
    most = survivors * protection.weight_limit
    if not survivors <= sums.samples <= most:
        raise UpdateRefused(
            f"The opened sum counts {sums.samples} samples of {survivors} devices: some device has broken the terms.",
            field="samples",
            limit=f"{survivors} to {most}",
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
    """z of `too_alike` for so many groups, two at least."""
    return math.sqrt(2 * math.log(2 * math.comb(groups, 2) / ALIKE_TAIL))


def too_alike(sums: Sequence[WeightedSum], clip: float, deviation: float) -> frozenset[int]:
    """Which sums of a round's groups go further into one direction than those of honest groups can: both of each pair
    whose inner product is above this, also with i and j exchanged:

        g_i g_j + z (g_j s_i + |S_i| s_j)        g = n C        s = deviation sqrt(n)        z = `alike_deviations`

    The clipped vectors of two groups have at most g_i g_j together, and the noise of each is independent of all that is
    in the other: no more than z s_j of it lies along S_i, nor z s_i along what the other's devices have clipped. A lie
    as long as a group's own bound hides in that group's noise; the same one in a second group is not hidden by it.

    deviation: of a device's share of noise. Without noise nothing is left to see: S_i . S_j is within g_i g_j already.

    Formal guarantees: of honest groups any are named with a probability of at most ALIKE_TAIL, in all. An honest group
    is named beside one of liars only if their lie z is as much along it: |z| |m| of its clipped mean m, and noise.
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
            f"The opened sum's {what} is {value:.6g}, which honest updates can't give: some device has broken the "
            "terms.",
            field="body",
            limit=f"{limit:.6g}",
        )

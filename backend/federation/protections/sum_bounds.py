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
from typing import Final

from backend.federation.aggregate import length
from backend.federation.errors import UpdateRefused
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import SecureSum

TAIL: Final = 1e-9
"""The probability at most that an honest sum is refused for its noise."""
ROUNDING: Final = 1e-6
"""By what share float32 may put a clipped vector outside of its ball."""


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


def _check(what: str, value: float, limit: float) -> None:
    if not value <= limit:
        raise UpdateRefused(
            f"The opened sum's {what} is {value:.6g}, which honest updates can't give: some device has broken the "
            "terms.",
            field="body",
            limit=f"{limit:.6g}",
        )

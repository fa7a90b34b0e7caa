"""Compose the ledger's charges, by sums of epsilons and, where known, by privacy loss distributions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.accounting.cost_of_sums import RHO
from protocol.concentrated import epsilon_of

DELTA = 1e-6
BISECTIONS = 60
KNOWN = ("interest", "code")
"""Mechanisms whose loss has a closed form here: randomised response."""

EXACT_UP_TO, COUNTED_EXACTLY = 100.0, 2_000
"""Limits of the exact composition: above this epsilon, or this many randomised responses, the sum is as good and
faster.
"""
VALUES_LIMIT = 1_000_000
"""The most values for which the joint loss of all randomised responses is computed; the remaining responses are summed.
Responses of several different epsilons have as many values as the product of their numbers of values."""
ChargeGroup = tuple[str, str, dict[str, float], float, float, int]
"""Channel, mechanism, parameters, epsilon, delta and number of equal charges (`LedgerRepository.grouped`)."""


@dataclass(frozen=True)
class Composed:
    """All charges of a device together: the sum of epsilons, and a tighter epsilon at a delta.

    by_sum is the sum of epsilons (its own delta is delta_by_sum); by_loss holds at delta_by_sum + DELTA. sums is the
    joint epsilon of the noisy secure sums, composed by rho, at the sum of their deltas.
    """

    by_sum: float
    delta_by_sum: float
    by_loss: float
    charges: int
    sums: float = 0.0


def composed(mechanisms: Iterable[ChargeGroup]) -> Composed:
    """Compose every charge, of reports and of training.

    Formal guarantees: both figures are upper bounds for the same adaptive releases. by_loss convolves the loss of
    randomised response exactly (it takes the three values eps, 0 and -eps, so nothing is rounded to a grid), adds up
    the rho of noisy secure sums (Bun and Steinke 2016), converts it into an epsilon once, at the sum of their deltas,
    and adds the epsilon of every other mechanism unchanged; it is never above by_sum. Neither figure covers the times
    at which reports change.
    """
    mechanisms = list(mechanisms)
    by_sum = math.fsum(epsilon * count for _, _, _, epsilon, _, count in mechanisms)
    delta = math.fsum(one * count for _, _, _, _, one, count in mechanisms)
    known = [one for one in mechanisms if _is_response(one)]
    unknown = [one for one in mechanisms if not _is_response(one)]
    noisy = [one for one in unknown if RHO in one[2]]
    responses = [(int(mechanism["size"]), epsilon, count) for _, _, mechanism, epsilon, _, count in known]
    others = math.fsum(one[3] * one[5] for one in unknown if RHO not in one[2])
    rho = math.fsum(mechanism[RHO] * count for _, _, mechanism, _, _, count in noisy)
    delta_of_sums = math.fsum(one * count for _, _, _, _, one, count in noisy)
    by_rho = rho > 0 and 0 < delta_of_sums < 1
    sums = epsilon_of(rho, delta_of_sums) if by_rho else math.fsum(one[3] * one[5] for one in noisy)
    by_loss = others + sums + epsilon_of_responses(responses, DELTA)
    return Composed(by_sum, delta, min(by_sum, by_loss), sum(count for *_, count in mechanisms), sums)


def _is_response(group: ChargeGroup) -> bool:
    """Return whether these charges are randomised responses as this device makes them.

    A reader can also import charges from a file (`accounting.moved_charges`); those that this device could not have
    made are summed like any others.
    """
    _, name, mechanism, epsilon, _, count = group
    return name in KNOWN and mechanism.get("size", 0) >= 2 and epsilon <= EXACT_UP_TO and count <= COUNTED_EXACTLY


def epsilon_of_responses(responses: Iterable[tuple[int, float, int]], delta: float) -> float:
    """Return the least epsilon at delta of randomised responses given as (K, epsilon, count).

    0 for none. If the loss would have more than VALUES_LIMIT values, the epsilons of the remaining responses are added,
    so the result is still an upper bound.
    """
    beyond = 0.0
    losses: NDArray[np.float64] = np.zeros(1)
    chances: NDArray[np.float64] = np.ones(1)
    for size, epsilon, count in responses:
        if len(losses) * (2 * count + 1) > VALUES_LIMIT:
            beyond += epsilon * count
            continue
        steps, mechanism = _repeated(size, epsilon, count)
        losses = np.add.outer(losses, steps * epsilon).ravel()
        chances = np.multiply.outer(chances, mechanism).ravel()
        losses, at = np.unique(np.round(losses, 9), return_inverse=True)
        chances = np.asarray(np.bincount(at, weights=chances), dtype=np.float64)
    low, high = 0.0, float(losses.max())
    if high <= 0 or delta_at(losses, chances, 0.0) <= delta:
        return beyond
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if delta_at(losses, chances, middle) <= delta:
            high = middle
        else:
            low = middle
    return high + beyond


def delta_at(losses: NDArray[np.float64], chances: NDArray[np.float64], epsilon: float) -> float:
    """Return the hockey-stick divergence at epsilon.

    It is the sum of chance (1 - exp(epsilon - loss)) over the losses above epsilon.
    """
    above = losses > epsilon
    return float((chances[above] * -np.expm1(epsilon - losses[above])).sum())


def _repeated(size: int, epsilon: float, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the losses of `count` responses and their chances for the worst pair of readers.

    The losses are -count .. count in units of epsilon.
    """
    other = 1 / (math.exp(epsilon) + size - 1)
    single = np.array([other, (size - 2) * other, math.exp(epsilon) * other])  # losses -eps, 0, eps
    chances = np.ones(1)
    for _ in range(count):
        chances = np.convolve(chances, single)
    return np.arange(-count, count + 1, dtype=np.float64), chances

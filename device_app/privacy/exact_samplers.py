"""Sample randomised response and discrete Laplace exactly.

The samplers use uniform bits and integer arithmetic alone. After Canonne, Kamath and Steinke, "The Discrete Gaussian
for Differential Privacy" (NeurIPS 2020), algorithms 1 and 2. No floating-point number decides anything here, so the
distributions hold to the last bit of the generator's output.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

EPSILON_STEP = Fraction(1, 2**20)
"""Epsilons are rounded down to multiples of this (under one part in a million), so that every chance is rational."""
BOUND_LIMIT = 2**40


def rational(epsilon: float) -> Fraction:
    """Return epsilon rounded down to a multiple of 2^-20.

    The samplers use this value, which is never above the claimed epsilon.

    Raises ValueError unless epsilon is finite and at least 2^-20.
    """
    if not (math.isfinite(epsilon) and epsilon >= EPSILON_STEP):
        raise ValueError(f"epsilon must be finite and at least 2^-20; got {epsilon}")
    return math.floor(Fraction(epsilon) / EPSILON_STEP) * EPSILON_STEP


def uniform_below(source: NoiseSource, bound: int, n: int) -> Integers:
    """Return n independent uniform draws from 0 .. bound - 1, by rejection on 64-bit words.

    Raises ValueError unless bound is 1 to 2^40.
    """
    if not 1 <= bound <= BOUND_LIMIT:
        raise ValueError(f"bound must be 1 to 2^40; got {bound}")
    words = np.frombuffer(source.uniform_bits(8 * n), dtype="<u8").astype(np.uint64)
    if bound & (bound - 1) == 0:
        return (words & np.uint64(bound - 1)).astype(np.int64)
    last = np.uint64(2**64 // bound * bound - 1)
    while (beyond := np.flatnonzero(words > last)).size:
        words[beyond] = np.frombuffer(source.uniform_bits(8 * beyond.size), dtype="<u8")
    drawn: Integers = (words % np.uint64(bound)).astype(np.int64)
    return drawn


def bernoulli_exp(source: NoiseSource, numerators: Integers, denominator: int) -> Flags:
    """Return independent coins, exactly: coin i is true with exp(-numerators[i] / denominator).

    Raises ValueError for a negative numerator, or a denominator outside 1 to 2^30.
    """
    if not 1 <= denominator <= 2**30:
        raise ValueError(f"denominator must be 1 to 2^30; got {denominator}")
    if numerators.size and numerators.min() < 0:
        raise ValueError("numerators must not be negative")
    whole, rest = np.divmod(numerators, denominator)
    true = _bernoulli_exp_small(source, rest, denominator) if rest.any() else np.ones(rest.size, dtype=np.bool_)
    for passed in range(int(whole.max(initial=0))):  # exp(-(m + r)) = exp(-1)^m exp(-r)
        alive = np.flatnonzero(true & (whole > passed))
        if not alive.size:
            break
        true[alive] = _bernoulli_exp_small(source, np.ones(alive.size, dtype=np.int64), 1)
    return true


def _bernoulli_exp_small(source: NoiseSource, numerators: Integers, denominator: int) -> Flags:
    """Return coins by algorithm 1, for 0 <= gamma <= 1.

    It counts coins of chance gamma / k for k = 1, 2, ... until one fails; the result is true if that k is odd.
    """
    true = np.zeros(numerators.size, dtype=np.bool_)
    alive = np.arange(numerators.size)
    k = 2 if denominator == 1 and numerators.all() else 1  # gamma = 1: the first coin can't fail
    while alive.size:
        went_on = uniform_below(source, denominator * k, alive.size) < numerators[alive]
        true[alive[~went_on]] = k % 2 == 1
        alive = alive[went_on]
        k += 1
    return true


def discrete_laplace(source: NoiseSource, scale: int, n: int) -> Integers:
    """Return n independent integers y with P(y) proportional to exp(-|y| / scale).

    This is algorithm 2 with s = 1 and t = scale.

    Raises ValueError unless scale is 1 to 2^30.

    Formal guarantees: added to integers of L1 sensitivity d, the sum is epsilon-differentially private with epsilon =
    d / scale, exactly, since the distribution and the arithmetic use integers only.
    """
    if not 1 <= scale <= 2**30:
        raise ValueError(f"scale must be 1 to 2^30; got {scale}")
    drawn = np.zeros(n, dtype=np.int64)
    wanted = np.arange(n)
    while wanted.size:
        low = uniform_below(source, scale, wanted.size)
        kept = bernoulli_exp(source, low, scale)
        high = _geometric(source, wanted.size)
        negative = uniform_below(source, 2, wanted.size) == 1
        size = low + scale * high
        kept &= ~(negative & (size == 0))  # or 0 would come twice as often
        drawn[wanted[kept]] = np.where(negative, -size, size)[kept]
        wanted = wanted[~kept]
    return drawn


def _geometric(source: NoiseSource, n: int) -> Integers:
    """Return how many coins of chance exp(-1) come true before one fails."""
    counts = np.zeros(n, dtype=np.int64)
    alive = np.arange(n)
    while alive.size:
        alive = alive[bernoulli_exp(source, np.ones(alive.size, dtype=np.int64), 1)]
        counts[alive] += 1
    return counts


def randomised_response(source: NoiseSource, true: Integers, size: int, epsilon: float) -> Integers:
    """Randomise each code in `true`, from 0 to size - 1.

    The true code is e^eps times as likely to be returned as any other. By rejection: a uniform code is kept if it is
    the true one, else with chance e^-eps, else drawn again. The ratio is therefore exactly e^eps for eps =
    `rational(epsilon)`, and the number of tries has the same distribution for every true code.

    Formal guarantees: eps-local differential privacy of one code, eps = rational(epsilon) <= epsilon, exactly; P(true)
    = e^eps / (e^eps + size - 1). This says nothing about how often, or when, it is called.
    """
    exact = rational(epsilon)
    answer = np.empty(true.size, dtype=np.int64)
    wanted = np.arange(true.size)
    while wanted.size:
        offered = uniform_below(source, size, wanted.size)
        refusal = np.full(wanted.size, exact.numerator, dtype=np.int64)
        coins = bernoulli_exp(source, refusal, exact.denominator)  # drawn for all: no branch on the true code
        kept = coins | (offered == true[wanted])
        answer[wanted[kept]] = offered[kept]
        wanted = wanted[~kept]
    return answer


def uniform_subsets(source: NoiseSource, size: int, width: int, n: int) -> Integers:
    """Return n independent, equally likely subsets of 0 .. size - 1, [n, width], ascending."""
    if not 1 <= width <= size:
        raise ValueError(f"width must be 1 to {size}; got {width}")
    rows = np.arange(n)
    decks = np.tile(np.arange(size, dtype=np.int64), (n, 1))
    for place in range(width):  # Fisher and Yates, as far as needed
        pick = place + uniform_below(source, size - place, n)
        decks[rows, place], decks[rows, pick] = decks[rows, pick], decks[rows, place].copy()
    return np.sort(decks[:, :width], axis=1)


def subset_selection(source: NoiseSource, true: Integers, size: int, width: int, epsilon: float) -> Integers:
    """Draw a set of `width` topics for each true topic, [n, width].

    Sets that contain the true topic are e^eps times as likely as others. By rejection, like `randomised_response`,
    which is the case width = 1 (Ye and Barg, IEEE Trans. Inf. Theory 2018).

    Formal guarantees: eps-local differential privacy of one topic, eps = rational(epsilon) <= epsilon, exactly.
    """
    exact = rational(epsilon)
    answer = np.empty((true.size, width), dtype=np.int64)
    wanted = np.arange(true.size)
    while wanted.size:
        offered = uniform_subsets(source, size, width, wanted.size)
        refusal = np.full(wanted.size, exact.numerator, dtype=np.int64)
        coins = bernoulli_exp(source, refusal, exact.denominator)
        kept = coins | (offered == true[wanted, None]).any(axis=1)
        answer[wanted[kept]] = offered[kept]
        wanted = wanted[~kept]
    return answer

"""Draw a device's share of discrete Gaussian noise exactly (docs/decisions/006).

It is added before masking. The survivors' shares add up to the noise on the opened sum, so neither a single device nor
the server has to be trusted with all of the noise. The sampler is Canonne, Kamath and Steinke 2020; sums of such shares
are analysed in Kairouz, Liu and Steinke 2021.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import NoiseSource
from protocol.ring import FixedPoint, RingVector, as_integers, from_integers

SIGMA_LIMIT = 2**24
"""Maximum sigma in steps: keeps every intermediate number of the sampler exact, or known to 2^-40."""
FLOAT_SLACK = 2.0**-40
"""More than the relative error of exp(-x) in doubles for the exponents that occur (below 700, themselves to 2^-50)."""


@dataclass(frozen=True, eq=False)
class BoundedCode:
    """A vector of ring elements whose centred L2 norm is at most `bound_steps`.

    Checked when it's made.

    Formal guarantees: leaving a device out, or letting it in, changes the ring sum by a vector of L2 norm at most
    bound_steps (as integers, since terms rule out overflow); replacing its data by other data changes it by at most
    twice that.
    """

    codes: RingVector
    bound_steps: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bound_steps) and self.bound_steps > 0):
            raise ValueError(f"bound_steps: positive and finite, got {self.bound_steps}")
        if _norm_above(as_integers(self.codes)) > self.bound_steps:
            raise ValueError(f"codes: an L2 norm above {self.bound_steps:g} steps")


def clip_and_encode(values: NDArray[np.floating[Any]], norm: float, fixed: FixedPoint) -> BoundedCode:
    """Scale a vector into the L2 ball of radius `norm` and encode it.

    Rounding can't move the code out of the ball.

    Args:
        values: float [m]; NaN or infinity raises RingError.
        norm: C, in the unit of the values.
        fixed: the ring's fixed-point encoding.

    Formal guarantees: those of BoundedCode at C 2^f, whatever the values. If rounding pushed a code out of the ball,
    its values are truncated toward zero instead, which changes each coordinate by less than a step and never increases
    the norm.
    """
    length = float(np.linalg.norm(values.astype(np.float64)))
    scaled = values.astype(np.float64) * min(1.0, norm / length) if length > 0 else values.astype(np.float64)
    codes = fixed.encode(scaled)
    bound = norm / fixed.step
    if _norm_above(as_integers(codes)) > bound:
        # A hair inside the ball, so that the rounding of doubles can't put it outside.
        inside = np.clip(scaled, -fixed.bound, fixed.bound) * ((1 - 1e-9) / fixed.step)
        codes = from_integers(np.trunc(inside).astype(np.int64), fixed.bits)
    return BoundedCode(codes, bound)


def add_noise_share(code: BoundedCode, share_sigma: int, source: NoiseSource, bits: int) -> RingVector:
    """Return the code plus this device's share of the noise, in the ring.

    It must be masked before it is sent. share_sigma: sigma of one share, in steps. The noise of n survivors has
    variance n sigma^2.

    Formal guarantees: the opened sum over n survivors is protected like the output of a Gaussian mechanism with
    standard deviation sqrt(n) sigma and sensitivity bound_steps, with a correction for sums of discrete Gaussians; the
    figure is `protocol.concentrated.rho_of_sum`. Colluding members know their own shares: they don't count among the n.
    A device's own share alone would protect its vector far less, which is why the vector is masked.
    """
    noise = from_integers(discrete_gaussian(share_sigma, code.codes.size, source), bits)
    noise += code.codes
    return noise


def discrete_gaussian(sigma: int, size: int, source: NoiseSource) -> NDArray[np.int64]:
    """Return independent draws of the discrete Gaussian on the integers.

    P(x) is proportional to exp(-x^2 / (2 sigma^2)). Algorithm 3 of Canonne, Kamath and Steinke 2020 on whole arrays: a
    discrete Laplace variable of scale t = sigma + 1 is accepted with probability exp(-(|y| - sigma^2/t)^2 / (2
    sigma^2)). Raises ValueError unless sigma is an integer from 1 to 2^24.

    Formal guarantees: exact. Every coin compares an infinite uniform number with an exponential: its first 64 bits and
    a double decide unless they differ by no more than the double's error; then as many further digits of both are
    computed as needed. So the distribution is the stated one, and the low bits reveal nothing. The running time depends
    on the draws.
    """
    if not (isinstance(sigma, int) and 1 <= sigma <= SIGMA_LIMIT):
        raise ValueError(f"sigma: an integer from 1 to {SIGMA_LIMIT}, got {sigma!r}")
    scale = sigma + 1
    drawn: list[NDArray[np.int64]] = []
    found = 0
    while found < size:
        wanted = int(1.5 * (size - found)) + 32
        tries = _discrete_laplace(scale, wanted, source)
        distance = np.abs(tries) * scale - sigma * sigma  # below 2^63: |y| < 700 scale
        exponents = (distance / scale) ** 2 / (2.0 * sigma * sigma)

        def exactly(place: int, distance: NDArray[np.int64] = distance) -> Fraction:
            return Fraction(int(distance[place]) ** 2, 2 * sigma * sigma * scale * scale)

        kept = tries[_coins(exponents, exactly, source)][: size - found]
        drawn.append(kept)
        found += kept.size
    return np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.int64)


def _discrete_laplace(scale: int, size: int, source: NoiseSource) -> NDArray[np.int64]:
    """About `size` draws with P(x) proportional to exp(-|x| / scale).

    Algorithm 2 of the paper.

    |x| = u + scale v with u uniform below scale, kept with probability exp(-u/scale), and v geometric with ratio 1/e.
    """
    lows = _below(scale, 2 * size, source)
    lows = lows[_coins(lows / scale, lambda place: Fraction(int(lows[place]), scale), source)]
    highs = _geometric(lows.size, source)
    signs = np.frombuffer(source.uniform_bits(lows.size), dtype=np.uint8) & 1
    magnitudes = lows + scale * highs
    # Minus zero is zero a second time: thrown away, as the paper says.
    kept = (signs == 0) | (magnitudes != 0)
    draws: NDArray[np.int64] = np.where(signs == 1, -magnitudes, magnitudes)[kept]
    return draws


def _geometric(size: int, source: NoiseSource) -> NDArray[np.int64]:
    """Return the number of coins of probability 1/e that show heads in a row."""
    counts = np.zeros(size, dtype=np.int64)
    going = np.arange(size)
    while going.size:
        heads = _coins(np.ones(going.size), lambda _: Fraction(1), source)
        going = going[heads]
        counts[going] += 1
    return counts


def _below(limit: int, size: int, source: NoiseSource) -> NDArray[np.int64]:
    """Return exactly uniform integers from 0 to limit - 1, by rejection."""
    # 62 bits: the largest multiple of the limit below 2^62 is refused beyond.
    edge = (2**62 // limit) * limit
    drawn = np.zeros(0, dtype=np.int64)
    while drawn.size < size:
        words = np.frombuffer(source.uniform_bits(8 * (size - drawn.size)), dtype="<u8")
        short = (words >> np.uint64(2)).astype(np.int64)
        drawn = np.concatenate([drawn, short[short < edge] % limit])
    return drawn


def _coins(
    exponents: NDArray[np.float64], exactly: Callable[[int], Fraction], source: NoiseSource
) -> NDArray[np.bool_]:
    """Return coins that show heads with probability exactly exp(-x).

    A coin shows heads if a uniform number is below exp(-x). `exponents` are doubles near x; `exactly` gives x itself,
    for the coins that 64 bits don't decide.
    """
    words = np.frombuffer(source.uniform_bits(8 * exponents.size), dtype="<u8")
    uniform = words.astype(np.float64) * 2.0**-64
    chances = np.exp(-exponents)
    slack = FLOAT_SLACK * np.maximum(chances, uniform) + 2.0**-63
    heads = uniform < chances
    for place in np.flatnonzero(np.abs(uniform - chances) <= slack):
        heads[place] = _decide(int(words[place]), exactly(int(place)), source)
    return np.asarray(heads)


def _decide(word: int, exponent: Fraction, source: NoiseSource) -> bool:
    """Return whether a uniform number that begins with these 64 bits is below exp(-exponent).

    Further digits of both are computed until they differ.
    """
    bits = 64
    while True:
        context = Context(prec=bits // 3 + 20, rounding=ROUND_HALF_EVEN)
        x = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        chance = Fraction(context.exp(-x))
        error = Fraction(2 + abs(exponent)) * Fraction(1, 10 ** (bits // 3 + 18))
        low, high = Fraction(word, 2**bits), Fraction(word + 1, 2**bits)
        if high <= chance - error:
            return True
        if low >= chance + error:
            return False
        word = (word << 64) | int.from_bytes(source.uniform_bits(8), "little")
        bits += 64


def _norm_above(values: NDArray[np.int64]) -> float:
    """Return an upper bound on the L2 norm, at most slightly above it."""
    floats = values.astype(np.float64)
    return math.sqrt(float(np.dot(floats, floats))) * (1 + 1e-10)

"""Average the protected item-tower gradients of a device's views (FL-MV-DSSM, eq. 7).

The paper calls it local_secure_aggregate.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.noise_sources import MANTISSA_BITS, NoiseSource

EPSILON_LIMIT = 1e6


@dataclass(frozen=True)
class ClippedGradient:
    """A view's gradient whose L2 norm over all tensors is at most `bound`.

    Checked when it's made.

    Formal guarantees: replacing the view's gradient by zeros moves it by at most `bound` in L2.
    """

    tensors: Mapping[str, NDArray[np.float64]]
    bound: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bound) and self.bound > 0):
            raise ValueError(f"bound must be positive and finite; got {self.bound}")
        if not self.tensors:
            raise ValueError("a gradient needs at least one tensor")
        norm = l2_norm(self.tensors)
        if not norm <= self.bound:
            raise ValueError(f"the gradient has norm {norm}, beyond {self.bound} or not finite")


@dataclass(frozen=True)
class NoisyGradient:
    """A view's clipped gradient with its own noise, as the device's other views receive it."""

    tensors: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class ViewProtection:
    """C and sigma of every view: clip to C, then add N(0, sigma^2 C^2) to each coordinate.

    clip: C. sigma: the noise multiplier; the paper's experiments have C = 0.5, sigma = 1.

    Formal guarantees, (epsilon, delta), add/remove one view, sensitivity C, for every observer of what a view hands
    over, including the other views and whatever they know of each other: those of the Gaussian mechanism, composed over
    the rounds a device takes part in (`exact_epsilon`). At delta = 1e-3:

    - sigma = 4, 100 rounds: 10.20 (12.42 by Renyi). The paper states 4.33, which is sqrt(T log10(1/delta)) / sigma, a
      base-10 logarithm; the same formula with the natural one would be 6.57, and neither is a bound;
    - sigma = 1, 100 rounds: 80.0 (87.2); 11 rounds, what a device sees of 100 at 100 of 943 a round: 15.0 (17.8).

    The paper's formula draws noise once for the sum. With two views, each could subtract its own gradient, and would
    have to trust the component that draws the noise; here each view draws its own, so the mean of n views has a
    standard deviation of sigma C / sqrt(n). There is no privacy amplification by sampling, since all views take part.

    The unit is a view inside a device: nothing here protects a reader from the server, which sees the sum over devices
    only if that is a secure sum. The number of views and the time are not covered. Draws are doubles, not exact on a
    grid: `mechanisms.basis_laplace` describes what that means.
    """

    clip: float
    sigma: float

    def __post_init__(self) -> None:
        for name, value in (("clip", self.clip), ("sigma", self.sigma)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive and finite; got {value}")

    def bounded(self, gradient: Mapping[str, NDArray[Any]]) -> ClippedGradient:
        """Return g / max(1, ||g||_2 / C). Raises ValueError for NaN or infinity."""
        return clip_l2(gradient, self.clip)

    def noisy(self, clipped: ClippedGradient, source: NoiseSource) -> NoisyGradient:
        """Add this view's own noise. Raises ValueError if the gradient was clipped at more than C."""
        if clipped.bound > self.clip:
            raise ValueError(f"the gradient is clipped at {clipped.bound}, the limit is {self.clip}")
        scale = self.sigma * self.clip
        return NoisyGradient(
            {name: each + gaussian(source, scale, each.shape) for name, each in clipped.tensors.items()}
        )

    def epsilon(self, rounds: int, delta: float) -> float:
        """Return the joint epsilon of `rounds` gradients of one view."""
        return exact_epsilon(self.sigma, rounds, delta)


def local_secure_aggregate(views: Sequence[NoisyGradient]) -> dict[str, NDArray[np.float64]]:
    """Return the mean of the noisy gradients of all views.

    Formal guarantees: post-processing of what each view protected by itself; see `ViewProtection`. Views need not trust
    the component that runs this. Raises ValueError, naming the tensor, unless all views have the same tensors.
    """
    return mean_of([view.tensors for view in views])


def mean_of(views: Sequence[Mapping[str, NDArray[np.float64]]]) -> dict[str, NDArray[np.float64]]:
    """Return the mean, tensor by tensor.

    Raises ValueError if there is no view, or if views have different tensors or shapes.

    Formal guarantees: none; `local_secure_aggregate` accepts only protected gradients.
    """
    if not views:
        raise ValueError("views must contain at least one gradient")
    first = views[0]
    for view in views[1:]:
        if odd := sorted(first.keys() ^ view.keys()):
            raise ValueError(f"tensor {odd[0]}: not in every view")
        for name, each in view.items():
            if each.shape != first[name].shape:
                raise ValueError(f"tensor {name}: shapes {first[name].shape} and {each.shape} differ between views")
    return {name: np.mean([view[name] for view in views], axis=0) for name in first}


def clip_l2(gradient: Mapping[str, NDArray[Any]], bound: float) -> ClippedGradient:
    """Return g / max(1, ||g||_2 / C), one norm over all tensors.

    Raises ValueError for NaN or infinity.

    Formal guarantees: those of `ClippedGradient`. Because of rounding, a gradient at the bound is scaled down slightly
    more.
    """
    if not (np.isfinite(bound) and bound > 0):
        raise ValueError(f"bound must be positive and finite; got {bound}")
    exact = {name: np.asarray(each, np.float64) for name, each in gradient.items()}
    for name, each in exact.items():
        if not np.isfinite(each).all():
            raise ValueError(f"tensor {name}: has values that are not finite: nothing is released")
    norm = l2_norm(exact)
    if not np.isfinite(norm):
        raise ValueError("the gradient's norm is not finite, so nothing is released")
    if norm > bound:
        exact = {name: each * (bound / norm) for name, each in exact.items()}
        if (rounded := l2_norm(exact)) > bound:
            exact = {name: each * (bound / rounded * (1 - 2.0**-50)) for name, each in exact.items()}
    return ClippedGradient(exact, bound)


def l2_norm(tensors: Mapping[str, NDArray[np.float64]]) -> float:
    """Return the L2 norm over all coordinates of all tensors."""
    return math.hypot(*(float(np.linalg.norm(each)) for each in tensors.values()))


def gaussian(source: NoiseSource, scale: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return independent draws of N(0, scale^2).

    Inverse distribution function of u uniform on {1, ..., 2^53} / 2^54, and a sign bit of its own. Raises ValueError
    unless scale is positive and finite.

    Formal guarantees: none by itself. |x| never passes 8.3 scale, which a true draw does with probability 2^-53.
    """
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be positive and finite; got {scale}")
    from scipy.special import ndtri  # slow import, not needed by a device that reports nothing

    words = np.frombuffer(source.uniform_bits(8 * math.prod(shape)), dtype="<u8")
    halves = ((words >> np.uint64(64 - MANTISSA_BITS)).astype(np.float64) + 1) * 2.0 ** -(MANTISSA_BITS + 1)
    signs = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)  # bit 0, which u does not use
    drawn: NDArray[np.float64] = (scale * signs * -ndtri(halves)).reshape(shape)
    return drawn


def exact_epsilon(sigma: float, rounds: int, delta: float) -> float:
    """Return the least epsilon at `delta` of T Gaussian mechanisms with noise multiplier sigma.

    Together they are one with mu = sqrt(T) / sigma, and delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)
    (Balle and Wang, ICML 2018, theorem 8). Raises ValueError for arguments out of range, or an epsilon beyond a
    million.
    """
    from scipy.optimize import brentq  # slow imports, not needed by a device that reports nothing
    from scipy.special import log_ndtr

    mu = math.sqrt(_checked(sigma, rounds, delta)) / sigma

    def excess(epsilon: float) -> float:
        tail = math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        return math.exp(log_ndtr(mu / 2 - epsilon / mu)) - tail - delta

    if excess(0.0) <= 0:
        return 0.0
    if excess(EPSILON_LIMIT) > 0:
        raise ValueError(f"epsilon is beyond {EPSILON_LIMIT:g} at sigma {sigma} and {rounds} rounds")
    return float(brentq(excess, 0.0, EPSILON_LIMIT, xtol=1e-12, rtol=1e-12))


def composed_epsilon(sigmas: Sequence[float], delta: float) -> float:
    """Return the joint epsilon of Gaussian mechanisms with different noise; their mu^2 add up. 0 for none.

    Formal guarantees: the least epsilon at `delta` of all of them together, each chosen before it is drawn (Dong, Roth
    and Su, corollary 3.3: n mechanisms of mu_i are one of sqrt(sum mu_i^2)).
    """
    if not sigmas:
        return 0.0
    for sigma in sigmas:
        _checked(sigma, 1, delta)
    return exact_epsilon(1 / math.sqrt(math.fsum(1 / sigma**2 for sigma in sigmas)), 1, delta)


def renyi_epsilon(sigma: float, rounds: int, delta: float) -> float:
    """Return the Renyi (moments) bound on epsilon, looser than `exact_epsilon`.

    min over orders a > 1 of a T / (2 sigma^2) + ln(1/delta) / (a - 1), in closed form s + 2 sqrt(s ln(1/delta)) with s
    = T / (2 sigma^2).
    """
    s = _checked(sigma, rounds, delta) / (2 * sigma**2)
    return s + 2 * math.sqrt(s * math.log(1 / delta))


def _checked(sigma: float, rounds: int, delta: float) -> int:
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma must be positive and finite; got {sigma}")
    if rounds < 1:
        raise ValueError(f"rounds must be 1 or more; got {rounds}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1; got {delta}")
    return rounds

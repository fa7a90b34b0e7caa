"""Compute the privacy cost of noisy secure sums, identically on device and server.

It uses concentrated differential privacy (Bun and Steinke 2016): rho adds up over rounds, and gives an epsilon for any
delta.
"""

import math

import numpy as np

HALVINGS = 80


def rho_of_sum(bound_steps: float, share_sigma: int, contributors: int, coordinates: int) -> float:
    """Return rho of one opened sum, for adding or removing one device.

    Kairouz, Liu and Steinke 2021, theorem 1 (distributed discrete Gaussian), with sigma and the L2 bound in steps:
    epsilon = min(sqrt(D^2 / (n s^2) + tau d / 2), D / (sqrt(n) s) + tau sqrt(d)),  rho = epsilon^2 / 2,
    tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k + 1)): how far a sum of discrete Gaussians is from being one.

    Args:
        bound_steps: D, of a device's vector.
        share_sigma: s, of one device's share of the noise.
        contributors: n, honest survivors, whose shares nobody else knows.
        coordinates: d.
    """
    if not (bound_steps > 0 and share_sigma >= 1 and contributors >= 1 and coordinates >= 1):
        raise ValueError(
            f"bound_steps {bound_steps}, share_sigma {share_sigma}, contributors {contributors} and coordinates "
            f"{coordinates} must be positive"
        )
    k = np.arange(1, contributors)
    tau = 10.0 * float(np.exp(-2 * math.pi**2 * share_sigma**2 * k / (k + 1)).sum())
    ratio = bound_steps / (math.sqrt(contributors) * share_sigma)
    epsilon = min(math.sqrt(ratio**2 + tau * coordinates / 2), ratio + tau * math.sqrt(coordinates))
    return epsilon**2 / 2


def epsilon_of(rho: float, delta: float) -> float:
    """Return the least epsilon that rho gives for this delta.

    Source: Canonne, Kamath and Steinke 2020, corollary 13, minimised over alpha. epsilon = alpha rho + log(1 - 1/alpha)
    - log(delta alpha) / (alpha - 1), any alpha > 1 is a valid bound. Infinite if rho is infinite or NaN.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta: between 0 and 1, got {delta}")
    if not math.isfinite(rho):
        return math.inf
    if rho <= 0:
        return 0.0
    # The best alpha is near 1 + sqrt(log(1/delta) / rho); two decades around it, finely. In terms of alpha - 1, since
    # alpha itself is rounded to 1 where rho is very large.
    middle = math.sqrt(math.log(1 / delta) / rho)
    over = middle * np.logspace(-1, 1, 4_001)
    logs = np.log1p(over)
    epsilons = (1 + over) * rho + np.log(over) - logs - (math.log(delta) + logs) / over
    return max(0.0, float(epsilons.min()))


def rho_within(epsilon: float, delta: float) -> float:
    """Return the largest rho whose epsilon at delta is at most this one; 0 for 0.

    It is found by bisection of `epsilon_of`.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon: a number from 0, got {epsilon}")
    low, high = 0.0, epsilon
    while epsilon_of(high, delta) <= epsilon and high > 0:
        high *= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if epsilon_of(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low

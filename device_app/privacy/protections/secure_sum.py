"""A device's part of a secure sum: its update scaled into a ball, weighed, in fixed point, perhaps with noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.privacy.discrete_noise import add_noise_share, clip_and_encode
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.prices import DELTA, OneClick, sum_prices
from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.contribution import Contribution
from device_app.wire.protections import Protection, SecureSum
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import SumTerms

NAME = "secure_sum"


def secure_sum_of(protection: Protection, otherwise: str) -> SecureSum:
    """The protection itself, for a task that takes part in sums of clipped vectors only.

    Raises NotEligible, with `otherwise` as its sentence.
    """
    if not isinstance(protection, SecureSum):
        raise NotEligible(otherwise)
    return protection


@dataclass(frozen=True)
class NormClipped:
    """An update within the L2 ball of radius `norm`; checked when it's made.

    Formal guarantees: exchanging all of a reader's data moves it by at most 2 norm in L2; and those of `SharedUpdate`.
    """

    update: SharedUpdate
    norm: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.norm) and self.norm > 0):
            raise ValueError(f"norm: positive and finite, got {self.norm}")
        if not _norm(self.update) <= self.norm * (1 + 1e-6):
            raise ValueError(f"update: its L2 norm is above {self.norm}, or not finite")


def clip_norm(update: SharedUpdate, norm: float) -> NormClipped:
    """Scale an update down to `norm` if it's longer. Raises ValueError for NaN or infinity: nothing is released.

    Formal guarantees: those of `NormClipped`, whatever the values.
    """
    length = _norm(update)
    if not np.isfinite(length):
        raise ValueError("update: has values that are not finite: nothing is released")
    factor = min(1.0, norm / length) if length > 0 else 1.0
    # In doubles: the factor of a huge update may be too small for a float32.
    scaled = {
        name: np.asarray(tensor.astype(np.float64) * factor, dtype=np.float32) if factor < 1 else tensor
        for name, tensor in update.tensors.items()
    }
    return NormClipped(replace(update, tensors=scaled), norm)


def contribute(
    clipped: NormClipped,
    samples: int,
    protection: SecureSum,
    terms: SumTerms,
    source: NoiseSource,
    *,
    delta: float = DELTA,
    channel: str = "training",
    one_click: OneClick | None = None,
) -> Contribution:
    """The vector to be masked and what the opened sum costs this device.

    Args:
        clipped: the mean gradient g_u, at most at the round's clip.
        samples: n_u; what is above the protection's weight_limit counts as that.
        protection, terms: of the round, checked against each other before (`training.eligibility`).
        source: cryptographic on a device.
        delta: at which this device prices sums.
        channel: of the ledger, which pays.
        one_click: how far one click exchanged for another moves the update at most; None: as far as all of them.

    Raises ValueError for a longer clip than the protection's, for a negative value under one that is priced for none,
    and for noise that comes to no price.

    Formal guarantees: with sigma > 0, (epsilon, delta)-differential privacy of the opened sum for exchanging all of
    this reader's data, with the noise of `cohort_minimum` survivors, none of whom tells the server its share
    (`SecureSum.rho`); more survivors make it smaller than what is charged. Whoever else is real, the vector is never
    told with less than this device's own share of noise, whose price is in the charge too (`prices.sum_prices`).
    Without noise the charge is 0 because no epsilon bounds what an exact sum tells: what remains is that the server
    sees no less than the sum of that many devices. Taking part isn't hidden, nor, without noise, the number of all
    samples together.
    """
    if clipped.norm > protection.clip:
        raise ValueError(f"the update is clipped at {clipped.norm}, the round's limit is {protection.clip}")
    tensors = clipped.update.tensors
    if protection.nonnegative and any((each < 0).any() for each in tensors.values()):
        raise ValueError("the update has values below 0, and the sum is priced for none")
    weight = min(samples, protection.weight_limit)
    layout = protection.layout({name: tensor.shape for name, tensor in tensors.items()}, terms)
    plain = layout.encode(tensors, weight)
    lost = layout.fixed.rounded_to_zero(_flat(clipped.update), plain[:-1])
    parameters = {
        "clip": protection.clip,
        "sigma": float(protection.sigma),
        "survivors_at_least": float(terms.cohort_minimum),
        "weight": float(weight),
        "rounded_to_zero": lost,
    }
    if not protection.sigma:
        return Contribution(plain, Charge(channel, NAME, parameters, subject=terms.round))
    steps = None if one_click is None else one_click.steps(layout.fixed.step)
    prices = sum_prices(protection, terms.cohort_minimum, layout.coordinates, delta, one_click_steps=steps)
    if not prices.possible:
        raise ValueError(
            f"sigma: noise of {protection.sigma} comes to epsilon {prices.epsilon:g}, alone {prices.alone:g}"
        )
    charge = Charge(channel, NAME, parameters | dict(prices.parameters), prices.epsilon, delta, subject=terms.round)
    return Contribution(_noisy(clipped, protection, terms, source), charge)


def _noisy(clipped: NormClipped, protection: SecureSum, terms: SumTerms, source: NoiseSource) -> RingVector:
    """The layout's vector at weight 1, with a noise share on every coordinate. The 1 at the end is public."""
    code = clip_and_encode(_flat(clipped.update), protection.clip, terms.fixed_point())
    noisy = add_noise_share(code, protection.sigma, source, terms.bits)
    return np.append(noisy, np.ones(1, dtype=ring_dtype(terms.bits)))


def _flat(update: SharedUpdate) -> NDArray[np.float64]:
    """All values in the order of `UpdateLayout`: by ascending name, each in C order."""
    return np.concatenate([update.tensors[name].astype(np.float64).reshape(-1) for name in sorted(update.tensors)])


def _norm(update: SharedUpdate) -> float:
    return float(np.linalg.norm(_flat(update)))

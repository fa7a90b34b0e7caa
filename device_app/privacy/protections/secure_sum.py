"""Check and price a device's part in a secure sum, and make the vector to be masked.

`MaskedProtection` checks what the reader accepts and computes the cost in the worst case. `contribute` scales an update
into a ball, weights it, encodes it in fixed point and adds noise if the protection has any.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NotEligible, ProtectionTooWeak
from device_app.privacy.accounting.cost_of_sums import DELTA, OneClick, SumPrices, SumsAlone, sum_prices
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import Ceilings
from device_app.privacy.noise_share import add_noise_share, clip_and_encode
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.protections.protection import ROUNDING, ComputedUpdate
from device_app.privacy.sealed import Charge, Sealed
from device_app.privacy.secagg.messages import Contribution
from device_app.privacy.settings import PrivacySettings
from protocol.protections import Protection, SecureSum
from protocol.ring import RingVector, ring_dtype
from protocol.rounds import RoundManifest
from protocol.secagg import SumTerms
from protocol.union import UnionMarks

Masked = TypeVar("Masked", SecureSum, UnionMarks)


@dataclass(frozen=True)
class MaskedProtection(Generic[Masked]):
    """Base of protections whose updates leave under masks; subclasses define the vector."""

    protection: Masked

    def check(self, privacy: PrivacySettings) -> None:
        """Raise ProtectionTooWeak if the reader allows no secure sums, or none without noise."""
        if privacy.secure_sum == "never":
            raise ProtectionTooWeak("the settings allow no secure sums.")
        if privacy.secure_sum == "noisy" and not self.protection.sigma:
            raise ProtectionTooWeak("the sum has no noise, and the settings allow only sums with noise.")

    def price(
        self,
        manifest: RoundManifest,
        coordinates: int,
        privacy: PrivacySettings,
        alone: SumsAlone,
        one_click: OneClick | None,
    ) -> float:
        """Return the cost of the sum in the worst case.

        0 for an exact one, which no epsilon bounds. The sum's terms must be those that follow from the protection, from
        which the cost is computed. Raises ProtectionTooWeak if the sum has too few members, or reveals more than is
        allowed; BudgetSpent like `SumsAlone.check`.
        """
        prices = self._allowed(manifest, coordinates, privacy, one_click)
        if prices is None:
            return 0.0
        alone.check(prices.rho_alone, Ceilings.of(privacy))
        return prices.epsilon

    def check_again(self, manifest: RoundManifest, privacy: PrivacySettings) -> None:
        """Like `check` and `price`, for a sum that is paid for but has messages left to send.

        Raises ProtectionTooWeak. The reader's limits for one sum may have changed since, while the budget for all sums
        has already been charged. The ceiling for one click is checked only at payment, not again here.
        """
        self.check(privacy)
        self._allowed(manifest, sum(math.prod(shape) for shape in manifest.shapes.values()), privacy, None)

    def _allowed(
        self, manifest: RoundManifest, coordinates: int, privacy: PrivacySettings, one_click: OneClick | None
    ) -> SumPrices | None:
        """Return the costs of a sum that the reader's settings allow, None for an exact one.

        Raises ProtectionTooWeak.
        """
        self._check_terms(manifest, coordinates, privacy)
        if not self.protection.sigma:
            return None
        terms, delta = terms_of(manifest), privacy.delta_per_sum
        steps = None if one_click is None else one_click.steps(terms.fixed_point().step)
        prices = sum_prices(self.protection, terms.cohort_minimum, coordinates, delta, one_click_steps=steps)
        if not prices.possible:
            raise ProtectionTooWeak(
                f"the noise in its sum costs epsilon {prices.epsilon:g} at delta {delta:g}, or {prices.alone:g} "
                "if no other device is real; a sum with noise costs more than 0 and less than infinity."
            )
        for what, price, ceiling in _ceilings(prices, privacy, one_click):
            if price > ceiling * (1 + ROUNDING):
                raise ProtectionTooWeak(
                    f"{what} costs epsilon {price:.3g} at delta {delta:g}; at most {ceiling:g} is allowed."
                )
        return prices

    def seal(
        self, update: ComputedUpdate, manifest: RoundManifest, *, ledger: Ledger, noise: NoiseSource
    ) -> Sealed[Any]:
        """Raise ValueError: a masked vector is not a single upload."""
        raise ValueError(f"protection: {self.protection.kind} is for secure sums, not for single uploads")

    def _check_terms(self, manifest: RoundManifest, coordinates: int, privacy: PrivacySettings) -> None:
        terms = terms_of(manifest)
        if terms.cohort_minimum < privacy.smallest_sum:
            raise ProtectionTooWeak(
                f"the sum may be opened with {terms.cohort_minimum} devices in it; the settings require at "
                f"least {privacy.smallest_sum}."
            )
        if terms.mode != "active" and not (self.protection.sigma and privacy.secure_sum_mode == "semi_honest"):
            asks = "the settings require one" if self.protection.sigma else "without noise it needs one"
            raise ProtectionTooWeak(f"the sum has no consistency round, and {asks}.")
        try:
            due = self.protection.terms(
                manifest.round,
                cohort=terms.cohort,
                cohort_minimum=terms.cohort_minimum,
                coordinates=coordinates,
            )
            self.protection.layout(manifest.shapes, due)  # raises for a task that a union doesn't fit
        except ValueError as impossible:
            raise ProtectionTooWeak(f"{impossible}.") from impossible
        if terms != due:
            raise ProtectionTooWeak("the terms of its sum don't match its protection.")


def _ceilings(
    prices: SumPrices, privacy: PrivacySettings, one_click: OneClick | None
) -> list[tuple[str, float, float]]:
    """Return the label, cost and allowed maximum of each of a sum's costs.

    Without a proven bound for one click, the click may move the vector as far as all data, so the ceiling for all data
    applies.
    """
    click = privacy.epsilon_per_sum_alone if one_click is None else privacy.epsilon_per_click_alone
    return [
        ("the opened sum", prices.epsilon, privacy.epsilon_per_sum),
        ("if no other device is real, the opened sum", prices.alone, privacy.epsilon_per_sum_alone),
        ("if no other device is real, one click in the opened sum", prices.one_click_alone, click),
    ]


def terms_of(manifest: RoundManifest) -> SumTerms:
    """Return the terms of a round's sum.

    Raises ValueError for a round without one, which the manifest's validation rules out.
    """
    if manifest.terms is None:
        raise ValueError(f"terms: {manifest.round} has a secure sum but no terms")
    return manifest.terms


NAME = "secure_sum"


def secure_sum_of(protection: Protection, otherwise: str) -> SecureSum:
    """Return the protection itself, for a task that only supports sums of clipped vectors.

    Raises NotEligible, with `otherwise` as its message.
    """
    if not isinstance(protection, SecureSum):
        raise NotEligible(otherwise)
    return protection


@dataclass(frozen=True)
class NormClipped:
    """An update within the L2 ball of radius `norm`; checked when it's made.

    Formal guarantees: replacing all of a reader's data moves it by at most 2 norm in L2; and those of `SharedUpdate`.
    """

    update: SharedUpdate
    norm: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.norm) and self.norm > 0):
            raise ValueError(f"norm: positive and finite, got {self.norm}")
        if not _norm(self.update) <= self.norm * (1 + 1e-6):
            raise ValueError(f"update: its L2 norm is above {self.norm}, or not finite")


def clip_norm(update: SharedUpdate, norm: float) -> NormClipped:
    """Scale an update down to `norm` if it's longer.

    Raises ValueError for NaN or infinity: nothing is released.

    Formal guarantees: those of `NormClipped`, for any values.
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
    """Return the vector to be masked and what the opened sum costs this device.

    Args:
        clipped: the mean gradient g_u, clipped to at most the round's clip.
        samples: n_u, 0 for a device without any; capped at the protection's weight_limit. If that is 1, every device
            counts as 1.
        protection, terms: the round's, checked against each other before (`training.eligibility`).
        source: cryptographic on a device.
        delta: at which this device prices sums.
        channel: the ledger's channel that is charged.
        one_click: the largest change of the update when one click is replaced by another; None: the same as when all
        are replaced.

    Raises ValueError for a clip above the protection's, for a negative value under a protection that is priced
    for nonnegative values only, and for noise whose cost is not finite.

    Formal guarantees: with sigma > 0, (epsilon, delta)-differential privacy of the opened sum for replacing all of this
    reader's data, with the noise of `cohort_minimum` survivors, none of whom reveals its share to the server
    (`SecureSum.rho`); with more survivors the true cost is below the charge. Even if no other device is real, the
    vector is never revealed with less than this device's own share of noise, whose cost is in the charge too
    (`cost_of_sums.sum_prices`). Without noise the charge is 0 because no epsilon bounds what an exact sum reveals: then
    the only guarantee is that the server sees no sum of fewer devices. Participation isn't hidden; without noise,
    neither is the total number of samples.
    """
    if clipped.norm > protection.clip:
        raise ValueError(f"the update is clipped at {clipped.norm}, the round's limit is {protection.clip}")
    tensors = clipped.update.tensors
    if protection.nonnegative and any((each < 0).any() for each in tensors.values()):
        raise ValueError("the update has values below 0, but the cost was computed for none")
    weight = 1 if protection.weight_limit == 1 else min(samples, protection.weight_limit)
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
            f"sigma: noise of {protection.sigma} costs epsilon {prices.epsilon:g}, or {prices.alone:g} if all "
            "other devices are fake"
        )
    charge = Charge(channel, NAME, parameters | dict(prices.parameters), prices.epsilon, delta, subject=terms.round)
    return Contribution(_noisy(clipped, protection, terms, source), charge)


def _noisy(clipped: NormClipped, protection: SecureSum, terms: SumTerms, source: NoiseSource) -> RingVector:
    """Return the layout's vector at weight 1, with a noise share on every coordinate.

    The 1 at the end is public.
    """
    code = clip_and_encode(_flat(clipped.update), protection.clip, terms.fixed_point())
    noisy = add_noise_share(code, protection.sigma, source, terms.bits)
    return np.append(noisy, np.ones(1, dtype=ring_dtype(terms.bits)))


def _flat(update: SharedUpdate) -> NDArray[np.float64]:
    """Return all values in the order of `UpdateLayout`: by ascending name, each in C order."""
    return np.concatenate([update.tensors[name].astype(np.float64).reshape(-1) for name in sorted(update.tensors)])


def _norm(update: SharedUpdate) -> float:
    return float(np.linalg.norm(_flat(update)))

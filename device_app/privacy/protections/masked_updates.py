"""What protections have in common whose updates leave under masks: what a reader accepts, and the price at worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from device_app.errors import ProtectionTooWeak
from device_app.privacy.budget import Ledger
from device_app.privacy.noise import NoiseSource
from device_app.privacy.prices import sum_prices
from device_app.privacy.protections.protection import ROUNDING, ComputedUpdate
from device_app.privacy.sealed import Sealed
from device_app.privacy.sums_alone import SumsAlone
from device_app.settings import PrivacySettings
from device_app.wire.protections import SecureSum
from device_app.wire.rounds import RoundManifest
from device_app.wire.secagg import SumTerms
from device_app.wire.union import UnionMarks

Masked = TypeVar("Masked", SecureSum, UnionMarks)


@dataclass(frozen=True)
class MaskedProtection(Generic[Masked]):
    """A device's part of a secure sum; which vector it gives is the subclass's."""

    protection: Masked

    def check(self, privacy: PrivacySettings) -> None:
        """Raises ProtectionTooWeak if the reader takes part in no sums, or in none without noise."""
        if privacy.secure_sum == "never":
            raise ProtectionTooWeak("its reader takes part in no secure sums.")
        if privacy.secure_sum == "noisy" and not self.protection.sigma:
            raise ProtectionTooWeak("the sum has no noise in it, and its reader takes part in noisy ones only.")

    def price(self, manifest: RoundManifest, coordinates: int, privacy: PrivacySettings, alone: SumsAlone) -> float:
        """What the sum costs at worst; 0 for an exact one, which no epsilon bounds.

        The sum's terms must be those that follow from the protection, which is what the price is figured from. Raises
        ProtectionTooWeak if it hides among too few, or tells more than is allowed; BudgetSpent as `SumsAlone.check`.
        """
        self._check_terms(manifest, coordinates, privacy)
        if not self.protection.sigma:
            return 0.0
        delta = privacy.delta_per_sum
        prices = sum_prices(self.protection, terms_of(manifest).cohort_minimum, coordinates, delta)
        if not prices.possible:
            raise ProtectionTooWeak(
                f"the noise in its sum comes to epsilon {prices.epsilon:g} at delta {delta:g}, and to {prices.alone:g} "
                "if no other device is real; a sum with noise costs more than 0 and less than infinity."
            )
        if prices.epsilon > privacy.epsilon_per_sum * (1 + ROUNDING):
            raise ProtectionTooWeak(
                f"the opened sum costs epsilon {prices.epsilon:.3g} at delta {delta:g}; at most "
                f"{privacy.epsilon_per_sum:g} is allowed."
            )
        if prices.alone > privacy.epsilon_per_sum_alone * (1 + ROUNDING):
            raise ProtectionTooWeak(
                f"if no other device is real, the opened sum costs epsilon {prices.alone:.3g} at delta {delta:g}; at "
                f"most {privacy.epsilon_per_sum_alone:g} is allowed."
            )
        alone.check(prices.rho_alone, privacy)
        return prices.epsilon

    def seal(
        self, update: ComputedUpdate, manifest: RoundManifest, *, ledger: Ledger, noise: NoiseSource
    ) -> Sealed[Any]:
        """None: raises ValueError."""
        raise ValueError(f"protection: {self.protection.kind} leaves under masks, and never as a single upload")

    def _check_terms(self, manifest: RoundManifest, coordinates: int, privacy: PrivacySettings) -> None:
        given = terms_of(manifest)
        if given.cohort_minimum < privacy.smallest_sum:
            raise ProtectionTooWeak(
                f"the sum may be opened with {given.cohort_minimum} devices in it; at least {privacy.smallest_sum} are "
                "asked for."
            )
        asked = privacy.secure_sum_mode
        if given.mode != "active" and (asked == "active" or (asked == "by_cohort" and given.graph == "complete")):
            raise ProtectionTooWeak("the sum has no consistency round, and its reader asks for one.")
        try:
            due = self.protection.terms(
                manifest.round, cohort=given.cohort, cohort_minimum=given.cohort_minimum, coordinates=coordinates
            )
        except ValueError as impossible:
            raise ProtectionTooWeak(f"{impossible}.") from impossible
        if given != due:
            raise ProtectionTooWeak("the terms of its sum do not follow from its protection.")


def terms_of(manifest: RoundManifest) -> SumTerms:
    """The terms of a round's sum. Raises ValueError for a round without; a manifest's own check lets none through."""
    if manifest.terms is None:
        raise ValueError(f"terms: {manifest.round} is a secure sum without any")
    return manifest.terms

"""What protections have in common whose updates leave under masks: what a reader accepts, and the price at worst."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from device_app.errors import ProtectionTooWeak
from device_app.privacy.ledger import Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.prices import OneClick, SumPrices, sum_prices
from device_app.privacy.protections.protection import ROUNDING, ComputedUpdate
from device_app.privacy.sealed import Sealed
from device_app.privacy.settings import PrivacySettings
from device_app.privacy.worst_case_sums import SumsAlone
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

    def price(
        self,
        manifest: RoundManifest,
        coordinates: int,
        privacy: PrivacySettings,
        alone: SumsAlone,
        one_click: OneClick | None,
    ) -> float:
        """What the sum costs at worst; 0 for an exact one, which no epsilon bounds.

        The sum's terms must be those that follow from the protection, which is what the price is figured from. Raises
        ProtectionTooWeak if it hides among too few, or tells more than is allowed; BudgetSpent as `SumsAlone.check`.
        """
        prices = self._allowed(manifest, coordinates, privacy, one_click)
        if prices is None:
            return 0.0
        alone.check(prices.rho_alone, privacy)
        return prices.epsilon

    def check_again(self, manifest: RoundManifest, privacy: PrivacySettings) -> None:
        """As `check` and `price`, for a sum that is paid for and has messages left to send: what a reader asks of one
        sum may have changed since, while what all sums may cost together has been spent. Raises ProtectionTooWeak.

        The task isn't asked how far one click moves its vector: that ceiling is held to when it is paid for.
        """
        self.check(privacy)
        self._allowed(manifest, sum(math.prod(shape) for shape in manifest.shapes.values()), privacy, None)

    def _allowed(
        self, manifest: RoundManifest, coordinates: int, privacy: PrivacySettings, one_click: OneClick | None
    ) -> SumPrices | None:
        """The prices of a sum that the reader's settings allow, None for an exact one. Raises ProtectionTooWeak."""
        self._check_terms(manifest, coordinates, privacy)
        if not self.protection.sigma:
            return None
        terms, delta = terms_of(manifest), privacy.delta_per_sum
        steps = None if one_click is None else one_click.steps(terms.fixed_point().step)
        prices = sum_prices(self.protection, terms.cohort_minimum, coordinates, delta, one_click_steps=steps)
        if not prices.possible:
            raise ProtectionTooWeak(
                f"the noise in its sum comes to epsilon {prices.epsilon:g} at delta {delta:g}, and to {prices.alone:g} "
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
        """A masked vector is no single upload: raises ValueError."""
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
            self.protection.layout(manifest.shapes, due)  # a union is of news, whatever the task
        except ValueError as impossible:
            raise ProtectionTooWeak(f"{impossible}.") from impossible
        if given != due:
            raise ProtectionTooWeak("the terms of its sum do not follow from its protection.")


def _ceilings(
    prices: SumPrices, privacy: PrivacySettings, one_click: OneClick | None
) -> list[tuple[str, float, float]]:
    """What is priced, in words, its price, and the most that the reader allows for it.

    A click of which nothing is proved may weigh as much as all, and is held to the ceiling of all.
    """
    click = privacy.epsilon_per_sum_alone if one_click is None else privacy.epsilon_per_click_alone
    return [
        ("the opened sum", prices.epsilon, privacy.epsilon_per_sum),
        ("if no other device is real, the opened sum", prices.alone, privacy.epsilon_per_sum_alone),
        ("if no other device is real, one click in the opened sum", prices.one_click_alone, click),
    ]


def terms_of(manifest: RoundManifest) -> SumTerms:
    """The terms of a round's sum. Raises ValueError for a round without; a manifest's own check lets none through."""
    if manifest.terms is None:
        raise ValueError(f"terms: {manifest.round} is a secure sum without any")
    return manifest.terms

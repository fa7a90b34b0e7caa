"""What protections have in common whose updates leave under masks, so that only a cohort's sum is ever read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from backend.federation.bounded_mean import Shapes
from backend.federation.errors import RoundImpossible
from backend.federation.protections.protection import UpdateCost
from backend.federation.protections.upload_rules import UploadRules
from device_app.wire.ids import RoundId
from device_app.wire.protections import SecureSum
from device_app.wire.secagg import SumTerms
from device_app.wire.union import UnionMarks

Masked = TypeVar("Masked", SecureSum, UnionMarks)

COHORT_LEAST = 2
"""A sum of fewer hides nobody."""


@dataclass(frozen=True)
class MaskedUpdates(Generic[Masked]):
    """Updates that nobody sees one by one; what they are is the subclass's."""

    protection: Masked

    @property
    def summed(self) -> bool:
        """Yes: nothing but the sum of the cohort is ever opened."""
        return True

    @property
    def delta(self) -> float | None:
        """The protection's, which the server chose."""
        return self.protection.delta

    def terms(self, round_id: RoundId, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        """Of the round's sum. Raises RoundImpossible for a cohort out of the protection's limits."""
        limit = self.protection.cohort_limit
        if cohort > limit:
            raise RoundImpossible("cohort is out of its limits.", field="cohort", limit=f"at most {limit}")
        if cohort_minimum < COHORT_LEAST:
            raise RoundImpossible(
                "cohort_minimum is out of its limits.",
                field="cohort_minimum",
                limit=f"at least {COHORT_LEAST}, for a sum that hides anybody",
            )
        return self.protection.terms(round_id, cohort=cohort, cohort_minimum=cohort_minimum, coordinates=coordinates)

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        """There is no single upload in clear: raises ValueError."""
        raise ValueError(f"protection: {self.protection.kind} takes masked vectors, and no single upload")

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        """rho of the opened sum with the noise of that many survivors; nothing for an exact sum, or none opened.

        Formal guarantees: zero-concentrated differential privacy for exchanging all of a device's data, if no survivor
        tells its share of the noise (`device_app.wire.concentrated.rho_of_sum`).
        """
        if not self.protection.sigma or survivors is None:
            return UpdateCost()
        return UpdateCost(rho=self.protection.rho(survivors, coordinates))

    def noise_words(self) -> str:
        """Whether there is noise in the sum, in a sentence."""
        return (
            "Each device adds its share of noise before masking."
            if self.protection.sigma
            else "There is no noise in the sum: what it tells of one reader is hidden by the others alone."
        )

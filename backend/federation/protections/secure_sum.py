"""Protections whose updates are masked, so that the server reads only the sum of a cohort.

`MaskedUpdates` is their base class. `SecureSumUpdates` sums vectors that are scaled into a ball (Efficient-FedRec, eq.
4 and section 3.4).
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from backend.federation.bounded_mean import Shapes
from backend.federation.errors import RoundImpossible, UpdateRefused
from backend.federation.protections.protection import UpdateCost, WriteNumber
from backend.federation.protections.sum_bounds import UploadRules, check_sum
from protocol.ids import RoundId
from protocol.protections import Protection, SecureSum
from protocol.ring import RingVector, WeightedSum
from protocol.secagg import SumTerms
from protocol.union import UnionMarks

Masked = TypeVar("Masked", SecureSum, UnionMarks)

COHORT_LEAST = 2
"""The smallest cohort: a sum of fewer hides nobody."""


@dataclass(frozen=True)
class MaskedUpdates(Generic[Masked]):
    """Base class for updates that the server can't read one by one."""

    protection: Masked

    @property
    def summed(self) -> bool:
        """True: only the sum of the cohort is ever opened."""
        return True

    @property
    def delta(self) -> float | None:
        """The delta of the protection, which the server chose."""
        return self.protection.delta

    def terms(self, round_id: RoundId, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        """Return the terms of the round's sum.

        Raises RoundImpossible if the cohort is outside the protection's limits.
        """
        limit = self.protection.cohort_limit
        if cohort > limit:
            raise RoundImpossible(f"cohort is out of range: {cohort}.", field="cohort", limit=f"at most {limit}")
        if cohort_minimum < COHORT_LEAST:
            raise RoundImpossible(
                f"cohort_minimum is out of range: {cohort_minimum}.",
                field="cohort_minimum",
                limit=f"at least {COHORT_LEAST}, since a smaller sum does not hide its members",
            )
        return self.protection.terms(round_id, cohort=cohort, cohort_minimum=cohort_minimum, coordinates=coordinates)

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        """Raise ValueError: there is no unmasked single upload."""
        raise ValueError(f"protection: {self.protection.kind} takes masked vectors, not single uploads")

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        """Return rho of the opened sum with the noise of this many survivors.

        The cost is empty for an exact sum, or if no sum was opened.

        Formal guarantees: zero-concentrated differential privacy for replacing all of a device's data, if no survivor
        reveals its share of the noise (`protocol.concentrated.rho_of_sum`).
        """
        if not self.protection.sigma or survivors is None:
            return UpdateCost()
        return UpdateCost(rho=self.protection.rho(survivors, coordinates))

    def noise_sentence(self) -> str:
        """Return a sentence that says whether there is noise in the sum."""
        return (
            "Each device adds its share of noise before masking."
            if self.protection.sigma
            else "The sum has no noise: only the other readers' updates hide what it reveals about one reader."
        )


@dataclass(frozen=True)
class SecureSumUpdates(MaskedUpdates[SecureSum]):
    """The server's side of `SecureSum`: it opens weighted sums of clipped vectors.

    The sums may contain noise.
    """

    @property
    def radius(self) -> float | None:
        return self.protection.clip

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """Return the sums by tensor, and N, the total weight.

        Raises UpdateRefused if the vector is not a sum of updates.
        """
        try:
            return self.protection.layout(shapes, terms).sums(total)
        except ValueError as broken:
            raise UpdateRefused(f"The opened sum is not a sum of updates: {broken}.", field="body") from broken

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raise UpdateRefused for a sum beyond the bounds of `sum_bounds`."""
        check_sum(self.protection, sums, survivors)

    def noise_variance(self, devices: int) -> float:
        """Return (sigma 2^-fraction_bits)^2 for each device."""
        return float(devices * np.square(self.protection.sigma * 2.0**-self.protection.fraction_bits))

    def describe(self, number: WriteNumber) -> str:
        """Describe clip and masks, and say whether there is noise."""
        return (
            f"Scaled to a length of at most {number(self.protection.clip)} and sent under masks; the server can open "
            f"only the sum of all devices. {self.noise_sentence()}"
        )


def secure_sum_of(protection: Protection) -> SecureSum:
    """Return the protection if it is a sum of clipped vectors; raises TypeError otherwise."""
    if not isinstance(protection, SecureSum):
        raise TypeError(f"protection: only secure_sum (a sum of clipped vectors) is supported, got {protection.kind}")
    return protection


PROTECTIONS = {"secure_sum": SecureSumUpdates}

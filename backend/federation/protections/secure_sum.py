"""Vectors scaled into a ball and summed under masks (Efficient-FedRec, eq. 4 and section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from backend.federation.bounded_mean import Shapes
from backend.federation.errors import UpdateRefused
from backend.federation.protections.masked_updates import MaskedUpdates
from backend.federation.protections.protection import WriteNumber
from backend.federation.protections.sum_bounds import check_sum
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import Protection, SecureSum
from device_app.wire.ring import RingVector
from device_app.wire.secagg import SumTerms


@dataclass(frozen=True)
class SecureSumUpdates(MaskedUpdates[SecureSum]):
    """The server's side of `SecureSum`: it opens the weighted sum of clipped vectors, perhaps with noise inside."""

    @property
    def radius(self) -> float | None:
        """The clip."""
        return self.protection.clip

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """The sums by tensor, and N, all weights together. Raises UpdateRefused for a vector that is none."""
        try:
            return self.protection.layout(shapes, terms).sums(total)
        except ValueError as broken:
            raise UpdateRefused(f"The opened sum is no sum of updates: {broken}.", field="body") from broken

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raises UpdateRefused for a sum beyond the bounds of `sum_bounds`."""
        check_sum(self.protection, sums, survivors)

    def noise_variance(self, devices: int) -> float:
        """(sigma 2^-fraction_bits)^2 a device."""
        return float(devices * np.square(self.protection.sigma * 2.0**-self.protection.fraction_bits))

    def describe(self, number: WriteNumber) -> str:
        """Clip, masks, and whether there is noise."""
        return (
            f"Scaled to a length of at most {number(self.protection.clip)} and sent under masks; the server can open "
            f"only the sum of all. {self.noise_words()}"
        )


def secure_sum_of(protection: Protection) -> SecureSum:
    """The protection itself, where what follows holds for sums of clipped vectors only. Raises TypeError otherwise."""
    if not isinstance(protection, SecureSum):
        raise TypeError(f"protection: a sum of clipped vectors is needed (secure_sum), got {protection.kind}")
    return protection


PROTECTIONS = {"secure_sum": SecureSumUpdates}

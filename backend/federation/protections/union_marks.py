"""Marks of news, or counts of their owners, summed under masks (Efficient-FedRec, eq. 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from backend.federation.bounded_mean import Shapes
from backend.federation.errors import UpdateRefused
from backend.federation.protections.masked_updates import MaskedUpdates
from backend.federation.protections.protection import WriteNumber
from backend.federation.protections.sum_bounds import noise_reach
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import Protection
from device_app.wire.ring import RingVector
from device_app.wire.secagg import SumTerms
from device_app.wire.union import UnionMarks


@dataclass(frozen=True)
class UnionMarksUpdates(MaskedUpdates[UnionMarks]):
    """The server's side of `UnionMarks`: it opens which news somebody holds, or how many do."""

    @property
    def radius(self) -> float | None:
        """None: nobody's marks are a vector to be averaged."""
        return None

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """Owners by news; for marks 1 where there is one. Raises UpdateRefused for a vector that is none."""
        try:
            return self.protection.layout(shapes, terms).sums(total, survivors)
        except ValueError as broken:
            raise UpdateRefused(f"The opened sum is no sum of updates: {broken}.", field="body") from broken

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raises UpdateRefused for more owners than devices, or marks than they have in all, or fewer than none."""
        for owners in sums.tensors.values():
            deviation = self.protection.sigma * math.sqrt(survivors)
            reach, most = noise_reach(deviation, owners.size), survivors * self.protection.rows_limit
            marks = float(owners.sum())
            if marks > most + noise_reach(deviation * math.sqrt(owners.size), 1):
                raise UpdateRefused(
                    f"All news together have {marks:g} owners, which {survivors} devices can't mark: some device has "
                    "broken the terms.",
                    field="body",
                    limit=str(most),
                )
            if owners.min() < -reach or owners.max() > survivors + reach:
                raise UpdateRefused(
                    f"A news has {owners.min():g} to {owners.max():g} owners among {survivors} devices: some device "
                    "has broken the terms.",
                    field="body",
                    limit=f"0 to {survivors}",
                )

    def noise_variance(self, devices: int) -> float:
        """None: raises ValueError, since marks are no numbers to be added up."""
        raise ValueError(f"protection: counts are made of sums, not of {self.protection.kind!r}")

    def describe(self, number: WriteNumber) -> str:
        """How many marks, masks, and whether there is noise."""
        return (
            f"Marks of at most {self.protection.rows_limit:,} news under masks; the server can open only what all "
            f"together come to. {self.noise_words()}"
        )


def union_marks_of(protection: Protection) -> UnionMarks:
    """The protection itself, where what follows is about a union of news. Raises TypeError otherwise."""
    if not isinstance(protection, UnionMarks):
        raise TypeError(f"protection: a union of marks is needed (union_marks), got {protection.kind}")
    return protection


PROTECTIONS = {"union_marks": UnionMarksUpdates}

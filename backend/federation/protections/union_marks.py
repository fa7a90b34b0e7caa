"""Marks of articles, or holder counts, summed under masks (Efficient-FedRec, eq. 8)."""

import math
from dataclasses import dataclass

from backend.federation.bounded_mean import Shapes
from backend.federation.errors import UpdateRefused
from backend.federation.protections.protection import WriteNumber
from backend.federation.protections.secure_sum import MaskedUpdates
from backend.federation.protections.sum_bounds import noise_reach
from protocol.protections import Protection
from protocol.ring import RingVector, WeightedSum
from protocol.secagg import SumTerms
from protocol.union import UnionMarks


@dataclass(frozen=True)
class UnionMarksUpdates(MaskedUpdates[UnionMarks]):
    """The server's side of `UnionMarks`: it opens which articles are held, or by how many."""

    @property
    def radius(self) -> float | None:
        """None: marks are not averaged as vectors."""
        return None

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """Return the number of holders of each article, or with marks 1 if there is any.

        Raises UpdateRefused if the vector is not a sum of updates.
        """
        try:
            return self.protection.layout(shapes, terms).sums(total, survivors)
        except ValueError as broken:
            raise UpdateRefused(f"The opened sum is not a sum of updates: {broken}.", field="body") from broken

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raise UpdateRefused for counts or marks that this many devices can't send.

        These are negative counts, more holders than devices, or more marks than they may send.
        """
        for owners in sums.tensors.values():
            deviation = self.protection.sigma * math.sqrt(survivors)
            reach, most = noise_reach(deviation, owners.size), survivors * self.protection.rows_limit
            marks = float(owners.sum())
            if marks > most + noise_reach(deviation * math.sqrt(owners.size), 1):
                raise UpdateRefused(
                    f"All articles together have {marks:g} holders, more than {survivors} devices can mark: some "
                    "device violated the round's limits.",
                    field="body",
                    limit=str(most),
                )
            if owners.min() < -reach or owners.max() > survivors + reach:
                raise UpdateRefused(
                    f"An article has {owners.min():g} to {owners.max():g} holders among {survivors} devices: some "
                    "device violated the round's limits.",
                    field="body",
                    limit=f"0 to {survivors}",
                )

    def noise_variance(self, devices: int) -> float:
        """Raise ValueError: marks are not numbers to be added up."""
        raise ValueError(f"protection: counts need a sum, got {self.protection.kind!r}")

    def describe(self, number: WriteNumber) -> str:
        """Describe the number of marks and the masks, and say whether there is noise."""
        return (
            f"Each device marks at most {self.protection.rows_limit:,} articles, under masks; the server can open only "
            f"the total of all devices. {self.noise_sentence()}"
        )


def union_marks_of(protection: Protection) -> UnionMarks:
    """Return the protection if it is a union of articles; raises TypeError otherwise."""
    if not isinstance(protection, UnionMarks):
        raise TypeError(f"protection: only union_marks (a union of marks) is supported, got {protection.kind}")
    return protection


PROTECTIONS = {"union_marks": UnionMarksUpdates}

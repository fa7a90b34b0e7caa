"""The protections whose updates this server can read, by kind. A new one is a class and a line of `PROTECTIONS` here.

Beside this: the interface (`protection`), what updates under masks share (`masked_updates`), what a single upload must
look like (`upload_rules`) and what honest devices' sums can hold (`sum_bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.federation.aggregate import Shapes
from backend.federation.errors import UpdateRefused
from backend.federation.protections.masked_updates import MaskedUpdates
from backend.federation.protections.protection import LocalCost, ServerProtection, UpdateCost, WriteNumber
from backend.federation.protections.sum_bounds import check_sum, noise_reach
from backend.federation.protections.upload_rules import UploadRules
from device_app.wire.ids import RoundId
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import LocalLaplace, Protection, SecureSum, of_kind
from device_app.wire.ring import RingVector
from device_app.wire.secagg import SumTerms
from device_app.wire.union import UnionMarks

NOISE_REACH = 60.0
"""Laplace noise passes 60 scales with probability e^-60, about 1e-26: no honest device ever sends such a value."""


@dataclass(frozen=True)
class LocalLaplaceUpdates:
    """The server's side of `LocalLaplace` (Uni-FedRec 2.5): it sees every update, clipped and noisy."""

    protection: LocalLaplace

    @property
    def summed(self) -> bool:
        """No."""
        return False

    @property
    def radius(self) -> float | None:
        """None: every coordinate is clipped by itself, and noise is on each upload."""
        return None

    @property
    def delta(self) -> float | None:
        """None: epsilon is pure."""
        return None

    def terms(self, round_id: RoundId, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        """None: there is no secure sum."""
        return None

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        """The round's tensors, with values that clipping and noise can give."""
        return UploadRules.of(shapes, self.protection.clip + NOISE_REACH * self.protection.scale)

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """Raises ValueError."""
        raise self._no_sum()

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raises ValueError."""
        raise self._no_sum()

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        """The pure epsilon of one upload.

        Formal guarantees: 2 clip / scale a coordinate, times the coordinates, for any two readers.
        """
        mine = self.protection
        return UpdateCost(
            LocalCost(mine.clip, mine.scale, mine.epsilon_per_coordinate(), mine.epsilon_per_upload(coordinates))
        )

    def noise_variance(self, devices: int) -> float:
        """2 scale^2 a device."""
        return devices * 2 * self.protection.scale**2

    def describe(self, number: WriteNumber) -> str:
        """Clip and scale, and that the server sees each update."""
        return (
            f"Every number is cut to ±{number(self.protection.clip)} and covered with Laplace noise of scale "
            f"{number(self.protection.scale)} before it leaves; the server sees each update."
        )

    def _no_sum(self) -> ValueError:
        return ValueError(f"protection: {self.protection.kind} has single uploads, and no secure sum to open")


@dataclass(frozen=True)
class SecureSumUpdates(MaskedUpdates[SecureSum]):
    """The server's side of `SecureSum` (Efficient-FedRec, eq. 4 and section 3.4): it opens the weighted sum of clipped
    vectors, perhaps with noise inside."""

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


@dataclass(frozen=True)
class UnionMarksUpdates(MaskedUpdates[UnionMarks]):
    """The server's side of `UnionMarks` (Efficient-FedRec, eq. 8): it opens which news somebody holds, or how many."""

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


PROTECTIONS: dict[str, Callable[[Any], ServerProtection]] = {
    "local_laplace": LocalLaplaceUpdates,
    "secure_sum": SecureSumUpdates,
    "union_marks": UnionMarksUpdates,
}


def resolve(protection: Protection) -> ServerProtection:
    """The server's side of a protection on the wire. Raises ValueError for a kind that isn't in `PROTECTIONS`."""
    return of_kind(PROTECTIONS, protection)


def local_laplace_of(protection: Protection) -> LocalLaplace:
    """The protection itself, where what follows holds for noise on each upload only. Raises TypeError otherwise."""
    if not isinstance(protection, LocalLaplace):
        raise TypeError(f"protection: noise on each upload is needed (local_laplace), got {protection.kind}")
    return protection


def secure_sum_of(protection: Protection) -> SecureSum:
    """The protection itself, where what follows holds for sums of clipped vectors only. Raises TypeError otherwise."""
    if not isinstance(protection, SecureSum):
        raise TypeError(f"protection: a sum of clipped vectors is needed (secure_sum), got {protection.kind}")
    return protection


def union_marks_of(protection: Protection) -> UnionMarks:
    """The protection itself, where what follows is about a union of news. Raises TypeError otherwise."""
    if not isinstance(protection, UnionMarks):
        raise TypeError(f"protection: a union of marks is needed (union_marks), got {protection.kind}")
    return protection

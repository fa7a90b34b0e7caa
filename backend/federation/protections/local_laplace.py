"""Updates that come one by one under Laplace noise of the device's own (Uni-FedRec, section 3.5, eq. 8)."""

from __future__ import annotations

from dataclasses import dataclass

from backend.federation.bounded_mean import Shapes
from backend.federation.protections.protection import LocalCost, UpdateCost, WriteNumber
from backend.federation.protections.upload_rules import UploadRules
from device_app.wire.ids import RoundId
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import LocalLaplace, Protection
from device_app.wire.ring import RingVector
from device_app.wire.secagg import SumTerms

NOISE_REACH = 60.0
"""Laplace noise passes 60 scales with probability e^-60, about 1e-26: no honest device ever sends such a value."""


@dataclass(frozen=True)
class LocalLaplaceUpdates:
    """The server's side of `LocalLaplace`: it sees every update, clipped and noisy."""

    protection: LocalLaplace

    @property
    def summed(self) -> bool:
        """No: the server reads each upload, clipped and noisy."""
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
        """There is no opened sum: raises ValueError."""
        raise self._no_sum()

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """There is no opened sum: raises ValueError."""
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
        """Of a coordinate of the sum of so many updates: 2 scale^2 each."""
        return devices * 2 * self.protection.scale**2

    def describe(self, number: WriteNumber) -> str:
        """Clip and scale, and that the server sees each update."""
        return (
            f"Every number is cut to ±{number(self.protection.clip)} and covered with Laplace noise of scale "
            f"{number(self.protection.scale)} before it leaves; the server sees each update."
        )

    def _no_sum(self) -> ValueError:
        return ValueError(f"protection: {self.protection.kind} has single uploads, and no secure sum to open")


def local_laplace_of(protection: Protection) -> LocalLaplace:
    """The protection itself, where what follows holds for noise on each upload only. Raises TypeError otherwise."""
    if not isinstance(protection, LocalLaplace):
        raise TypeError(f"protection: noise on each upload is needed (local_laplace), got {protection.kind}")
    return protection


PROTECTIONS = {"local_laplace": LocalLaplaceUpdates}

"""Single updates under Laplace noise of each device (Uni-FedRec, section 3.5, eq. 8)."""

from dataclasses import dataclass

from backend.federation.bounded_mean import Shapes
from backend.federation.protections.protection import LocalCost, UpdateCost, WriteNumber
from backend.federation.protections.sum_bounds import UploadRules
from protocol.ids import RoundId
from protocol.protections import LocalLaplace, Protection
from protocol.ring import RingVector, WeightedSum
from protocol.secagg import SumTerms

NOISE_REACH = 60.0
"""Laplace noise exceeds 60 scales with probability e^-60, about 1e-26: no honest device ever sends such a value."""


@dataclass(frozen=True)
class LocalLaplaceUpdates:
    """The server's side of `LocalLaplace`: it reads every update, clipped and noisy."""

    protection: LocalLaplace

    @property
    def summed(self) -> bool:
        """False: the server reads each upload."""
        return False

    @property
    def radius(self) -> float | None:
        """None: each coordinate is clipped separately, and each upload carries noise."""
        return None

    @property
    def delta(self) -> float | None:
        """None: epsilon is pure."""
        return None

    def terms(self, round_id: RoundId, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        """Return None: there is no secure sum."""
        return None

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        """Return the round's tensors and the range of values that clipping and noise can give."""
        mine = self.protection
        return UploadRules.of(shapes, mine.clip + NOISE_REACH * mine.scale, mine.weight_limit)

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """Raise ValueError: there is no opened sum."""
        raise self._no_sum()

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raise ValueError: there is no opened sum."""
        raise self._no_sum()

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        """Return the pure epsilon of one upload.

        Formal guarantees: 2 clip / scale for each coordinate, times the number of coordinates, for any two readers. It
        does not cover n_u, if that is sent.
        """
        mine = self.protection
        return UpdateCost(
            LocalCost(mine.clip, mine.scale, mine.epsilon_per_coordinate(), mine.epsilon_per_upload(coordinates))
        )

    def noise_variance(self, devices: int) -> float:
        """Return the noise variance of one coordinate of the sum of equally weighted updates: 2 scale^2 for each."""
        return devices * 2 * self.protection.scale**2

    def describe(self, number: WriteNumber) -> str:
        """Describe clip and scale, and say that the server reads each update."""
        weight = ", and beside it how many samples it was made from" if self.protection.weight_limit > 1 else ""
        return (
            f"Every number is clipped to ±{number(self.protection.clip)} and gets Laplace noise of scale "
            f"{number(self.protection.scale)} on the device; the server sees each noisy update{weight}."
        )

    def _no_sum(self) -> ValueError:
        return ValueError(f"protection: {self.protection.kind} has single uploads and no secure sum to open")


def local_laplace_of(protection: Protection) -> LocalLaplace:
    """Return the protection if it is local Laplace noise; raises TypeError otherwise."""
    if not isinstance(protection, LocalLaplace):
        raise TypeError(f"protection: only local_laplace (noise on each upload) is supported, got {protection.kind}")
    return protection


PROTECTIONS = {"local_laplace": LocalLaplaceUpdates}

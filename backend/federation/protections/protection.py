"""The interface of protections on the server: they check, decode and account for updates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from backend.federation.bounded_mean import Shapes
from backend.federation.protections.sum_bounds import UploadRules
from protocol.ids import RoundId
from protocol.ring import RingVector, WeightedSum
from protocol.secagg import SumTerms

WriteNumber = Callable[[float], str]
"""Formats a number for a page."""


@dataclass(frozen=True)
class LocalCost:
    """The pure epsilon of one upload, and of one coordinate of it, at this clip and noise scale."""

    clip: float
    scale: float
    coordinate: float
    upload: float


@dataclass(frozen=True)
class UpdateCost:
    """The privacy cost of an update: epsilon of local noise, or rho of an opened sum.

    Both are None for an exact sum, which neither bounds.
    """

    local: LocalCost | None = None
    rho: float | None = None


class ServerProtection(Protocol):
    """The server's side of a protection, created from the protocol's value (`registry.resolve`)."""

    @property
    def summed(self) -> bool:
        """Whether the server reads only secure sums of cohorts and no single uploads."""

    @property
    def radius(self) -> float | None:
        """Radius of the L2 ball that contains every honest device's part of a sum.

        None without such a ball.
        """

    @property
    def delta(self) -> float | None:
        """The delta at which the server reports the epsilon of an opened sum.

        None for single uploads.
        """

    def terms(self, round_id: RoundId, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        """Return the terms of a round's secure sum, or None for single uploads.

        Raises RoundImpossible, naming field and limit.
        """

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        """Return what a single upload must look like.

        Raises ValueError for a protection without single uploads.
        """

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """Return an opened sum as numbers.

        Raises UpdateRefused if the vector is not a sum of updates, and ValueError for a protection without sums.
        """

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raise UpdateRefused if the sum exceeds what honest devices and their noise can give.

        Raises ValueError for a protection without sums.
        """

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        """Return the cost of an update with this many numbers.

        survivors: number of devices in the opened sum; None if none was opened.
        """

    def noise_variance(self, devices: int) -> float:
        """Return the noise variance of one number of the sum over this many devices.

        Raises ValueError if the updates are not numbers to be added up.
        """

    def describe(self, number: WriteNumber) -> str:
        """Describe for people, in a sentence or two, what a device does before sending."""

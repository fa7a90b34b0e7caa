"""What the server does with updates that are protected in one way: the interface that every protection meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from backend.federation.bounded_mean import Shapes
from backend.federation.protections.upload_rules import UploadRules
from device_app.wire.ids import RoundId
from device_app.wire.layout import WeightedSum
from device_app.wire.ring import RingVector
from device_app.wire.secagg import SumTerms

WriteNumber = Callable[[float], str]
"""How a page writes a figure."""


@dataclass(frozen=True)
class LocalCost:
    """Pure epsilon of one upload under local noise of that scale at that clip, and of one coordinate of it."""

    clip: float
    scale: float
    coordinate: float
    upload: float


@dataclass(frozen=True)
class UpdateCost:
    """What an update has cost its device: by local noise, or as rho of an opened sum; neither bounds an exact sum."""

    local: LocalCost | None = None
    rho: float | None = None


class ServerProtection(Protocol):
    """The server's side of a protection, made from its value on the wire (`registry.resolve`)."""

    @property
    def summed(self) -> bool:
        """Whether nothing but the secure sum of a cohort is ever read, rather than single uploads."""
        ...

    @property
    def radius(self) -> float | None:
        """Of the L2 ball that every honest device's part of a sum lies in; None where there is no such ball."""
        ...

    @property
    def delta(self) -> float | None:
        """At which the server tells the epsilon of an opened sum; None for single uploads."""
        ...

    def terms(self, round_id: RoundId, *, cohort: int, cohort_minimum: int, coordinates: int) -> SumTerms | None:
        """Of a round's secure sum; None for single uploads. Raises RoundImpossible, naming field and limit."""
        ...

    def upload_rules(self, shapes: Shapes) -> UploadRules:
        """What a single upload must look like. Raises ValueError for a protection that has none."""
        ...

    def decode(self, shapes: Shapes, terms: SumTerms, total: RingVector, survivors: int) -> WeightedSum:
        """An opened sum as numbers. Raises UpdateRefused for no sum of updates, ValueError where there are no sums."""
        ...

    def check(self, sums: WeightedSum, survivors: int) -> None:
        """Raises UpdateRefused beyond what honest devices and their noise give, ValueError where there are no sums."""
        ...

    def account(self, coordinates: int, survivors: int | None) -> UpdateCost:
        """What an update of so many numbers costs; survivors: of the opened sum, None if none was opened."""
        ...

    def noise_variance(self, devices: int) -> float:
        """Of the noise on one number of so many devices' sum. Raises ValueError where numbers aren't added up."""
        ...

    def describe(self, number: WriteNumber) -> str:
        """What a device does to what it sends, in a sentence or two for people."""
        ...

"""What a device does with an update that is to be protected in one way: what every protection offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from device_app.privacy.ledger import Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.prices import OneClick
from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.sealed import Sealed
from device_app.privacy.secagg.contribution import Contribution
from device_app.privacy.settings import PrivacySettings
from device_app.privacy.worst_case_sums import SumsAlone
from device_app.wire.rounds import RoundManifest

ROUNDING: Final = 1e-9
"""0.01 / 0.1 is a little less than 0.1 in floating point."""


@dataclass(frozen=True)
class ComputedUpdate:
    """What a task has computed, in clear and without private parameters, and what its price depends on.

    Args:
        shared: the tensors; neither clipped nor noisy yet.
        samples: how many went in.
        channel: of the ledger, which pays.
        one_click: how far one click exchanged for another moves the tensors; None: as far as exchanging everything.
        paid: called in the transaction that pays.
    """

    shared: SharedUpdate
    samples: int
    channel: str = "training"
    one_click: OneClick | None = None
    paid: Callable[[], None] | None = None


class DeviceProtection(Protocol):
    """The device's side of a protection, made from its value on the wire (`registry.resolve`).

    An update leaves by `seal` where single uploads are taken, and by `contribute` where there is a secure sum.
    """

    def check(self, privacy: PrivacySettings) -> None:
        """Raises ProtectionTooWeak for a protection below what the reader accepts."""
        ...

    def price(
        self,
        manifest: RoundManifest,
        coordinates: int,
        privacy: PrivacySettings,
        alone: SumsAlone,
        one_click: OneClick | None,
    ) -> float:
        """The epsilon that an update of so many numbers would cost; alone: what noisy sums have cost if nobody else in
        them was real; one_click: how far one click moves it. Raises ProtectionTooWeak or BudgetSpent for terms that the
        reader doesn't accept."""
        ...

    def check_again(self, manifest: RoundManifest, privacy: PrivacySettings) -> None:
        """What the reader asks of one update, of one that is paid for and has messages left to send. Raises
        ProtectionTooWeak."""
        ...

    def seal(
        self, update: ComputedUpdate, manifest: RoundManifest, *, ledger: Ledger, noise: NoiseSource
    ) -> Sealed[Any]:
        """Clip, add noise, charge, and seal one upload. Raises BudgetSpent, and ValueError where there are none."""
        ...

    def contribute(
        self, update: ComputedUpdate, manifest: RoundManifest, *, noise: NoiseSource, delta: float
    ) -> Contribution:
        """The vector to be masked and the charge at delta. Raises ValueError where there is no secure sum."""
        ...

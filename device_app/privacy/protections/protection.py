"""The interface of protections on the device: they check, price and seal updates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from device_app.privacy.accounting.cost_of_sums import OneClick, SumsAlone
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.sealed import Sealed
from device_app.privacy.secagg.messages import Contribution
from device_app.privacy.settings import PrivacySettings
from protocol.rounds import RoundManifest

ROUNDING: Final = 1e-9
"""Allowed relative error: in floating point, 0.01 / 0.1 is slightly less than 0.1."""


@dataclass(frozen=True)
class ComputedUpdate:
    """An update as a task computed it, with everything that its cost depends on.

    It is in the clear, without private parameters.

    Args:
        shared: the tensors; neither clipped nor noisy yet.
        samples: how many samples it was computed from.
        channel: the ledger's channel that is charged.
        one_click: how far replacing one click by another moves the tensors; None: as far as replacing all data.
        paid: called in the transaction that records the charge.
    """

    shared: SharedUpdate
    samples: int
    channel: str = "training"
    one_click: OneClick | None = None
    paid: Callable[[], None] | None = None


class DeviceProtection(Protocol):
    """The device's side of a protection, created from the protocol's value (`registry.resolve`).

    `seal` makes a single upload of an update, `contribute` a vector for a secure sum.
    """

    def check(self, privacy: PrivacySettings) -> None:
        """Raise ProtectionTooWeak for a protection below what the reader accepts."""

    def price(
        self,
        manifest: RoundManifest,
        coordinates: int,
        privacy: PrivacySettings,
        alone: SumsAlone,
        one_click: OneClick | None,
    ) -> float:
        """Return the epsilon that an update with this many coordinates would cost.

        Raises ProtectionTooWeak or BudgetSpent. alone: what noisy sums have cost so far if every other device was fake.
        one_click: how far one click moves the update. The errors mean that the reader doesn't accept the terms.
        """

    def check_again(self, manifest: RoundManifest, privacy: PrivacySettings) -> None:
        """Check again whether the settings allow an update that is paid for but not completely sent.

        Raises ProtectionTooWeak.
        """

    def seal(
        self, update: ComputedUpdate, manifest: RoundManifest, *, ledger: Ledger, noise: NoiseSource
    ) -> Sealed[Any]:
        """Clip, add noise, charge, and seal one upload.

        Raises BudgetSpent, and ValueError if it has no single uploads.
        """

    def contribute(
        self, update: ComputedUpdate, manifest: RoundManifest, *, noise: NoiseSource, delta: float
    ) -> Contribution:
        """Return the vector to be masked and its charge at delta.

        Raises ValueError if it has no secure sum.
        """

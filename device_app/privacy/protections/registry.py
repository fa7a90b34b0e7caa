"""The protections that this device supports, by kind.

To add one, write a class and add a line to `PROTECTIONS`. The other modules of this package define how each clips, adds
noise and charges, with its formal guarantees: `local_laplace`, `secure_sum`, `union_marks`. Masked updates share their
checks and their cost: `secure_sum.MaskedProtection`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from device_app.privacy.accounting.cost_of_sums import OneClick, SumsAlone
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.clipping import clip_elementwise
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.protections.local_laplace import LaplaceProtection, NoisyUpdate, check_noise
from device_app.privacy.protections.protection import ComputedUpdate, DeviceProtection
from device_app.privacy.protections.secure_sum import MaskedProtection, clip_norm, contribute, terms_of
from device_app.privacy.protections.union_marks import mark
from device_app.privacy.sealed import Sealed
from device_app.privacy.secagg.messages import Contribution
from device_app.privacy.settings import PrivacySettings
from protocol.protections import LocalLaplace, Protection, SecureSum, of_kind
from protocol.rounds import RoundManifest
from protocol.union import NEWS, UnionMarks


@dataclass(frozen=True)
class LocalLaplaceProtection:
    """The device's side of `LocalLaplace`."""

    protection: LocalLaplace

    def check(self, privacy: PrivacySettings) -> None:
        """Raise ProtectionTooWeak like `check_noise`."""
        check_noise(self.protection, privacy)

    def check_again(self, manifest: RoundManifest, privacy: PrivacySettings) -> None:
        """See `check`: the cost of one upload does not depend on who else takes part."""
        self.check(privacy)

    def price(
        self,
        manifest: RoundManifest,
        coordinates: int,
        privacy: PrivacySettings,
        alone: SumsAlone,
        one_click: OneClick | None,
    ) -> float:
        """Return the pure epsilon of one upload."""
        return self.protection.epsilon_per_upload(coordinates)

    def seal(
        self, update: ComputedUpdate, manifest: RoundManifest, *, ledger: Ledger, noise: NoiseSource
    ) -> Sealed[NoisyUpdate]:
        """Clip the update and seal it like `LaplaceProtection.seal`, with its formal guarantees.

        Raises BudgetSpent, and ValueError for values that are not finite: nothing is released then.
        """
        clipped = clip_elementwise(update.shared, self.protection.clip)
        return LaplaceProtection(self.protection).seal(
            clipped,
            round_id=manifest.round,
            ledger=ledger,
            noise=noise,
            channel=update.channel,
            samples=update.samples,
        )

    def contribute(
        self, update: ComputedUpdate, manifest: RoundManifest, *, noise: NoiseSource, delta: float
    ) -> Contribution:
        """Raise ValueError: local Laplace noise is not used in secure sums."""
        raise ValueError(f"protection: {self.protection.kind} is for single uploads, not for secure sums")


@dataclass(frozen=True)
class SecureSumProtection(MaskedProtection[SecureSum]):
    """The device's side of `SecureSum`."""

    def contribute(
        self, update: ComputedUpdate, manifest: RoundManifest, *, noise: NoiseSource, delta: float
    ) -> Contribution:
        """Return the clipped, weighted, perhaps noisy update and the cost of the opened sum.

        See `contribute`. If the protection's cost assumes no value below 0, negative values count as 0: the server
        chooses the task that uses the protection, and a reader's values must not decide whether anything is sent.
        """
        shared = update.shared
        if self.protection.nonnegative:
            above = {name: np.maximum(each, np.float32(0)) for name, each in shared.tensors.items()}
            shared = replace(shared, tensors=above)
        contribution = contribute(
            clip_norm(shared, self.protection.clip),
            update.samples,
            self.protection,
            terms_of(manifest),
            noise,
            delta=delta,
            channel=update.channel,
            one_click=update.one_click,
        )
        return replace(contribution, paid=update.paid)


@dataclass(frozen=True)
class UnionMarksProtection(MaskedProtection[UnionMarks]):
    """The device's side of `UnionMarks`."""

    def contribute(
        self, update: ComputedUpdate, manifest: RoundManifest, *, noise: NoiseSource, delta: float
    ) -> Contribution:
        """Return this device's marks, perhaps noisy, and what the opened sum costs: see `mark`."""
        held = update.shared.tensors[NEWS]
        return replace(mark(held, self.protection, terms_of(manifest), noise, delta=delta), paid=update.paid)


PROTECTIONS: dict[str, Callable[[Any], DeviceProtection]] = {
    "local_laplace": LocalLaplaceProtection,
    "secure_sum": SecureSumProtection,
    "union_marks": UnionMarksProtection,
}


def resolve(protection: Protection) -> DeviceProtection:
    """Return the device's side of a protection on the wire.

    Raises ValueError for a kind that isn't in `PROTECTIONS`.
    """
    return of_kind(PROTECTIONS, protection)

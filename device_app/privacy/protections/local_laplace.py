"""Protect an update with Laplace noise on every clipped coordinate.

The charge is for the whole update.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import BudgetSpent, ProtectionTooWeak
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.clipping import Clipped
from device_app.privacy.noise_sources import NoiseSource, laplace
from device_app.privacy.protections.protection import ROUNDING
from device_app.privacy.sealed import SAFETENSORS, Charge, Sealed, close, digest
from device_app.privacy.settings import PrivacySettings
from device_app.store.participations import OutboxItem
from protocol.protections import SAMPLES, LocalLaplace
from protocol.tensors import pack
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.privacy", "words.toml")

NAME = "local_laplace"


@dataclass(frozen=True)
class NoisyUpdate:
    """An upload's payload: noisy tensors by name ('g.<parameter>'), for one round."""

    round: str
    tensors: Mapping[str, NDArray[np.float32]]


def check_noise(protection: LocalLaplace, privacy: PrivacySettings) -> None:
    """Raise ProtectionTooWeak if the noise is too weak for the reader, or n_u may not be sent in the clear.

    The noise's strength is the ratio of scale to clip. Sending n_u needs the permission for exact sums, since no
    epsilon bounds what either reveals.
    """
    if protection.weight_limit > 1 and privacy.secure_sum != "exact":
        raise ProtectionTooWeak(
            "the server would see how many samples this device has, which no noise hides; the settings allow that only "
            "with exact sums."
        )
    clip, scale = protection.clip, protection.scale
    if scale / clip < privacy.weakest_scale_to_clip * (1 - ROUNDING):
        raise ProtectionTooWeak(
            f"noise of {scale:g} at a clip of {clip:g} is {scale / clip:.3g} of it; the settings require at least "
            f"{privacy.weakest_scale_to_clip:g}."
        )


@dataclass(frozen=True)
class LaplaceProtection:
    """Adds Laplace(0, lambda_g) to every coordinate of an update clipped to theta.

    Source: Uni-FedRec, section 3.5, eq. 8.

    Formal guarantees, in pure local differential privacy, for any two readers: one coordinate 2 theta / lambda_g (20 at
    the paper's 0.1 and 0.01); one upload of P coordinates 2 theta P / lambda_g, which is what is charged (4.9 million
    at P = 244,993: correct, but no meaningful guarantee). Not covered: that a device took part, in which round, the
    number of coordinates, and n_u if weight_limit is above 1. For the limits of floating-point Laplace noise see
    `mechanisms.basis_laplace`; here the sums are rounded to float32.
    """

    protection: LocalLaplace

    def epsilon_of(self, clipped: Clipped) -> float:
        """Return the epsilon of one upload of this update, from the update's own bound."""
        return clipped.sensitivity_per_coordinate / self.protection.scale * clipped.coordinates

    def seal(
        self,
        clipped: Clipped,
        *,
        round_id: str,
        ledger: Ledger,
        noise: NoiseSource,
        channel: str = "training",
        samples: int = 1,
    ) -> Sealed[NoisyUpdate]:
        """Add the noise, charge it to this channel of the ledger, seal the safetensors bytes.

        samples: n_u, sent in the clear and capped at weight_limit if that is above 1.

        Raises BudgetSpent, and ValueError if the update was clipped at more than the round's theta.
        """
        if clipped.bound > self.protection.clip:
            raise ValueError(f"the update is clipped at {clipped.bound}, the round's limit is {self.protection.clip}")
        noisy: dict[str, NDArray[np.float32]] = {
            name: np.asarray(tensor + laplace(noise, self.protection.scale, tensor.shape), dtype=np.float32)
            for name, tensor in clipped.tensors.items()
        }
        weight = min(samples, self.protection.weight_limit)
        weighted = self.protection.weight_limit > 1
        if weighted:
            noisy[SAMPLES] = np.array([weight], np.float32)
        payload = pack(noisy)
        charge = Charge(
            channel=channel,
            mechanism=NAME,
            parameters={
                "clip": clipped.bound,
                "scale": self.protection.scale,
                "coordinates": float(clipped.coordinates),
                **({"weight_limit": float(self.protection.weight_limit)} if weighted else {}),
            },
            epsilon=self.epsilon_of(clipped),
            payload_sha256=digest(payload),
            subject=round_id,
        )
        ledger.spend(charge)
        if weighted:
            words = WORDS("weighted_update", coordinates=clipped.coordinates, round=round_id, samples=weight)
        else:
            words = WORDS("noisy_update", coordinates=clipped.coordinates, round=round_id)
        return close(NoisyUpdate(round_id, noisy), payload, SAFETENSORS, charge, words)


def reseal(item: OutboxItem, ledger: Ledger, privacy: PrivacySettings) -> Sealed[OutboxItem]:
    """Seal a stored upload again, to send the same bytes once more.

    The reader's settings must still allow it.

    Raises ValueError unless the ledger holds a charge for exactly these bytes, made by this protection, the only one
    with single uploads. Raises ProtectionTooWeak if its noise is below what the settings require now, and BudgetSpent
    if its cost alone is above the daily ceiling that they set for its channel now.

    Formal guarantees: the same bytes again are post-processing: epsilon 0.
    """
    held = digest(item.payload)
    paid = ledger.repository.charged(held)
    if held != item.sha256 or paid is None or paid.subject != item.subject:
        raise ValueError(f"the ledger has no charge for the bytes stored for {item.subject}")
    if paid.mechanism != NAME:
        raise ValueError(f"the ledger charges {item.subject} as {paid.mechanism}, which sends no single uploads")
    known = paid.parameters
    check_noise(
        LocalLaplace(clip=known["clip"], scale=known["scale"], weight_limit=int(known.get("weight_limit", 1))), privacy
    )
    allowed = ledger.per_day(paid.channel)
    if paid.epsilon > allowed * (1 + ROUNDING):
        raise BudgetSpent(paid.channel, paid.epsilon, allowed)
    charge = Charge("none", paid.mechanism, subject=paid.subject)
    return close(item, item.payload, item.content_type, charge, item.words)

"""The stored state of a device in a secure sum.

After a kill at any point no message is lost or sent in two forms.
"""

from __future__ import annotations

import secrets
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import Field

from protocol.ids import Message
from protocol.pairing import sign_keys
from protocol.secagg import AdvertisedKeys, Complaints, RevealedShares, Roster, SharedKeys, SumTerms
from protocol.shamir import SHARE_BYTES

SumStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask"]


class HeldShares(Message):
    """The two shares that this device holds for one member, or for itself."""

    member: int
    key_share: bytes = Field(min_length=SHARE_BYTES, max_length=SHARE_BYTES)
    seed_share: bytes = Field(min_length=SHARE_BYTES, max_length=SHARE_BYTES)


class SumState(Message):
    """A device's memory of one secure sum; JSON by `model_dump_json`.

    Never on the wire: it holds every secret. stage names the message that is being sent, or has been. Messages are kept
    as they were sent, since a second, other message of the same stage could open what the first one hid.
    """

    terms: SumTerms
    stage: SumStage
    identity_secret: bytes
    encryption_secret: bytes
    mask_secret: bytes
    roster: Roster | None = None
    seed: bytes | None = None
    own: HeldShares | None = None
    shared: SharedKeys | None = None
    complaints: Complaints | None = None
    held: tuple[HeldShares, ...] = Field(
        default=(), description="Of all whose boxes opened, and from the `masked` stage on of U2; this device included."
    )
    masked_sha256: str | None = None
    survivors: tuple[int, ...] = ()
    revealed: RevealedShares | None = None

    @property
    def keys(self) -> AdvertisedKeys:
        """The message of the `keys` stage.

        Ed25519 signatures are deterministic, so it's the same bytes every time.
        """
        identity = Ed25519PrivateKey.from_private_bytes(self.identity_secret)
        publics = [
            X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
            for secret in (self.encryption_secret, self.mask_secret)
        ]
        return sign_keys(self.terms.digest(), identity, *publics)


def begin_sum(terms: SumTerms, identity: Ed25519PrivateKey | None = None) -> SumState:
    """Return fresh keys for one round.

    `identity` signs them; without one (no directory of members) it's fresh too.
    """
    return SumState(
        terms=terms,
        stage="keys",
        identity_secret=identity.private_bytes_raw() if identity else secrets.token_bytes(32),
        encryption_secret=X25519PrivateKey.generate().private_bytes_raw(),
        mask_secret=X25519PrivateKey.generate().private_bytes_raw(),
    )

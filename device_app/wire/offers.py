"""The offer of a round as it travels: the manifest's exact bytes under the key that signs releases.

The signature covers every term of the round, and nothing of one device, so that all devices of a round hold the same
bytes and can compare them. The pseudonym stands outside: it is random, it decides nothing that is priced, and whoever
swaps it only sends this device's messages to a place where the server knows nobody. What the signature can't do is
bind who holds the key: a server that lies may sign two manifests for one round.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field

from device_app.wire.ids import Message, Pseudonym
from device_app.wire.releases import SignatureRefused
from device_app.wire.rounds import RoundManifest, RoundOffer

DOMAIN = b"ownfeed round offer v1\n"
"""Stands before what is signed, so that nothing else signed by the same key (a release) can pass for an offer."""
MANIFEST_LIMIT = 4 * 1024 * 1024


class SignedOffer(Message):
    """Answer to a check-in that was chosen (an empty 204 says: not now).

    manifest: JSON of a RoundManifest. signature: Ed25519 over DOMAIN and the UTF-8 bytes of manifest.
    """

    manifest: str = Field(max_length=MANIFEST_LIMIT)
    signature: bytes = Field(min_length=64, max_length=64)
    public_key: bytes = Field(min_length=32, max_length=32)
    pseudonym: Pseudonym = Field(description="Not signed; lives for this round only.")


def sign_offer(offer: RoundOffer, key: Ed25519PrivateKey) -> SignedOffer:
    """Freeze the manifest's JSON and sign it. Ed25519 is deterministic: one manifest and key, one signature."""
    text = offer.manifest.model_dump_json()
    return SignedOffer(
        manifest=text,
        signature=key.sign(DOMAIN + text.encode()),
        public_key=key.public_key().public_bytes_raw(),
        pseudonym=offer.pseudonym,
    )


def verify_offer(signed: SignedOffer, trusted_key: bytes) -> RoundOffer:
    """The offer, if the trusted key signed its manifest.

    Raises SignatureRefused, before a byte of the manifest is read; pydantic's ValidationError for a signed manifest
    that is none.
    """
    if signed.public_key != trusted_key:
        raise SignatureRefused("the offer is signed by another key than the one this device trusts")
    try:
        Ed25519PublicKey.from_public_bytes(trusted_key).verify(signed.signature, DOMAIN + signed.manifest.encode())
    except InvalidSignature as broken:
        raise SignatureRefused("the offer's signature does not fit its bytes") from broken
    return RoundOffer(manifest=RoundManifest.model_validate_json(signed.manifest), pseudonym=signed.pseudonym)

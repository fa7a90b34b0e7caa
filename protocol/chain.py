"""The chain of releases, and key rotations from one signing key to the next.

Chain: each release names its predecessors by one hash, head_n = SHA-256("ownfeed release chain" | head_(n-1) | n |
SHA-256 of manifest n), and manifest n is signed with head_(n-1) inside. Two readers with the same head have been shown
the same releases since the chain began.

Rotations: a device trusts one Ed25519 key. It accepts a release under another key only if a chain of statements leads
from the trusted key to the new one, each signed by the key before it and by its successor.
"""

from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import AwareDatetime, Field, ValidationError, model_validator

from protocol.ids import Message, ReleaseId, Sha256, release_number

CHAIN_LIMIT = 65_536
LENGTHS = (16, 256, 4_096, 65_536)
"""The numbers of last releases that can be requested: so few that a request reveals next to nothing."""
_SHOWN = 20


class ChainedRelease(Message):
    """One release of the chain."""

    release: ReleaseId = Field(examples=["r12"])
    manifest_sha256: Sha256 = Field(description="Of the manifest's exact bytes.", examples=["3f" * 32])
    published_at: AwareDatetime = Field(examples=["2026-11-22T08:00:00Z"])


class ReleaseChain(Message):
    """GET /v1/releases/chain: the last releases, oldest first, the same for every device."""

    releases: tuple[ChainedRelease, ...] = Field(max_length=CHAIN_LIMIT)

    @model_validator(mode="after")
    def _one_after_another(self) -> Self:
        numbers = [release_number(each.release) for each in self.releases]
        if any(after != before + 1 for before, after in pairwise(numbers)):
            raise ValueError("releases must follow one another, oldest first")
        return self


def next_head(before: str | None, release: ReleaseId, manifest_sha256: str) -> str:
    """Return the head of a chain that ends with this release.

    before: the previous head, None at the start of a chain.
    """
    parts = ("ownfeed release chain", before or "", str(release_number(release)), manifest_sha256)
    return sha256("\n".join(parts).encode()).hexdigest()


def head_after(before: str | None, releases: Iterable[ChainedRelease]) -> str | None:
    """Return the head after these releases, which directly follow the head `before`."""
    head = before
    for each in releases:
        head = next_head(head, each.release, each.manifest_sha256)
    return head


def readable(head: str) -> str:
    """Return the head's first 20 hexadecimal digits in groups of four, for two readers to compare."""
    return " ".join(head[at : at + 4] for at in range(0, _SHOWN, 4))


ROTATIONS_LIMIT = 256
"""The most rotations of one server: one a month for twenty years."""
KEYS_LIMIT_BYTES = 512 * 1024
STATEMENT_LIMIT_CHARS = 400

_OLD_KEY_PREFIX, _NEW_KEY_PREFIX = b"ownfeed key rotation, old key\n", b"ownfeed key rotation, new key\n"
"""Prefixes of the signed bytes, so that no signed release or offer can pass for a rotation."""

Ed25519Key = Annotated[bytes, Field(min_length=32, max_length=32, description="Ed25519, raw.")]
Signature = Annotated[bytes, Field(min_length=64, max_length=64, description="Ed25519.")]


class RotationRefused(ValueError):
    """A key rotation is invalid; the device keeps the key that it has trusted so far."""


class KeyRotation(Message):
    """States that from now on new_key signs instead of old_key."""

    number: int = Field(ge=1, le=ROTATIONS_LIMIT, description="Of this server's rotations, from 1.")
    old_key: Ed25519Key
    new_key: Ed25519Key
    rotated_at: AwareDatetime

    @model_validator(mode="after")
    def _two_keys(self) -> Self:
        if self.old_key == self.new_key:
            raise ValueError("new_key: must differ from old_key")
        return self


class SignedRotation(Message):
    """The exact bytes of a KeyRotation (UTF-8 JSON), signed by its old key and by its new one."""

    rotation: str = Field(max_length=STATEMENT_LIMIT_CHARS)
    by_old_key: Signature
    by_new_key: Signature


class KeyHistory(Message):
    """GET /v1/keys: the key that signs now, and every rotation that led to it, oldest first."""

    public_key: Ed25519Key
    rotations: tuple[SignedRotation, ...] = Field(max_length=ROTATIONS_LIMIT)


def fingerprint(public_key: bytes) -> str:
    """Return a key's fingerprint: the first 64 bits of its SHA-256 in hex, in groups of four.

    People compare fingerprints to check that they trust the same key.
    """
    text = sha256(public_key).hexdigest()[:16]
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def sign_rotation(rotation: KeyRotation, old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> SignedRotation:
    """Sign the statement's JSON with both keys.

    Raises ValueError if they are not the keys it names.
    """
    for named, key in ((rotation.old_key, old), (rotation.new_key, new)):
        if key.public_key().public_bytes_raw() != named:
            raise ValueError("the statement must name the keys that it is signed with")
    text = rotation.model_dump_json()
    return SignedRotation(
        rotation=text,
        by_old_key=old.sign(_OLD_KEY_PREFIX + text.encode()),
        by_new_key=new.sign(_NEW_KEY_PREFIX + text.encode()),
    )


def verify_rotation(signed: SignedRotation) -> KeyRotation:
    """Return the statement, if both keys that it names have signed it.

    Raises RotationRefused otherwise. `follow` decides whether its old key is trusted.
    """
    try:
        rotation = KeyRotation.model_validate_json(signed.rotation)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        raise RotationRefused(f"a key rotation is malformed: {first['loc']}: {first['msg']}") from broken
    text = signed.rotation.encode()
    for name, key, signature, words in (
        ("old", rotation.old_key, signed.by_old_key, _OLD_KEY_PREFIX),
        ("new", rotation.new_key, signed.by_new_key, _NEW_KEY_PREFIX),
    ):
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, words + text)
        except (InvalidSignature, ValueError) as broken:
            raise RotationRefused(f"rotation {rotation.number} is not signed by its {name} key") from broken
    return rotation


def follow(history: KeyHistory, trusted: bytes, after: int = 0) -> tuple[bytes, int]:
    """Return the key that rotations lead to from `trusted`, and the last one's number.

    after: the number of the last rotation that led to `trusted`, 0 for none; an equal or lower one is never followed.

    *Formal guarantees.* The key returned is `trusted` itself, or there are statements s_1 ... s_n of rising numbers
    above `after` with s_1.old_key = trusted, s_i.new_key = s_(i+1).old_key and s_n.new_key the result, each signed by
    both its keys: without the private half of `trusted` nobody can lead a device away from it. Whoever holds that
    private half can; a rotation protects devices that have followed it, not those that still trust the old key.

    Raises RotationRefused if any statement is not signed by the two keys that it names.
    """
    for signed in history.rotations:
        rotation = verify_rotation(signed)
        if rotation.old_key == trusted and rotation.number > after:
            trusted, after = rotation.new_key, rotation.number
    return trusted, after

"""Sign keys, agree on them in pairs, and encrypt boxes with them (Bonawitz 2017).

`context` is always the digest of the round's terms: keys, boxes and signatures of one round are invalid in another, or
under other terms.
"""

from hashlib import sha256

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from protocol.secagg import AdvertisedKeys, Agreement, Box, Roster, SecaggError
from protocol.shamir import PRIME, SHARE_BYTES


def sign_keys(context: bytes, key: Ed25519PrivateKey, encryption_key: bytes, mask_key: bytes) -> AdvertisedKeys:
    """Advertise two public keys for this round."""
    return AdvertisedKeys(
        encryption_key=encryption_key,
        mask_key=mask_key,
        verify_key=key.public_key().public_bytes_raw(),
        signature=key.sign(_keys_text(context, encryption_key, mask_key)),
    )


def check_keys(context: bytes, keys: AdvertisedKeys) -> None:
    """Raise SecaggError unless the keys are signed for this round."""
    text = _keys_text(context, keys.encryption_key, keys.mask_key)
    _verify(keys.verify_key, keys.signature, text, "the keys are not signed for this round")


def check_order(keys: AdvertisedKeys) -> None:
    """Raise SecaggError if a key is of low order (RFC 7748, 6.1).

    No other member could agree on a secret with it.
    """
    anybody = X25519PrivateKey.generate()
    for key in (keys.encryption_key, keys.mask_key):
        try:
            anybody.exchange(X25519PublicKey.from_public_bytes(key))
        except ValueError as broken:
            raise SecaggError("a public key is of low order") from broken


def check_distinct(keys: tuple[AdvertisedKeys, ...]) -> None:
    """Raise SecaggError if any two keys of the members are equal."""
    every = [key for one in keys for key in (one.encryption_key, one.mask_key, one.verify_key)]
    if len(set(every)) != len(every):
        raise SecaggError("the same key appears twice")


def sign_agreement(context: bytes, roster: Roster, survivors: tuple[int, ...], key: Ed25519PrivateKey) -> Agreement:
    """Sign (round, roster, U3)."""
    return Agreement(signature=key.sign(_agreement_text(context, roster.digest(), survivors)))


def check_agreement(
    context: bytes, roster_digest: bytes, survivors: tuple[int, ...], verify_key: bytes, signature: bytes
) -> None:
    """Raise SecaggError unless this key has signed the same round, roster and U3."""
    text = _agreement_text(context, roster_digest, survivors)
    _verify(verify_key, signature, text, "a member did not sign this list of survivors")


def sign_alive(context: bytes, me: int, alive: bytes, key: Ed25519PrivateKey) -> Agreement:
    """Sign (round, this member, the members of U3 that it works with)."""
    return Agreement(signature=key.sign(_alive_text(context, me, alive)))


def check_alive(context: bytes, member: int, alive: bytes, verify_key: bytes, signature: bytes) -> None:
    """Raise SecaggError unless this key has signed the same round, number and U3."""
    text = _alive_text(context, member, alive)
    _verify(verify_key, signature, text, "a member did not sign this list of live members")


def pair_seed(context: bytes, mine: X25519PrivateKey, theirs: bytes, members: tuple[int, int]) -> bytes:
    """Return s_uv, the seed of the mask between two members; both compute the same."""
    return _agree(context, b"mask", mine, theirs, members, 32)


def channel_keys(
    context: bytes, mine: X25519PrivateKey, theirs: bytes, members: tuple[int, int]
) -> tuple[bytes, bytes]:
    """Return the keys of the boxes from the lower to the higher member, and back.

    Each key encrypts exactly one box.
    """
    both = _agree(context, b"box", mine, theirs, members, 64)
    return both[:32], both[32:]


def close_box(key: bytes, sender: int, receiver: int, key_share: bytes, seed_share: bytes) -> Box:
    """Encrypt (u, v, share of s_u, share of b_u).

    The nonce is fixed, since a key encrypts one box only.
    """
    header = sender.to_bytes(4, "big") + receiver.to_bytes(4, "big")
    return Box(member=receiver, box=ChaCha20Poly1305(key).encrypt(bytes(12), header + key_share + seed_share, header))


def open_box(key: bytes, sender: int, receiver: int, box: bytes) -> tuple[bytes, bytes]:
    """Return the two shares of a box.

    Raises SecaggError if it was altered, was meant for another pair, or holds no shares.
    """
    header = sender.to_bytes(4, "big") + receiver.to_bytes(4, "big")
    try:
        text = ChaCha20Poly1305(key).decrypt(bytes(12), box, header)
    except InvalidTag as broken:
        raise SecaggError(f"the box from member {sender} was altered, or is not for member {receiver}") from broken
    if text[:8] != header:
        raise SecaggError(f"the box does not name {sender} as its sender and {receiver} as its receiver")
    shares = text[8 : 8 + SHARE_BYTES], text[8 + SHARE_BYTES :]
    if any(int.from_bytes(share, "big") >= PRIME for share in shares):
        raise SecaggError(f"the box from member {sender} contains no field elements")
    return shares


def seed_commitment(context: bytes, member: int, seed: bytes) -> bytes:
    """Return a hash of a self mask's seed, bound to the round and the member."""
    return sha256(b"ownfeed secagg seed" + context + member.to_bytes(4, "big") + seed).digest()


def _agree(
    context: bytes, label: bytes, mine: X25519PrivateKey, theirs: bytes, members: tuple[int, int], size: int
) -> bytes:
    low, high = sorted(members)
    info = b"ownfeed secagg " + label + context + low.to_bytes(4, "big") + high.to_bytes(4, "big")
    try:
        secret = mine.exchange(X25519PublicKey.from_public_bytes(theirs))
    except ValueError as broken:
        raise SecaggError("a public key is of low order") from broken
    return HKDF(hashes.SHA256(), size, None, info).derive(secret)


def _keys_text(context: bytes, encryption_key: bytes, mask_key: bytes) -> bytes:
    return b"ownfeed secagg keys" + context + encryption_key + mask_key


def _agreement_text(context: bytes, roster_digest: bytes, survivors: tuple[int, ...]) -> bytes:
    members = b"".join(member.to_bytes(4, "big") for member in survivors)
    return b"ownfeed secagg survivors" + context + roster_digest + members


def _alive_text(context: bytes, member: int, alive: bytes) -> bytes:
    return b"ownfeed secagg alive" + context + member.to_bytes(4, "big") + alive


def _verify(verify_key: bytes, signature: bytes, text: bytes, complaint: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(verify_key).verify(signature, text)
    except (InvalidSignature, ValueError) as broken:
        raise SecaggError(complaint) from broken

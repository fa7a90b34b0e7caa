"""Messages of a secure sum as bytes of fixed places, so that one box or share is found without reading the others."""

from __future__ import annotations

from collections.abc import Iterator

from device_app.wire.secagg import BOX_BYTES, KEY_BYTES, RevealedShares, SharedKeys
from device_app.wire.shamir import SHARE_BYTES

_NUMBER_BYTES = 4
_BOX_ROW_BYTES = _NUMBER_BYTES + BOX_BYTES
_SHARE_ROW_BYTES = 1 + _NUMBER_BYTES + SHARE_BYTES
_SEED, _KEY = b"s", b"k"


def pack_shared(shared: SharedKeys) -> bytes:
    """The seed's commitment, then (receiver, box) in ascending order of receivers."""
    rows = (box.member.to_bytes(_NUMBER_BYTES, "big") + box.box for box in shared.boxes)
    return shared.seed_commitment + b"".join(rows)


def commitment_of(packed: bytes) -> bytes:
    """The seed's commitment."""
    return packed[:KEY_BYTES]


def box_for(packed: bytes, receiver: int, place: int) -> bytes:
    """The box for a receiver, the `place`-th from zero among its sender's. Raises ValueError if it's another's."""
    start = KEY_BYTES + place * _BOX_ROW_BYTES
    row = packed[start : start + _BOX_ROW_BYTES]
    if len(row) != _BOX_ROW_BYTES or int.from_bytes(row[:_NUMBER_BYTES], "big") != receiver:
        raise ValueError(f"packed: no box for member {receiver} at place {place}")
    return row[_NUMBER_BYTES:]


def pack_revealed(revealed: RevealedShares) -> bytes:
    """(kind, member, share) one after the other."""
    seeds = (_SEED + one.member.to_bytes(_NUMBER_BYTES, "big") + one.share for one in revealed.seeds)
    keys = (_KEY + one.member.to_bytes(_NUMBER_BYTES, "big") + one.share for one in revealed.keys)
    return b"".join((*seeds, *keys))


def revealed_rows(packed: bytes) -> Iterator[tuple[bool, int, bytes]]:
    """Whether it's the share of a key (else of a seed), whose, and the share."""
    for start in range(0, len(packed), _SHARE_ROW_BYTES):
        row = packed[start : start + _SHARE_ROW_BYTES]
        member = int.from_bytes(row[1 : 1 + _NUMBER_BYTES], "big")
        yield row[:1] == _KEY, member, row[1 + _NUMBER_BYTES :]

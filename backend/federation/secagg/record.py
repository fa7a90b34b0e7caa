"""The server's record of a secure sum, stored as JSON, and the packing of messages.

Messages are packed with fixed offsets, so that one box or share is found without reading the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from backend.federation.secagg.graph import MaskGraph
from backend.federation.secagg.parts import CohortSplit
from protocol.secagg import BOX_BYTES, KEY_BYTES, RevealedShares, SharedKeys, SumTerms
from protocol.shamir import SHARE_BYTES

ServerStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask", "opened", "failed"]
STAGES: tuple[ServerStage, ...] = get_args(ServerStage)
ENDED: tuple[ServerStage, ...] = ("opened", "failed")


class SumRecord(BaseModel):
    """The state of a secure sum, without its messages (`messages`) and its running sum.

    members, degree and circle describe the graph, and threshold is t; they are set when the `keys` stage closes. The
    record changes when a stage closes, never with a message. Its size is constant, except for two bytes a member in the
    sparse graph. split: how to split the cohort when the `keys` stage closes. parts: number of parts that it was split
    into; the stage is then that of the slowest part.

    dropped: members that shared their keys and are out of the sum since the `complaints` stage, because they
    sent no message there or were left out. reason: why the sum failed. by_members: whether it failed because too few
    members continued or one sent something false. malicious: pseudonyms of members known to be malicious (`complaints`,
    `unmask`). needs_all: some shares were false, so the `unmask` stage waits for every member's shares.
    """

    model_config = ConfigDict(
        extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", serialize_by_alias=True, validate_by_name=True
    )

    terms: SumTerms
    wanted_threshold: int | None = None
    stage: ServerStage = "keys"
    reason: str | None = None
    by_members: bool = False
    malicious: tuple[str, ...] = Field(default=(), alias="liars")  # the name in rows of version 0.1
    needs_all: bool = False
    members: int = 0
    degree: int = 0
    circle: bytes = b""
    threshold: int = 0
    dropped: tuple[int, ...] = ()
    split: CohortSplit | None = None
    parts: int = 0

    @property
    def places(self) -> int:
        """The largest number of devices that may advertise keys, over all groups."""
        return self.terms.cohort if self.split is None else self.split.cohort

    @property
    def graph(self) -> MaskGraph:
        """The mask graph, once the `keys` stage is closed."""
        return MaskGraph(self.members, self.degree, self.circle)


_NUMBER_BYTES = 4
_BOX_ROW_BYTES = _NUMBER_BYTES + BOX_BYTES
_SHARE_ROW_BYTES = 1 + _NUMBER_BYTES + SHARE_BYTES
_SEED, _KEY = b"s", b"k"


def pack_shared(shared: SharedKeys) -> bytes:
    """Pack the seed's commitment, then (receiver, box) in ascending order of receivers."""
    rows = (box.member.to_bytes(_NUMBER_BYTES, "big") + box.box for box in shared.boxes)
    return shared.seed_commitment + b"".join(rows)


def commitment_of(packed: bytes) -> bytes:
    """Return the commitment to the seed."""
    return packed[:KEY_BYTES]


def box_for(packed: bytes, receiver: int, place: int) -> bytes:
    """Return the box for a receiver, which is at index `place` among its sender's boxes.

    Raises ValueError if the box there is for another receiver.
    """
    start = KEY_BYTES + place * _BOX_ROW_BYTES
    row = packed[start : start + _BOX_ROW_BYTES]
    if len(row) != _BOX_ROW_BYTES or int.from_bytes(row[:_NUMBER_BYTES], "big") != receiver:
        raise ValueError(f"packed: no box for member {receiver} at place {place}")
    return row[_NUMBER_BYTES:]


def pack_revealed(revealed: RevealedShares) -> bytes:
    """Pack each share as (kind, member, share)."""
    seeds = (_SEED + one.member.to_bytes(_NUMBER_BYTES, "big") + one.share for one in revealed.seeds)
    keys = (_KEY + one.member.to_bytes(_NUMBER_BYTES, "big") + one.share for one in revealed.keys)
    return b"".join((*seeds, *keys))


def revealed_rows(packed: bytes) -> Iterator[tuple[bool, int, bytes]]:
    """Yield for each share whether it is of a key (else of a seed), its owner, and the share."""
    for start in range(0, len(packed), _SHARE_ROW_BYTES):
        row = packed[start : start + _SHARE_ROW_BYTES]
        member = int.from_bytes(row[1 : 1 + _NUMBER_BYTES], "big")
        yield row[:1] == _KEY, member, row[1 + _NUMBER_BYTES :]

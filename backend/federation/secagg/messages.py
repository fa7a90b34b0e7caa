"""The messages of a secure sum, one entry for each device and stage, in memory or as rows.

Adding a message as a row changes no other row.

The server's record of a sum is JSON. Messages are packed with fixed offsets, so that one box or share is found without
reading the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Dialect, Select, bindparam, delete, func, insert, select

from backend.db.statements import Prepared, as_list, listed
from backend.db.tables import ParticipationRow, SumKeyRow, SumMessageRow
from backend.federation.secagg.graph import CohortSplit, MaskGraph, Sources
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
    malicious: tuple[str, ...] = Field(default=(), alias="liars")  # its name in the rows of running rounds
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


AT_ONCE = 16
"""Number of bodies read at once: in the complete graph with 500 members each has 47 KB."""

_OF_SUM = SumMessageRow.sum == bindparam("name")
_OF_STAGE = (_OF_SUM, SumMessageRow.stage == bindparam("at"))
_AMONG = listed("members", SumMessageRow.__table__.c.member)
_BODIES = (
    select(SumMessageRow.member, SumMessageRow.body)
    .where(*_OF_STAGE, SumMessageRow.member > bindparam("after"))
    .order_by(SumMessageRow.member)
    .limit(AT_ONCE)
)
_MEMBERS = select(SumMessageRow.member).where(*_OF_STAGE).order_by(SumMessageRow.member)
_PSEUDONYMS = select(SumMessageRow.pseudonym).where(*_OF_STAGE).order_by(SumMessageRow.member)


def _among(found: Select[*tuple[Any, ...]]) -> Prepared:
    def statement(dialect: Dialect) -> Select[*tuple[Any, ...]]:
        return found.where(_AMONG(dialect))

    return Prepared(statement)


NUMBER = Prepared(select(SumMessageRow.member).where(*_OF_STAGE, SumMessageRow.pseudonym == bindparam("pseudonym")))
LAST_NUMBER = Prepared(select(func.max(SumMessageRow.member)).where(*_OF_STAGE))
SHA256 = Prepared(select(SumMessageRow.sha256).where(*_OF_STAGE, SumMessageRow.member == bindparam("member")))
ADD = Prepared(insert(SumMessageRow).inline())
CLAIMED = Prepared(select(SumKeyRow.key).where(SumKeyRow.sum == bindparam("name"), SumKeyRow.key == bindparam("one")))
CLAIM = Prepared(insert(SumKeyRow).inline())
COUNT = Prepared(select(func.count()).where(*_OF_STAGE))
MEMBERS, MEMBERS_AMONG = Prepared(_MEMBERS), _among(_MEMBERS)
BODIES, BODIES_AMONG = Prepared(_BODIES), _among(_BODIES)
PSEUDONYMS_AMONG = _among(_PSEUDONYMS)
FORGET = (
    Prepared(delete(SumMessageRow).where(_OF_SUM)),
    Prepared(delete(SumKeyRow).where(SumKeyRow.sum == bindparam("name"))),
)


class SumRows:
    """The `Messages` of one sum in the database, within a transaction.

    A writer must hold the lock of the sum's row.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._name = connection, name

    def number(self, pseudonym: str) -> int | None:
        found: int | None = self._ask(NUMBER, "keys", pseudonym=pseudonym)
        return found

    def last_number(self) -> int:
        found: int | None = self._ask(LAST_NUMBER, "keys")
        return found or 0

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        found: str | None = self._ask(SHA256, stage, member=member)
        return found

    def add(self, entry: Entry) -> None:
        ADD.run(
            self._connection,
            sum=self._name,
            stage=entry.stage,
            member=entry.member,
            pseudonym=entry.pseudonym,
            sha256=entry.sha256,
            body=entry.body,
        )

    def claim(self, keys: Sequence[bytes]) -> bool:
        if any(CLAIMED.run(self._connection, name=self._name, one=key).first() for key in keys):
            return False
        for key in keys:
            CLAIM.run(self._connection, sum=self._name, key=key)
        return True

    def count(self, stage: MessageStage) -> int:
        found: int = self._ask(COUNT, stage)
        return found

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        statement, these = (MEMBERS, {}) if among is None else (MEMBERS_AMONG, self._these(among))
        return tuple(statement.run(self._connection, name=self._name, at=stage, **these).scalars())

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterator[tuple[int, bytes]]:
        statement, these = (BODIES, {}) if among is None else (BODIES_AMONG, self._these(among))
        last = 0
        while page := statement.run(self._connection, name=self._name, at=stage, after=last, **these).rows:
            yield from ((member, body) for member, body in page)
            last = page[-1][0]
            if len(page) < AT_ONCE:
                return

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        found = PSEUDONYMS_AMONG.run(self._connection, name=self._name, at="keys", **self._these(members))
        return tuple(found.scalars())

    def sources(self) -> Sources:
        """See `Messages`; a sum that belongs to no round has no known sources."""
        number = re.match(r"round-(\d+)", self._name)
        if number is None:
            return Sources()
        found = (
            select(SumMessageRow.member, ParticipationRow.source)
            .join(ParticipationRow, ParticipationRow.pseudonym == SumMessageRow.pseudonym)
            .where(SumMessageRow.sum == self._name, SumMessageRow.stage == "keys")
            .where(ParticipationRow.round == int(number[1]), ParticipationRow.source.is_not(None))
        )
        return Sources({member: str(source) for member, source in self._connection.execute(found)})

    def forget(self) -> None:
        for each in FORGET:
            each.run(self._connection, name=self._name)

    def _ask(self, statement: Prepared, stage: MessageStage, **values: Any) -> Any:
        return statement.run(self._connection, name=self._name, at=stage, **values).scalar()

    def _these(self, members: Collection[int]) -> dict[str, Any]:
        return {"members": as_list(self._connection, members)}


MessageStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask"]


@dataclass(frozen=True)
class Entry:
    """One message.

    Args:
        stage: the stage of the message.
        member: the sender's number, 1 to n in the order of the `keys` stage.
        pseudonym: the sender's pseudonym in the round.
        sha256: hash of the bytes sent, by which a repeated message is recognised.
        body: the bytes as they are packed here; empty for a masked vector, which is kept only in the running sum.
    """

    stage: MessageStage
    member: int
    pseudonym: str
    sha256: str
    body: bytes = b""


class Messages(Protocol):
    """The messages of one sum. The time and memory for one message don't grow with the cohort."""

    def number(self, pseudonym: str) -> int | None:
        """Return the member's number, or None if the pseudonym is not a member."""

    def last_number(self) -> int:
        """Return the highest number given, 0 before the first."""

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        """Return the hash of the member's message, or None if none was received."""

    def add(self, entry: Entry) -> None:
        """Store a message that was not received before."""

    def claim(self, keys: Sequence[bytes]) -> bool:
        """Reserve public keys for one member.

        Returns False and reserves nothing if another member has one of them.
        """

    def count(self, stage: MessageStage) -> int:
        """Return the number of messages received for this stage."""

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        """Return the members whose messages were received, ascending.

        All of them, or only those in `among`.
        """

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterable[tuple[int, bytes]]:
        """Yield member and body of each message, by ascending member."""

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        """Return the pseudonyms of these members, by ascending number."""

    def sources(self) -> Sources:
        """Return the network addresses of the members, except of addresses without limits."""

    def forget(self) -> None:
        """Delete all messages of the sum."""


@dataclass
class InMemoryMessages:
    entries: dict[MessageStage, dict[int, Entry]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    claimed: set[bytes] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    """Sources by pseudonym."""

    def number(self, pseudonym: str) -> int | None:
        return self.numbers.get(pseudonym)

    def last_number(self) -> int:
        return len(self.numbers)

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        found = self.entries.get(stage, {}).get(member)
        return None if found is None else found.sha256

    def add(self, entry: Entry) -> None:
        self.entries.setdefault(entry.stage, {})[entry.member] = entry
        if entry.stage == "keys":
            self.numbers[entry.pseudonym] = entry.member

    def claim(self, keys: Sequence[bytes]) -> bool:
        if self.claimed & set(keys):
            return False
        self.claimed |= set(keys)
        return True

    def count(self, stage: MessageStage) -> int:
        return len(self.entries.get(stage, {}))

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        entries = self.entries.get(stage, {})
        return tuple(sorted(entries if among is None else entries.keys() & set(among)))

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterator[tuple[int, bytes]]:
        entries = self.entries.get(stage, {})
        return ((member, entries[member].body) for member in self.members(stage, among))

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        return tuple(name for name, member in self.numbers.items() if member in members)

    def sources(self) -> Sources:
        return Sources({member: self.places[name] for name, member in self.numbers.items() if name in self.places})

    def forget(self) -> None:
        self.entries, self.numbers, self.claimed = {}, {}, set()

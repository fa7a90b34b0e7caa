"""What devices have sent to a secure sum: one entry a device and stage, in memory here and as rows in `rows`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from backend.federation.secagg.sources import Sources

MessageStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask"]


@dataclass(frozen=True)
class Entry:
    """One message.

    Args:
        stage: of the message.
        member: its sender's number, 1 to n in the order of stage keys.
        pseudonym: its sender's place in the round.
        sha256: of what was sent: the same again is known by it.
        body: as `packing` writes it; empty for a masked vector, which is in the running sum and nowhere else.
    """

    stage: MessageStage
    member: int
    pseudonym: str
    sha256: str
    body: bytes = b""


class Messages(Protocol):
    """The messages of one sum. What is done for one message takes no more time or memory for a larger cohort."""

    def number(self, pseudonym: str) -> int | None:
        """The member's number; None for who is no member."""

    def last_number(self) -> int:
        """The highest number given; 0 before the first."""

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        """Of the message that came; None if none has."""

    def add(self, entry: Entry) -> None:
        """Keep a message that has not come before."""

    def claim(self, keys: Sequence[bytes]) -> bool:
        """Reserve public keys for one member; False, and nothing is reserved, if another has one of them."""

    def count(self, stage: MessageStage) -> int:
        """How many messages of this stage have come."""

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        """Whose messages have come, ascending; of these members only, or of all."""

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterable[tuple[int, bytes]]:
        """Member and body of each message, ascending, one after the other."""

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        """The pseudonyms of these members, by ascending number."""

    def sources(self) -> Sources:
        """Where the members' places were given to, as far as bounds hold for it."""

    def forget(self) -> None:
        """Erase all messages of the sum."""


@dataclass
class HeldMessages:
    """The messages of one sum, in memory."""

    entries: dict[MessageStage, dict[int, Entry]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    claimed: set[bytes] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    """Sources by pseudonym."""

    def number(self, pseudonym: str) -> int | None:
        """As `Messages`."""
        return self.numbers.get(pseudonym)

    def last_number(self) -> int:
        """As `Messages`."""
        return len(self.numbers)

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        """As `Messages`."""
        found = self.entries.get(stage, {}).get(member)
        return None if found is None else found.sha256

    def add(self, entry: Entry) -> None:
        """As `Messages`."""
        self.entries.setdefault(entry.stage, {})[entry.member] = entry
        if entry.stage == "keys":
            self.numbers[entry.pseudonym] = entry.member

    def claim(self, keys: Sequence[bytes]) -> bool:
        """As `Messages`."""
        if self.claimed & set(keys):
            return False
        self.claimed |= set(keys)
        return True

    def count(self, stage: MessageStage) -> int:
        """As `Messages`."""
        return len(self.entries.get(stage, {}))

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        """As `Messages`."""
        come = self.entries.get(stage, {})
        return tuple(sorted(come if among is None else come.keys() & set(among)))

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """As `Messages`."""
        come = self.entries.get(stage, {})
        return ((member, come[member].body) for member in self.members(stage, among))

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        """As `Messages`."""
        return tuple(name for name, member in self.numbers.items() if member in members)

    def sources(self) -> Sources:
        """As `Messages`."""
        return Sources({member: self.places[name] for name, member in self.numbers.items() if name in self.places})

    def forget(self) -> None:
        """As `Messages`."""
        self.entries, self.numbers, self.claimed = {}, {}, set()

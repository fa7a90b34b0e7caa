"""Receive the messages of members of secure sums and answer them, each in one transaction."""

import os
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import TypeVar

import numpy as np
from sqlalchemy import Connection, Engine

from backend.db.engine import reading, reading_session
from backend.federation.errors import SumMessageRefused, SumStageClosed, UnknownPseudonym
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import MessageStage, ServerStage
from backend.federation.secagg.secure_sum import SecureSumServer
from backend.federation.secagg.sum_files import StoredSums
from protocol.ring import RingVector, ring_dtype
from protocol.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Complaints,
    RevealedShares,
    Roster,
    SharedKeys,
    Sharers,
    Shares,
    SumTerms,
    Survivors,
)

BLOCK_BYTES = 64 * 1024
"""The bytes of a vector added to the sum at once: with as much of the sum they fit into the second-level cache."""
T = TypeVar("T")
Note = Callable[[Connection], None]


def nothing(connection: Connection) -> None:
    """Write nothing: the note of messages that need no further row."""


class MemberExchange:
    """Receives and answers members' messages, by the name of the sum (its terms' `round`).

    A message reads and writes only its own row and the sum's row, so its cost doesn't grow with the cohort. If a sum is
    split into parts, its name leads each member to the member's part.

    Formal guarantees: whenever the server is killed, a message either has its row and, if it is a masked vector, is
    part of the running sum, or neither holds; no message is counted twice.
    """

    def __init__(self, engine: Engine, stored: StoredSums) -> None:
        self._engine, self._stored = engine, stored

    def advertise(self, name: str, pseudonym: str, keys: AdvertisedKeys, note: Note = nothing) -> bool:
        """Receive a message of the `keys` stage; returns whether it had been received before.

        This and the next methods raise as `SecureSumServer` does, and UnknownSum. `note` writes further rows for a new
        message, in the transaction of the message.
        """
        try:
            return self._receive(name, pseudonym, lambda one: one.advertise(pseudonym, keys), note)
        except UnknownPseudonym:
            # Only a split sum knows its members before it reads the message.
            raise SumStageClosed("keys", self._stage(name)) from None

    def share(self, name: str, pseudonym: str, shared: SharedKeys, note: Note = nothing) -> bool:
        """Receive a message of the `shares` stage."""
        return self._receive(name, pseudonym, lambda one: one.share(pseudonym, shared), note)

    def complain(self, name: str, pseudonym: str, complaints: Complaints, note: Note = nothing) -> bool:
        """Receive a member's message of the `complaints` stage."""
        return self._receive(name, pseudonym, lambda one: one.complain(pseudonym, complaints), note)

    def add_received(self, name: str, pseudonym: str, coming: Path, received: str, note: Note = nothing) -> bool:
        """Add a masked vector that is complete in a file.

        Returns whether it had been received before.

        received: the SHA-256 of the file.
        """
        locked = self._stored.locked(name, pseudonym, adds=True)
        with coming.open("rb", buffering=0) as file, locked as (connection, one):
            again = one.add_received(pseudonym, _blocks(file, one.record.terms), received)
            if not again:
                note(connection)
        return again

    def agree(self, name: str, pseudonym: str, agreement: Agreement, note: Note = nothing) -> bool:
        """Receive a message of the `agree` stage."""
        return self._receive(name, pseudonym, lambda one: one.agree(pseudonym, agreement), note)

    def reveal(self, name: str, pseudonym: str, revealed: RevealedShares, note: Note = nothing) -> bool:
        """Receive a message of the `unmask` stage."""
        return self._receive(name, pseudonym, lambda one: one.reveal(pseudonym, revealed), note)

    def check_due(self, name: str, stage: MessageStage, pseudonym: str) -> None:
        """Check, before a message is read, that it may be sent now; raises what the message itself would raise."""
        with reading(self._engine) as connection:
            try:
                one = self._stored.member_sum(connection, name, pseudonym)
            except UnknownPseudonym:
                if stage == "keys":
                    raise SumStageClosed("keys", self._stage(name)) from None
                raise
            one.check_due(stage, pseudonym)

    def roster(self, name: str, pseudonym: str) -> Roster:
        """Return the answer in the `keys` stage."""
        return self._answer(name, pseudonym, lambda members: members.roster(pseudonym))

    def shares(self, name: str, pseudonym: str) -> Shares:
        """Return the answer in the `shares` stage."""
        return self._answer(name, pseudonym, lambda members: members.shares(pseudonym))

    def sharers(self, name: str, pseudonym: str) -> Sharers:
        """Return the answer in the `complaints` stage."""
        return self._answer(name, pseudonym, lambda members: members.sharers_answer(pseudonym))

    def survivors(self, name: str, pseudonym: str) -> Survivors:
        """Return the answer in the `masked` stage."""
        return self._answer(name, pseudonym, lambda members: members.survivors(pseudonym))

    def agreements(self, name: str, pseudonym: str) -> Agreements:
        """Return the answer in the `agree` stage."""
        return self._answer(name, pseudonym, lambda members: members.agreements(pseudonym))

    def _stage(self, name: str) -> ServerStage:
        with reading_session(self._engine) as session:
            return self._stored.read(session, name)[1].stage

    def _answer(self, name: str, pseudonym: str, ask: Callable[[Members], T]) -> T:
        with reading(self._engine) as connection:
            return ask(self._stored.member_sum(connection, name, pseudonym).members)

    def _receive(self, name: str, pseudonym: str, take: Callable[[SecureSumServer], bool], note: Note) -> bool:
        with self._stored.locked(name, pseudonym) as (connection, one):
            if not (again := take(one)):
                note(connection)
            return again


def _blocks(file: FileIO, terms: SumTerms) -> Iterator[RingVector]:
    """Return an iterator over the elements in a file, block by block.

    Each block overwrites the buffer of the one before. Raises SumMessageRefused, before anything is read, if the file
    does not have the size of the vector.
    """
    limit = terms.vector_bytes
    size = os.fstat(file.fileno()).st_size
    if size != limit:
        what = "long" if size > limit else "short"
        raise SumMessageRefused(f"The vector is too {what}.", field="body", limit=f"{limit} bytes")
    return _read_blocks(file, terms)


def _read_blocks(file: FileIO, terms: SumTerms) -> Iterator[RingVector]:
    buffer = np.empty(BLOCK_BYTES // np.dtype(ring_dtype(terms.bits)).itemsize, dtype=ring_dtype(terms.bits))
    for start in range(0, terms.length, buffer.size):
        block = buffer[: min(buffer.size, terms.length - start)]
        if file.readinto(block.view(np.uint8).data) != block.nbytes:
            raise OSError(f"{file.name} is shorter than its size")
        yield block

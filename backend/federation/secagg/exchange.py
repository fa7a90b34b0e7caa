"""What the members of secure sums send, and what they are answered: each message one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.federation.errors import UnknownPseudonym
from backend.federation.secagg.errors import SumMessageRefused, SumStageClosed
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import MessageStage
from backend.federation.secagg.record import ServerStage
from backend.federation.secagg.secure_sum import SecureSumServer
from backend.federation.secagg.sum_files import StoredSums
from device_app.wire.secagg import (
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

CHUNK_BYTES = 64 * 1024
T = TypeVar("T")
Note = Callable[[Session], None]


def nothing(session: Session) -> None:
    """The note of a message of which nothing else is to be known."""


class MemberExchange:
    """Takes members' messages and answers them, by the name of the sum (the `round` of its terms).

    A message reads and writes its own row and the sum's: what it costs doesn't grow with the cohort. Who sends and asks
    by the name of a sum that is split is led to the part it's a member of.

    Formal guarantees: a message has its row and, if it's a masked vector, is in the running sum, or neither is so,
    whenever the server is killed; none is counted twice.

    Args:
        terms: what a sum was begun with. Raises UnknownSum.
    """

    def __init__(self, engine: Engine, stored: StoredSums, terms: Callable[[str], SumTerms]) -> None:
        self._engine, self._stored, self._terms = engine, stored, terms

    def advertise(self, name: str, pseudonym: str, keys: AdvertisedKeys, note: Note = nothing) -> bool:
        """Stage keys. This and the next: as `SecureSumServer` does, and UnknownSum.

        `note` writes what else is to be known of a message that had not come before, in its transaction.
        """
        try:
            return self._take(name, pseudonym, lambda one: one.advertise(pseudonym, keys), note)
        except UnknownPseudonym:
            # Only a sum that is split knows its members before it reads the message.
            raise SumStageClosed("keys", self._stage(name)) from None

    def share(self, name: str, pseudonym: str, shared: SharedKeys, note: Note = nothing) -> bool:
        """Stage shares."""
        return self._take(name, pseudonym, lambda one: one.share(pseudonym, shared), note)

    def complain(self, name: str, pseudonym: str, complaints: Complaints, note: Note = nothing) -> bool:
        """Stage complaints."""
        return self._take(name, pseudonym, lambda one: one.complain(pseudonym, complaints), note)

    def add_masked(
        self, name: str, pseudonym: str, chunks: Iterable[bytes], note: Callable[[Session, str], None] | None = None
    ) -> tuple[str, bool]:
        """Stage masked: the SHA-256 of what came, and whether it had come before. `note` is told it too.

        The body goes to a file first, so that a slow device holds no lock.
        """
        limit = self._terms(name).vector_bytes
        hashed = sha256()
        with NamedTemporaryFile(prefix="ownfeed-masked-") as file:
            for chunk in chunks:
                if file.tell() + len(chunk) > limit:
                    raise SumMessageRefused("The vector is too long.", field="body", limit=f"{limit} bytes")
                hashed.update(chunk)
                file.write(chunk)
            file.flush()
            received = hashed.hexdigest()
            return received, self.add_received(name, pseudonym, Path(file.name), received, note)

    def add_received(
        self,
        name: str,
        pseudonym: str,
        coming: Path,
        received: str,
        note: Callable[[Session, str], None] | None = None,
    ) -> bool:
        """Stage masked, of a body that lies whole in a file and has this SHA-256: whether it had come before."""
        with self._turn(name, pseudonym, with_total=True) as (session, one):
            again = one.add_masked(pseudonym, _chunks(coming))
            if note is not None and not again:
                note(session, received)
        return again

    def agree(self, name: str, pseudonym: str, agreement: Agreement, note: Note = nothing) -> bool:
        """Stage agree."""
        return self._take(name, pseudonym, lambda one: one.agree(pseudonym, agreement), note)

    def reveal(self, name: str, pseudonym: str, revealed: RevealedShares, note: Note = nothing) -> bool:
        """Stage unmask."""
        return self._take(name, pseudonym, lambda one: one.reveal(pseudonym, revealed), note)

    def check_due(self, name: str, stage: MessageStage, pseudonym: str) -> None:
        """Whether a message may come now, before it is read: raises as the message would."""
        with reading_session(self._engine) as session:
            try:
                one = self._stored.read_for(session, name, pseudonym)[1]
            except UnknownPseudonym:
                if stage == "keys":
                    raise SumStageClosed("keys", self._stored.read(session, name)[1].stage) from None
                raise
            one.check_due(stage, pseudonym)

    def roster(self, name: str, pseudonym: str) -> Roster:
        """Answer of stage keys."""
        return self._tell(name, pseudonym, lambda members: members.roster(pseudonym))

    def shares(self, name: str, pseudonym: str) -> Shares:
        """Answer of stage shares."""
        return self._tell(name, pseudonym, lambda members: members.shares(pseudonym))

    def sharers(self, name: str, pseudonym: str) -> Sharers:
        """Answer of stage complaints."""
        return self._tell(name, pseudonym, lambda members: members.sharers_answer(pseudonym))

    def survivors(self, name: str, pseudonym: str) -> Survivors:
        """Answer of stage masked."""
        return self._tell(name, pseudonym, lambda members: members.survivors(pseudonym))

    def agreements(self, name: str, pseudonym: str) -> Agreements:
        """Answer of stage agree."""
        return self._tell(name, pseudonym, lambda members: members.agreements(pseudonym))

    def _stage(self, name: str) -> ServerStage:
        with reading_session(self._engine) as session:
            return self._stored.read(session, name)[1].stage

    def _tell(self, name: str, pseudonym: str, ask: Callable[[Members], T]) -> T:
        with reading_session(self._engine) as session:
            return ask(self._stored.read_for(session, name, pseudonym)[1].members)

    def _take(self, name: str, pseudonym: str, take: Callable[[SecureSumServer], bool], note: Note) -> bool:
        with self._turn(name, pseudonym) as (session, one):
            if not (again := take(one)):
                note(session)
            return again

    @contextmanager
    def _turn(
        self, name: str, pseudonym: str, *, with_total: bool = False
    ) -> Iterator[tuple[Session, SecureSumServer]]:
        """This member's sum to change; stored when the block ends well, untouched when it raises."""
        with self._stored.writing() as session:
            mine = self._stored.read_for(session, name, pseudonym, to_change=True, with_total=with_total)
            yield session, mine[1]
            self._stored.write(session, mine, with_total=with_total)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK_BYTES), b"")

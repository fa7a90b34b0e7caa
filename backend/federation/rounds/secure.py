"""Rounds that are a secure sum: their messages, their stages, and their end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, bindparam, func, select, update
from sqlalchemy.orm import Session

from backend.allocator import give_free_pages_back
from backend.db.engine import reading, reading_session
from backend.db.prepared import Prepared
from backend.db.tables_federation import ParticipationRow, RoundRow, SecureSumRow
from backend.errors import may_pass
from backend.federation.errors import RoundClosed, RoundImpossible, UnknownPseudonym, UnknownRound, UpdateRefused
from backend.federation.rounds.aggregation import AggregatedUpdates, aggregate_sum
from backend.federation.rounds.context import RoundContextLoader
from backend.federation.rounds.finalising import finalize
from backend.federation.rounds.states import UNDER_WAY
from backend.federation.secagg.errors import SharesAwaited, SumStageClosed, UnknownSum
from backend.federation.secagg.parts import CohortSplit
from backend.federation.secagg.record import ENDED
from backend.federation.secagg.stages import stage_is_over, times_beside_keys
from backend.federation.secagg.store import SecureSumStore
from backend.federation.secagg.sum_files import SWEEP_AGE_SEC
from backend.federation.strategies.joined_sums import JoinOfSums
from backend.federation.systems.system import SystemSpec
from backend.releases.blobs import digest
from device_app.wire.ids import Message, Pseudonym, RoundId, round_number
from device_app.wire.rounds import GROUP, UPLOAD_LIMIT_BYTES, RoundManifest, SumStage, UploadReceipt
from device_app.wire.secagg import (
    BOX_BYTES,
    AdvertisedKeys,
    Agreement,
    Complaints,
    RevealedShares,
    SharedKeys,
    SumTerms,
)

SWEEP_EVERY = timedelta(seconds=SWEEP_AGE_SEC)
"""How often what uploads that broke off have left is looked for, besides each start."""
SMALL_BYTES = 4_096
NUMBER_BYTES = 8
"""Of a member's number in JSON, with what stands between two."""
MESSAGES: Mapping[SumStage, type[Message]] = {
    "keys": AdvertisedKeys,
    "shares": SharedKeys,
    "complaints": Complaints,
    "agree": Agreement,
    "unmask": RevealedShares,
}
"""Of the stages whose messages are JSON; stage masked carries ring elements."""


_NOTED = (
    update(ParticipationRow)
    .where(ParticipationRow.round == bindparam("of"), ParticipationRow.pseudonym == bindparam("by"))
    .values(size_bytes=func.coalesce(ParticipationRow.size_bytes, 0) + bindparam("more"))
)
"""Bytes for the status, in the message's own transaction; the sum itself is the store's. Who has no place in the round
changes no row, and the message isn't taken."""
_NOTE = Prepared(_NOTED)
_STATE = Prepared(select(RoundRow.state, RoundRow.reason).where(RoundRow.number == bindparam("of")))
_PLACE = Prepared(
    select(ParticipationRow.pseudonym).where(
        ParticipationRow.round == bindparam("of"), ParticipationRow.pseudonym == bindparam("by")
    )
)


class SecureRounds:
    """What the coordinator leaves to others where a round is a secure sum.

    interrupted: whether a masked vector was given up for want of storage or database, until `settle`.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemSpec],
        store: SecureSumStore,
        loader: RoundContextLoader,
    ) -> None:
        self._systems, self._store, self._loader = systems, store, loader
        self._engine, self._clock = loader.engine, loader.clock
        self.interrupted, self._swept_at = False, self._clock()
        self._has_received = False
        self._end_left_over()

    def begin(self, session: Session, terms: SumTerms, seconds: float, join: JoinOfSums | None = None) -> None:
        """The sum of a round that opens, in its transaction. Raises RoundImpossible for a vector no upload may have.

        Devices have half of the round's time to turn up and advertise keys; the other stages divide the rest, stage
        masked with twice the share of any other.
        """
        if terms.vector_bytes > UPLOAD_LIMIT_BYTES:
            raise RoundImpossible("The model is too large.", field="system", limit=f"{UPLOAD_LIMIT_BYTES} bytes")
        keys_sec = seconds / 2
        stage_sec = keys_sec / times_beside_keys(terms)
        split = None if join is None else CohortSplit(members=join.members, parts=join.groups, left=join.left)
        self._store.begin_within(session, terms, stage_sec=stage_sec, keys_sec=keys_sec, split=split)

    def takes_devices(self, session: Session, terms: SumTerms) -> bool:
        """Whether places may still be given: only who advertises keys in time is a member."""
        row = session.get(SecureSumRow, terms.round)
        return row is not None and row.stage == "keys" and not stage_is_over(row, terms, self._clock())

    def limit_bytes(self, round_id: RoundId, stage: SumStage, pseudonym: Pseudonym) -> int:
        """The largest body this place may send at this stage, asked before the body is read.

        Raises UnknownRound, UnknownPseudonym, UnknownSum or RoundClosed; and as the message itself would, had it come,
        where its stage isn't open or this member has nothing to send.
        """
        terms = self._terms(round_id, pseudonym)
        with self._told_of_the_round(round_id, pseudonym):
            self._store.exchange.check_due(round_id, stage, pseudonym)
        if stage == "masked":
            return terms.vector_bytes
        if stage in ("shares", "unmask"):
            return SMALL_BYTES + terms.cohort * (2 * BOX_BYTES + 64)
        if stage == "complaints":
            return SMALL_BYTES + terms.cohort * NUMBER_BYTES
        return SMALL_BYTES

    def receive(
        self, round_id: RoundId, stage: SumStage, pseudonym: Pseudonym, message: Message, body: bytes
    ) -> UploadReceipt:
        """Take a message of any stage but masked; the same again gets the same receipt and changes nothing.

        Raises what `limit_bytes` does, SumStageClosed, SumMessageRefused or SumMessageConflict. The round goes on.
        """

        def note(connection: Connection) -> None:
            noted = _NOTE.run(connection, of=round_number(round_id), by=pseudonym, more=len(body))
            if not noted.rowcount:
                raise UnknownPseudonym

        with self._told_of_the_round(round_id, pseudonym):
            self._check_place(round_id, pseudonym)
            match message:
                case AdvertisedKeys():
                    again = self._store.exchange.advertise(round_id, pseudonym, message, note)
                case SharedKeys():
                    again = self._store.exchange.share(round_id, pseudonym, message, note)
                case Complaints():
                    again = self._store.exchange.complain(round_id, pseudonym, message, note)
                case Agreement():
                    again = self._store.exchange.agree(round_id, pseudonym, message, note)
                case RevealedShares():
                    again = self._store.exchange.reveal(round_id, pseudonym, message, note)
                case _:
                    raise TypeError(f"message: {type(message).__name__} is of no stage")
        self._has_received = True
        return UploadReceipt(round=round_id, sha256=digest(body), duplicate=again)

    def receive_masked(self, round_id: RoundId, pseudonym: Pseudonym, coming: Path, sha256: str) -> UploadReceipt:
        """Take a masked vector from the file it came into; raises as `receive`.

        Formal guarantees: those of `SecureSumStore` and `SecureSum`: it's added to the running sum and kept nowhere
        else.
        """

        def note(connection: Connection, sha256: str) -> None:
            mine = {"of": round_number(round_id), "by": pseudonym, "more": self._store.terms(round_id).vector_bytes}
            came = {"uploaded_at": self._clock(), "sha256": sha256}
            if not connection.execute(_NOTED.values(came), mine).rowcount:
                raise UnknownPseudonym

        try:
            with self._told_of_the_round(round_id, pseudonym):
                again = self._store.exchange.add_received(round_id, pseudonym, coming, sha256, note)
        except Exception as failed:
            self.interrupted = self.interrupted or may_pass(failed)  # the running sum may lie there, and no row name it
            raise
        finally:
            self._has_received = True  # at its end, when what it took is free
        return UploadReceipt(round=round_id, sha256=sha256, duplicate=again)

    def answer(self, round_id: RoundId, stage: SumStage, pseudonym: Pseudonym) -> Message | None:
        """What the stage came to, for this member; None while it isn't closed.

        Raises as `limit_bytes` does, and RoundClosed, with the reason, once the round has ended.
        """
        ask: dict[SumStage, Callable[[RoundId, Pseudonym], Message]] = {
            "keys": self._store.exchange.roster,
            "shares": self._store.exchange.shares,
            "complaints": self._store.exchange.sharers,
            "masked": self._store.exchange.survivors,
            "agree": self._store.exchange.agreements,
        }
        try:
            with self._told_of_the_round(round_id, pseudonym):
                return ask[stage](round_id, pseudonym)
        except SumStageClosed:
            return None

    def step(self, row: RoundRow) -> str | None:
        """Close the stage if it is complete or its time is over; apply the round once its sum can be opened.

        Returns why the round has failed, else None. Raises as `finalize`, which the coordinator makes a failure of.
        """
        name = f"round-{row.number}"
        if self._has_received:
            self._has_received = False
            give_free_pages_back()  # what messages since the last look have taken
        seen = self._store.stages.poll(name)
        if seen.is_due and seen.stage != "unmask":
            self._store.stages.step(name)
            seen = self._store.stages.poll(name)
        if seen.reason is not None:
            return seen.reason
        if seen.is_due and seen.stage == "unmask":
            manifest = RoundManifest.model_validate_json(row.manifest)
            spec = self._systems[row.system]
            with suppress(SharesAwaited):
                finalize(lambda: self._gather(manifest, spec.join), spec, self._loader, row)
                self._store.clear()
        return None

    def _gather(self, manifest: RoundManifest, join: JoinOfSums | None) -> AggregatedUpdates:
        """`aggregate_sum`; a sum that honest members can't give has failed by their doing, and its record says so."""
        try:
            return aggregate_sum(self._store, manifest, join)
        except UpdateRefused as refused:
            self._store.stages.fail(manifest.round, str(refused), by_members=True)
            raise

    def fail(self, round_id: RoundId, reason: str) -> None:
        """End the sum of a round that ends without it; nothing is opened any more."""
        self._store.stages.fail(round_id, reason)

    @property
    def is_unsettled(self) -> bool:
        """Whether something may be left behind: an upload broke off, or it hasn't been looked for in a while."""
        return self.interrupted or not timedelta(0) <= self._clock() - self._swept_at < SWEEP_EVERY

    def settle(self) -> None:
        """End what rounds that have ended have left, and remove what uploads that broke off have, as the start does."""
        self.interrupted, self._swept_at = False, self._clock()
        self._end_left_over()
        self._store.sweep()

    def _end_left_over(self) -> None:
        """End the sums whose round a server ended just before it was killed."""
        for name in self._store.under_way():
            of_round = re.match(r"round-(\d+)", name)
            if of_round is None:
                continue
            with reading_session(self._engine) as session:
                row = session.get(RoundRow, int(of_round[1]))
                over = row is not None and row.state not in UNDER_WAY
            if over:
                self._store.stages.fail(name, "Its round has ended.")

    @contextmanager
    def _told_of_the_round(self, round_id: RoundId, pseudonym: Pseudonym) -> Iterator[None]:
        """What a sum refuses is asked of the round, whose answer says more: that it has ended, and why.

        It's asked afterwards, so that what is accepted costs one look.
        """
        try:
            yield
        except (UnknownSum, UnknownPseudonym):
            self._terms(round_id, pseudonym)
            raise
        except SumStageClosed as closed:
            if closed.stage not in ENDED:
                raise
            self._terms(round_id, pseudonym)
            if reason := self._store.stages.poll(round_id).reason:
                raise RoundClosed(f"The round has failed: {reason}", field="round") from None
            raise RoundClosed(
                "The sum of this device's group has failed; the round goes on without it.", field=GROUP
            ) from None

    def _check_place(self, round_id: RoundId, pseudonym: Pseudonym) -> None:
        """Raises UnknownPseudonym: only who has a place may wait for the turn of those who write, and make others."""
        with reading(self._engine) as connection:
            if _PLACE.run(connection, of=round_number(round_id), by=pseudonym).first() is None:
                raise UnknownPseudonym

    def _terms(self, round_id: RoundId, pseudonym: Pseudonym) -> SumTerms:
        number = round_number(round_id)
        with reading(self._engine) as connection:
            found = _STATE.run(connection, of=number).first()
            if found is None:
                raise UnknownRound
            if _PLACE.run(connection, of=number, by=pseudonym).first() is None:
                raise UnknownPseudonym
        terms = self._store.terms(round_id)
        state, reason = found
        if state not in UNDER_WAY:
            why = f": {reason}" if reason else "."
            raise RoundClosed(f"The round is {state}{why}", field="round")
        return terms

"""Rounds with a secure sum: receive and answer messages, close stages, apply the round."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, bindparam, func, select, update
from sqlalchemy.orm import Session

from backend.db.engine import reading, reading_session
from backend.db.statements import Prepared
from backend.db.tables import ParticipationRow, RoundRow, SecureSumRow
from backend.errors import may_pass
from backend.federation.errors import (
    RoundClosed,
    RoundImpossible,
    SharesAwaited,
    SumStageClosed,
    UnknownPseudonym,
    UnknownRound,
    UnknownSum,
    UpdateRefused,
)
from backend.federation.rounds.finalize import RoundContextLoader, aggregate_sum, finalize
from backend.federation.rounds.records import UNDER_WAY
from backend.federation.secagg.graph import CohortSplit
from backend.federation.secagg.messages import ENDED
from backend.federation.secagg.sum_files import SWEEP_AGE_SEC
from backend.federation.secagg.sum_store import SecureSumStore, stage_is_over, times_beside_keys
from backend.federation.systems.composition import SystemSpec
from backend.releases.blobs import digest
from protocol.ids import Message, Pseudonym, RoundId, round_number
from protocol.rounds import GROUP, UPLOAD_LIMIT_BYTES, RoundManifest, SumStage, UploadReceipt
from protocol.secagg import (
    BOX_BYTES,
    AdvertisedKeys,
    Agreement,
    Complaints,
    RevealedShares,
    SharedKeys,
    SumTerms,
)
from protocol.server_timing import Stopwatch

SWEEP_EVERY = timedelta(seconds=SWEEP_AGE_SEC)
"""How often leftovers of broken uploads are removed, in addition to each start."""
SMALL_BYTES = 4_096
NUMBER_BYTES = 8
"""The bytes of a member's number in JSON, including its separator."""
MESSAGES: Mapping[SumStage, type[Message]] = {
    "keys": AdvertisedKeys,
    "shares": SharedKeys,
    "complaints": Complaints,
    "agree": Agreement,
    "unmask": RevealedShares,
}
"""Message types of the stages that use JSON; the `masked` stage carries ring elements."""


_NOTED = (
    update(ParticipationRow)
    .where(ParticipationRow.round == bindparam("of"), ParticipationRow.pseudonym == bindparam("by"))
    .values(size_bytes=func.coalesce(ParticipationRow.size_bytes, 0) + bindparam("more"))
)
"""Adds a message's bytes to the status, in the transaction of the message; the store keeps the sum itself. Without a
place in the round no row changes, and the message is refused.
"""
_NOTE = Prepared(_NOTED)
_STATE = Prepared(select(RoundRow.state, RoundRow.reason).where(RoundRow.number == bindparam("of")))
_PLACE = Prepared(
    select(ParticipationRow.pseudonym).where(
        ParticipationRow.round == bindparam("of"), ParticipationRow.pseudonym == bindparam("by")
    )
)


class SecureRounds:
    """The coordinator's part for rounds with a secure sum.

    interrupted: whether a masked vector was dropped because the storage or database failed; True until `settle`.
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
        self._end_left_over()

    def begin(self, session: Session, terms: SumTerms, seconds: float, split: CohortSplit | None = None) -> None:
        """Create the sum of a round in the transaction that opens it.

        Devices have half of the round's time to get a place and advertise keys. The other stages divide the rest; the
        `masked` stage gets twice the share of any other. Raises RoundImpossible if the vector is larger than an upload
        may be.
        """
        if terms.vector_bytes > UPLOAD_LIMIT_BYTES:
            raise RoundImpossible("The model is too large.", field="system", limit=f"{UPLOAD_LIMIT_BYTES} bytes")
        keys_sec = seconds / 2
        stage_sec = keys_sec / times_beside_keys(terms)
        self._store.begin_within(session, terms, stage_sec=stage_sec, keys_sec=keys_sec, split=split)

    def takes_devices(self, session: Session, terms: SumTerms) -> bool:
        """Return whether places may still be given.

        Only devices that advertise keys in time become members.
        """
        row = session.get(SecureSumRow, terms.round)
        return row is not None and row.stage == "keys" and not stage_is_over(row, terms, self._clock())

    def limit_bytes(self, round_id: RoundId, stage: SumStage, pseudonym: Pseudonym) -> int:
        """Return the largest body that this pseudonym may send at this stage.

        It is called before the body is read. Raises UnknownRound, UnknownPseudonym, UnknownSum or RoundClosed; if the
        stage isn't open or this member has nothing to send, raises what the message itself would raise.
        """
        terms = self._terms(round_id, pseudonym)
        with self._round_errors(round_id, pseudonym):
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
        """Accept a message of any stage except masked; a repeated message gets the same receipt.

        Raises what `limit_bytes` raises, SumStageClosed, SumMessageRefused or SumMessageConflict. None of them ends the
        round.
        """

        def note(connection: Connection) -> None:
            noted = _NOTE.run(connection, of=round_number(round_id), by=pseudonym, more=len(body))
            if not noted.rowcount:
                raise UnknownPseudonym

        with self._round_errors(round_id, pseudonym):
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
                    raise TypeError(f"message: {type(message).__name__} does not belong to any stage")
        return UploadReceipt(round=round_id, sha256=digest(body), duplicate=again)

    def receive_masked(self, round_id: RoundId, pseudonym: Pseudonym, coming: Path, sha256: str) -> UploadReceipt:
        """Accept a masked vector from the file that it was received into; raises as `receive`.

        Formal guarantees: those of `SecureSumStore` and `SecureSumServer`: the vector is added to the running sum and
        kept nowhere else.
        """

        def note(connection: Connection) -> None:
            mine = {"of": round_number(round_id), "by": pseudonym, "more": self._store.terms(round_id).vector_bytes}
            received = {"uploaded_at": self._clock(), "sha256": sha256}
            if not connection.execute(_NOTED.values(received), mine).rowcount:
                raise UnknownPseudonym

        try:
            with self._round_errors(round_id, pseudonym):
                again = self._store.exchange.add_received(round_id, pseudonym, coming, sha256, note)
        except Exception as failed:
            self.interrupted = self.interrupted or may_pass(failed)  # no row may name the stored sum
            raise
        return UploadReceipt(round=round_id, sha256=sha256, duplicate=again)

    def answer(self, round_id: RoundId, stage: SumStage, pseudonym: Pseudonym) -> Message | None:
        """Return the result of the stage for this member, or None while the stage is open.

        Raises what `limit_bytes` raises, and RoundClosed with the reason once the round has ended.
        """
        ask: dict[SumStage, Callable[[RoundId, Pseudonym], Message]] = {
            "keys": self._store.exchange.roster,
            "shares": self._store.exchange.shares,
            "complaints": self._store.exchange.sharers,
            "masked": self._store.exchange.survivors,
            "agree": self._store.exchange.agreements,
        }
        try:
            with self._round_errors(round_id, pseudonym):
                return ask[stage](round_id, pseudonym)
        except SumStageClosed:
            return None

    def step(self, row: RoundRow) -> str | None:
        """Close the stage if it is complete or its time is up.

        Applies the round once its sum can be opened. Returns the reason if the round has failed, else None. Raises as
        `aggregate_sum` and `finalize`; the coordinator then fails the round.
        """
        name = f"round-{row.number}"
        seen = self._store.stages.poll(name)
        if seen.is_due and seen.stage != "unmask":
            self._store.stages.step(name)
            seen = self._store.stages.poll(name)
        if seen.reason is not None:
            return seen.reason
        if seen.is_due and seen.stage == "unmask":
            manifest = RoundManifest.model_validate_json(row.manifest)
            spec, watch = self._systems[row.system], Stopwatch()
            try:
                with watch.stage("sum"):
                    aggregated = aggregate_sum(self._store, manifest, spec.join)
            except SharesAwaited:
                return None
            except UpdateRefused as refused:  # no honest members' sum: record that members made it fail
                self._store.stages.fail(name, str(refused), by_members=True)
                raise
            finalize(aggregated, spec, self._loader, row, watch)
            self._store.clear()
        return None

    def fail(self, round_id: RoundId, reason: str) -> None:
        """End the sum of a round that has failed, so that it is never opened."""
        self._store.stages.fail(round_id, reason)

    @property
    def is_unsettled(self) -> bool:
        """Whether there may be leftovers: an upload was interrupted, or the last sweep was long ago."""
        return self.interrupted or not timedelta(0) <= self._clock() - self._swept_at < SWEEP_EVERY

    def settle(self) -> None:
        """End the sums of ended rounds and remove leftovers of broken uploads, as at the start."""
        self.interrupted, self._swept_at = False, self._clock()
        self._end_left_over()
        self._store.sweep()

    def _end_left_over(self) -> None:
        """End the sums of rounds that a server ended just before it was killed."""
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
    def _round_errors(self, round_id: RoundId, pseudonym: Pseudonym) -> Iterator[None]:
        """Replace an error of the sum with the round's own, which says why the round has ended.

        The round is queried only after an error, so an accepted message costs a single query.
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
        """Raise UnknownPseudonym unless the device has a place in the round.

        Without a place a client must not wait for the write lock and delay others.
        """
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

"""Secure sums that survive a kill: rows and one object each, and every message is one transaction over both."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import SecureSumRow
from backend.federation.secagg.exchange import MemberExchange
from backend.federation.secagg.parts import CohortSplit
from backend.federation.secagg.record import ENDED, ServerStage, SumRecord
from backend.federation.secagg.stages import SumStages
from backend.federation.secagg.sum_files import StoredSums
from backend.storage.object_store import ObjectStore
from device_app.wire.secagg import SumTerms

TERMS_KEPT = 16  # of sums that were asked for last; one or two are under way


class SecureSumStore:
    """All secure sums of a server, by name (the `round` of their terms).

    A sum begun with `split` becomes several when stage keys closes (`parts`).

    exchange: what members send and are answered. stages: what the clock closes, and the opened sums.

    Formal guarantees: those of both; and `finish` ends a sum in the transaction that applies it.

    Args:
        engine: a migrated database.
        objects: for running sums.
        clock: the time, in UTC.
        threads: for unmasking; None is one for each processor.
    """

    def __init__(
        self,
        engine: Engine,
        objects: ObjectStore,
        clock: Callable[[], datetime],
        *,
        threads: int | None = None,
    ) -> None:
        self._engine, self._clock = engine, clock
        self._stored = StoredSums(engine, objects)
        self.exchange = MemberExchange(engine, self._stored, self.terms)
        self.stages = SumStages(engine, self._stored, clock, threads=threads)
        self._terms: dict[str, SumTerms] = {}
        self.sweep()

    def begin(self, terms: SumTerms, *, stage_sec: float, threshold: int | None = None) -> None:
        """A new sum, whose every stage lasts at most `stage_sec`, and stage masked MASKED_TIMES that (`stages`). Raises
        ValueError if one of that name exists."""
        with writing_session(self._engine) as session:
            self.begin_within(session, terms, stage_sec=stage_sec, keys_sec=stage_sec, threshold=threshold)

    def begin_within(
        self,
        session: Session,
        terms: SumTerms,
        *,
        stage_sec: float,
        keys_sec: float,
        threshold: int | None = None,
        split: CohortSplit | None = None,
    ) -> None:
        """The same in the transaction of a round that opens; stage keys, for which devices wait, has its own time."""
        if not (stage_sec > 0 and keys_sec > 0):
            raise ValueError(f"stage_sec: must be above 0, got {stage_sec} and {keys_sec} for the keys")
        fresh = SumRecord(terms=terms, wanted_threshold=threshold, split=split)
        if session.get(SecureSumRow, terms.round) is not None:
            raise ValueError(f"terms.round: there is a secure sum {terms.round} already")
        session.add(
            SecureSumRow(
                name=terms.round,
                stage="keys",
                record=fresh.model_dump_json(),
                total=None,
                stage_sec=stage_sec,
                closes_at=self._clock() + timedelta(seconds=keys_sec),
            )
        )

    def terms(self, name: str) -> SumTerms:
        """What a sum was begun with, read once: it never changes. Raises UnknownSum."""
        known = self._terms.get(name)
        if known is None:
            with reading_session(self._engine) as session:
                known = self._stored.read(session, name)[1].record.terms
            if len(self._terms) >= TERMS_KEPT:
                self._terms.clear()
            self._terms[name] = known
        return known

    def stage(self, name: str) -> tuple[ServerStage, datetime]:
        """The stage of a sum and when it closes. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            row, one = self._stored.read(session, name)
            return one.stage, row.closes_at

    def parts(self, name: str) -> tuple[str, ...]:
        """Names of the parts of a sum that haven't failed; none if it isn't split. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            parts = self._stored.parts(session, self._stored.read(session, name))
            return tuple(row.name for row, part in parts if part.stage != "failed")

    def finish(self, session: Session, name: str) -> None:
        """Mark a sum and its parts as opened, within the transaction that applies them; what only they needed is
        forgotten.

        Running sums are on disk until `clear`, since the transaction may yet be undone.
        """
        whole = self._stored.read(session, name, to_change=True)
        for part in self._stored.parts(session, whole, to_change=True):
            if part[1].stage not in ENDED:
                part[1].finish()
                self._stored.write(session, part)
        whole[1].finish()
        self._stored.write(session, whole)

    def clear(self) -> None:
        """Remove the running sums of all that have ended, whichever process ended them.

        A sum's row names its file until the file is gone, so a kill at any point leaves it to the next call.
        """
        self._stored.clear()

    def under_way(self) -> list[str]:
        """Names of sums that have not ended."""
        with reading_session(self._engine) as session:
            return list(session.scalars(select(SecureSumRow.name).where(SecureSumRow.stage.not_in(ENDED))))

    def sweep(self) -> None:
        """Remove what a kill left behind: ended sums, and after an hour broken uploads and sums without a row."""
        self._stored.sweep()

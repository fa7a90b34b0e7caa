"""Rounds whose updates come one by one, under local noise: what is accepted, and their end."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import ParticipationRow, RoundRow
from backend.errors import Unavailable
from backend.federation.deadlines import is_over
from backend.federation.errors import RoundClosed, UpdateConflict
from backend.federation.protections.registry import resolve
from backend.federation.protections.upload_rules import UploadRules
from backend.federation.rounds.aggregation import aggregate_updates
from backend.federation.rounds.context import RoundContextLoader
from backend.federation.rounds.finalising import finalize
from backend.federation.rounds.records import count_uploaded, find_round, is_sum, place, under_way
from backend.federation.rounds.states import UNDER_WAY, advance
from backend.federation.rounds.update_store import UpdateStore
from backend.federation.systems.system import SystemSpec
from backend.releases.blobs import digest
from backend.storage.object_store import ObjectStore
from device_app.wire.ids import Pseudonym, RoundId
from device_app.wire.rounds import RoundManifest, UploadReceipt


class PlainRounds:
    """What the coordinator leaves to others where a round is no secure sum.

    interrupted: whether the database went away while an update was noted, which may be left behind until `sweep`.
    """

    def __init__(self, systems: Mapping[str, SystemSpec], updates: ObjectStore, loader: RoundContextLoader) -> None:
        """updates: where they wait; those of ended rounds, left behind by a kill, are swept."""
        self._systems, self._inbox, self._loader = systems, UpdateStore(updates), loader
        self._engine, self._clock = loader.engine, loader.clock
        self._rules: dict[RoundId, UploadRules] = {}
        self.interrupted = False
        self.sweep()

    def sweep(self) -> None:
        """Remove the updates of rounds that have ended, which a kill or an interruption has left behind."""
        self.interrupted = False  # first: whoever is interrupted meanwhile may have come after the listing
        try:
            self._inbox.sweep(self._under_way)
        except BaseException:
            self.interrupted = True
            raise

    def limit_bytes(self, round_id: RoundId, pseudonym: Pseudonym, declared: int | None = None) -> int:
        """The largest body this place may send, asked before the body is read; declared is how long it says it is.

        Raises UnknownRound, UnknownPseudonym, RoundClosed, or UpdateConflict after an update of another length.
        """
        with reading_session(self._engine) as session:
            row = find_round(session, round_id)
            mine = place(session, row.number, pseudonym)
            _check_takes_updates(row)
            if mine.sha256 is None:
                self._check_open(session, row)
            elif declared is not None and declared != mine.size_bytes:
                raise UpdateConflict
            return self._rules_of(row).limit_bytes

    def accept(self, round_id: RoundId, pseudonym: Pseudonym, content: bytes) -> UploadReceipt:
        """Take one update. The same bytes again get the same receipt, whatever has become of the round.

        Raises UnknownRound, UnknownPseudonym, UpdateConflict (other bytes before), RoundClosed (late, or the cohort is
        complete) or UpdateRefused (wrong tensors). The round goes on after any of them.
        """
        sha256 = digest(content)
        with reading_session(self._engine) as session:
            row = find_round(session, round_id)
            _check_takes_updates(row)
            if receipt := _earlier_receipt(round_id, place(session, row.number, pseudonym), sha256):
                return receipt
            self._check_open(session, row)
            rules = self._rules_of(row)
        rules.read(content)
        self._inbox.keep(round_id, pseudonym, content)
        try:
            return self._noted(round_id, pseudonym, sha256, len(content))
        except (RoundClosed, UpdateConflict):
            self._inbox.remove(round_id, pseudonym, sha256)  # the end of the round may have looked for it before
            raise
        except Unavailable:
            self.interrupted = True  # it may count or not, and its round may have ended
            raise

    def _noted(self, round_id: RoundId, pseudonym: Pseudonym, sha256: str, size_bytes: int) -> UploadReceipt:
        """The row of an update that is kept."""
        with writing_session(self._engine) as session:
            row = find_round(session, round_id, to_change=True)
            mine = place(session, row.number, pseudonym)
            if receipt := _earlier_receipt(round_id, mine, sha256):
                return receipt
            self._check_open(session, row)
            mine.uploaded_at, mine.sha256, mine.size_bytes = self._clock(), sha256, size_bytes
            if row.state == "open":
                row.state = advance("open", "updates")
        return UploadReceipt(round=round_id, sha256=sha256, duplicate=False)

    def step(self, row: RoundRow) -> str | None:
        """Apply the round if its time has come: complete, or past its deadline with enough.

        Returns why the round has failed, else None. Raises as `finalize`, which the coordinator makes a failure of.
        """
        with reading_session(self._engine) as session:
            uploaded = count_uploaded(session, row)
        if uploaded < row.cohort and not is_over(self._clock(), row.closes_at, row.closes_at - row.opened_at):
            return None
        if uploaded < row.cohort_minimum:
            return f"{uploaded} updates came until the deadline; the minimum is {row.cohort_minimum}"
        spec, rules = self._systems[row.system], self._rules_of(row)
        finalize(lambda: aggregate_updates(self._engine, self._inbox, rules, row, spec.centre), spec, self._loader, row)
        return None

    def forget(self, round_id: RoundId) -> None:
        """Throw away the updates of a round that has ended."""
        self._rules.pop(round_id, None)
        self._inbox.discard(round_id)

    def _under_way(self) -> list[str]:
        with reading_session(self._engine) as session:
            return [f"round-{row.number}" for row in under_way(session)]

    def _check_open(self, session: Session, row: RoundRow) -> None:
        if row.state not in UNDER_WAY:
            raise RoundClosed(f"The round is {row.state}.", field="round")
        if is_over(self._clock(), row.closes_at, row.closes_at - row.opened_at):
            raise RoundClosed(
                "The update is late.", field="closes_at", limit=row.closes_at.isoformat(timespec="seconds")
            )
        if count_uploaded(session, row) >= row.cohort:
            raise RoundClosed("The cohort is complete.", field="cohort", limit=str(row.cohort))

    def _rules_of(self, row: RoundRow) -> UploadRules:
        round_id = f"round-{row.number}"
        known = self._rules.get(round_id)
        if known is None:
            manifest = RoundManifest.model_validate_json(row.manifest)
            known = self._rules[round_id] = resolve(manifest.protection).upload_rules(manifest.shapes)
        return known


def _earlier_receipt(round_id: RoundId, mine: ParticipationRow, sha256: str) -> UploadReceipt | None:
    if mine.sha256 is None:
        return None
    if mine.sha256 != sha256:
        raise UpdateConflict
    return UploadReceipt(round=round_id, sha256=sha256, duplicate=True)


def _check_takes_updates(row: RoundRow) -> None:
    if is_sum(row):
        raise RoundClosed("The round takes masked vectors, and never a single update.", field="round")

"""Rounds with single updates under local noise: accept the updates and apply the round."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables import ParticipationRow, RoundRow
from backend.errors import Unavailable
from backend.federation.deadlines import is_over
from backend.federation.errors import RoundClosed, UpdateConflict
from backend.federation.protections.registry import resolve
from backend.federation.protections.sum_bounds import UploadRules
from backend.federation.rounds.finalize import RoundContextLoader, aggregate_updates, finalize
from backend.federation.rounds.records import UNDER_WAY, advance, count_uploaded, find_round, is_sum, place, under_way
from backend.federation.rounds.update_store import UpdateStore
from backend.federation.systems.composition import SystemSpec
from backend.releases.blobs import digest
from backend.storage.object_store import ObjectStore
from protocol.ids import Pseudonym, RoundId
from protocol.rounds import RoundManifest, UploadReceipt
from protocol.server_timing import Stopwatch


class PlainRounds:
    """The coordinator's part for rounds without a secure sum.

    interrupted: whether the database failed while an update was recorded; its file may then remain until `sweep`.
    """

    def __init__(self, systems: Mapping[str, SystemSpec], updates: ObjectStore, loader: RoundContextLoader) -> None:
        """Take the object store that holds the updates until their round ends.

        Updates of ended rounds that remain after a kill are removed here.
        """
        self._systems, self._inbox, self._loader = systems, UpdateStore(updates), loader
        self._engine, self._clock = loader.engine, loader.clock
        self._rules: dict[RoundId, UploadRules] = {}
        self.interrupted = False
        self.sweep()

    def sweep(self) -> None:
        """Remove the updates of ended rounds that remain after a kill or an interruption."""
        self.interrupted = False  # before the sweep: an upload that is interrupted meanwhile may not be in the listing
        try:
            self._inbox.sweep(self._under_way)
        except BaseException:
            self.interrupted = True
            raise

    def limit_bytes(self, round_id: RoundId, pseudonym: Pseudonym, declared: int | None = None) -> int:
        """Return the largest body that this pseudonym may send, before the body is read.

        declared: the length that the request announces. Raises UnknownRound, UnknownPseudonym, RoundClosed, or
        UpdateConflict if an update of another length was accepted before.
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
        """Accept one update; repeated bytes get the same receipt, even after the round has ended.

        Raises UnknownRound, UnknownPseudonym, UpdateConflict (a different update was accepted before), RoundClosed (too
        late, or the cohort is complete) or UpdateRefused (wrong tensors). None of these ends the round.
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
            self._inbox.remove(round_id, pseudonym, sha256)  # the end of the round may have missed it
            raise
        except Unavailable:
            self.interrupted = True  # unknown whether the row was written; the round may have ended
            raise

    def _noted(self, round_id: RoundId, pseudonym: Pseudonym, sha256: str, size_bytes: int) -> UploadReceipt:
        """Write the row of a stored update and return its receipt."""
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
        """Apply the round if it is complete, or past its deadline with enough updates.

        Returns the reason if the round has failed, else None. Raises what `aggregate_updates` and `finalize` raise; the
        coordinator then fails the round.
        """
        with reading_session(self._engine) as session:
            uploaded = count_uploaded(session, row)
        if uploaded < row.cohort and not is_over(self._clock(), row.closes_at, row.closes_at - row.opened_at):
            return None
        if uploaded < row.cohort_minimum:
            return f"{uploaded} updates arrived before the deadline; the minimum is {row.cohort_minimum}"
        spec, watch = self._systems[row.system], Stopwatch()
        with watch.stage("sum"):
            aggregated = aggregate_updates(self._engine, self._inbox, self._rules_of(row), row, spec.centre)
        finalize(aggregated, spec, self._loader, row, watch)
        return None

    def forget(self, round_id: RoundId) -> None:
        """Delete the updates of a round that has ended."""
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
        raise RoundClosed("The round takes masked vectors, not single updates.", field="round")

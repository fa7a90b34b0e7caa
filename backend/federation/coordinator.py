"""Runs training rounds: offers places, takes updates, averages them, publishes.

Everything a round is stands in the database and on disk, so a coordinator that is killed at any point goes on after a
restart. Several processes may serve devices over one database and one folder; one of them at a time ends rounds. At
most one round is under way at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session, writing_session
from backend.db.tables_federation import Participation, Round
from backend.db.turn import turn
from backend.errors import OwnfeedError
from backend.federation.errors import (
    IllegalTransition,
    RoundClosed,
    UnknownRound,
    UpdateConflict,
)
from backend.federation.gathering import gather_updates
from backend.federation.inbox import Inbox
from backend.federation.looks import Looks
from backend.federation.orders import OrderBook
from backend.federation.records import (
    count_joined,
    count_uploaded,
    is_paused,
    place,
    round_number,
    round_status,
    under_way,
)
from backend.federation.round import UNDER_WAY, advance
from backend.federation.secagg.book import SumBook
from backend.federation.secure_rounds import SecureRounds
from backend.federation.selection import admitted, draw_pseudonym, places
from backend.federation.settlement import settle
from backend.federation.spending import Spending, spending
from backend.federation.stockroom import Stockroom
from backend.federation.strategies.strategy import RoundOrder
from backend.federation.systems.system import SystemSpec
from backend.federation.timetable import Timetable
from backend.federation.uploads import UploadRules
from backend.releases.blobs import digest
from backend.releases.store import ReleaseStore
from device_app.wire.ids import PROTOCOL_VERSION, Pseudonym, RoundId
from device_app.wire.protections import LocalLaplace
from device_app.wire.rounds import CheckIn, RoundManifest, RoundOffer, RoundState, RoundStatus, UploadReceipt

ENDING = "rounds"
"""The turn of the process that closes stages and ends rounds."""


def utc_now() -> datetime:
    """The clock of a real coordinator."""
    return datetime.now(UTC)


class Coordinator:
    """The server half of all systems.

    Args:
        engine: a migrated database.
        releases: where weights come from and go to.
        systems: what can be run, by name.
        data_dir: updates wait in its folder `rounds`.
        clock: the time, in UTC; tests bring their own.
        held_out: share of their samples that devices leave to the release gate; 0 while there is none.
    """

    def __init__(
        self,
        engine: Engine,
        releases: ReleaseStore,
        systems: Mapping[str, SystemSpec],
        data_dir: Path,
        clock: Callable[[], datetime] = utc_now,
        held_out: float = 0.0,
    ) -> None:
        self._engine = engine
        self._systems = systems
        self._clock = clock
        self._inbox = Inbox(data_dir / "rounds")
        self._room = Stockroom(engine, releases, clock, data_dir, held_out)
        self.sums = SecureRounds(systems, SumBook(engine, data_dir / "sums", clock), self._room)
        self._orders = OrderBook(systems, self._room, self.sums)
        self.looks = Looks(clock)
        self.timetable = Timetable(engine, self._orders, self.looks, clock)
        self._rules: tuple[RoundId, UploadRules] | None = None
        with reading_session(engine) as session:
            self._inbox.sweep([f"round-{row.number}" for row in under_way(session)])

    def open_round(
        self, system: str, *, cohort: int, cohort_minimum: int, seconds: float, admission: float = 1.0
    ) -> RoundStatus:
        """Open a round of `system` on the current release.

        It is applied when `cohort` updates have come, or after `seconds` with at least `cohort_minimum`. `admission` is
        the chance of each check-in to get a place. Raises UnknownSystem, RoundImpossible, RoundUnderWay, RoundsPaused
        or NothingPublished.
        """
        return self._orders.open(RoundOrder(system, cohort, cohort_minimum, seconds, admission))

    def check_in(self, message: CheckIn) -> RoundOffer | None:
        """A place in the round under way, or None: no round, paused, full, over, another release or task, bad luck."""
        with reading_session(self._engine) as session:
            if not under_way(session):
                return None
        now = self._clock()
        with writing_session(self._engine) as session:
            for row in [] if is_paused(session) else under_way(session, to_change=True):
                manifest = RoundManifest.model_validate_json(row.manifest)
                fits = (
                    message.protocol == PROTOCOL_VERSION
                    and message.release == manifest.release
                    and manifest.task in message.tasks
                    and (manifest.terms is None or self.sums.takes_devices(session, manifest.round))
                )
                open_places = places(row.cohort, self._systems[row.system].offers) - count_joined(session, row)
                if not fits or open_places <= 0 or now >= row.closes_at or not admitted(row.admission):
                    continue
                pseudonym = draw_pseudonym()
                session.add(Participation(round=row.number, pseudonym=pseudonym, offered_at=now))
                return RoundOffer(manifest=manifest, pseudonym=pseudonym)
        return None

    def upload_limit_bytes(self, round_id: RoundId, pseudonym: Pseudonym) -> int:
        """The largest body this place may send, asked before the body is read.

        Raises UnknownRound, UnknownPseudonym or RoundClosed.
        """
        with reading_session(self._engine) as session:
            row = self._round(session, round_id)
            mine = place(session, row, pseudonym)
            _check_takes_updates(row)
            if mine.sha256 is None:
                self._check_open(session, row)
            return self._rules_of(row).limit_bytes

    def accept_update(self, round_id: RoundId, pseudonym: Pseudonym, content: bytes) -> UploadReceipt:
        """Take one update. The same bytes again get the same receipt, whatever has become of the round.

        Raises UnknownRound, UnknownPseudonym, UpdateConflict (other bytes before), RoundClosed (late, or the cohort is
        complete) or UpdateRefused (wrong tensors). The round goes on after any of them.
        """
        sha256 = digest(content)
        with reading_session(self._engine) as session:
            row = self._round(session, round_id)
            _check_takes_updates(row)
            if receipt := _earlier_receipt(round_id, place(session, row, pseudonym), sha256):
                return receipt
            self._check_open(session, row)
            rules = self._rules_of(row)
        rules.read(content)
        self._inbox.keep(round_id, pseudonym, content)
        with writing_session(self._engine) as session:
            row = self._round(session, round_id, to_change=True)
            mine = place(session, row, pseudonym)
            if receipt := _earlier_receipt(round_id, mine, sha256):
                return receipt
            self._check_open(session, row)
            mine.uploaded_at, mine.sha256, mine.size_bytes = self._clock(), sha256, len(content)
            if row.state == "open":
                row.state = advance("open", "updates")
        return UploadReceipt(round=round_id, sha256=sha256, duplicate=False)

    def status(self, round_id: RoundId) -> RoundStatus:
        """Progress anyone may see. Raises UnknownRound."""
        with reading_session(self._engine) as session:
            return round_status(session, self._round(session, round_id))

    def current(self) -> RoundStatus | None:
        """The round under way, if any."""
        with reading_session(self._engine) as session:
            rows = under_way(session)
            return round_status(session, rows[0]) if rows else None

    def history(self, limit: int = 100) -> list[RoundStatus]:
        """Rounds, newest first."""
        with reading_session(self._engine) as session:
            rows = session.scalars(select(Round).order_by(Round.number.desc()).limit(limit)).all()
            return [round_status(session, row) for row in rows]

    def spending(self) -> Spending:
        """What a device in all rounds would have spent."""
        return spending(self._engine)

    def cancel(self, round_id: RoundId, reason: str = "cancelled by the operator") -> RoundStatus:
        """End a round; its updates are thrown away. Raises UnknownRound, or IllegalTransition if it has ended."""
        status = self._fail(round_id, reason)
        self._forget_sum(round_id, reason)
        self._inbox.discard(round_id)
        return status

    async def tick(self) -> None:
        """`step` in a thread, so that the event loop goes on serving."""
        await asyncio.to_thread(self.step)

    def step(self) -> RoundStatus | None:
        """End the round under way if its time has come: complete, or past its deadline. Returns it if it was ended.

        What its conclusion orders is opened at once, what a server was killed before opening first of all, and what is
        scheduled at a tick of its own. A round whose updates can't be applied becomes failed, with the reason; anything
        unforeseen is raised besides.
        """
        with turn(self._engine, ENDING) as mine:
            if not mine:
                return None
            self._orders.open_waiting()
            ended = self._end_due()
            if ended is not None:
                self._orders.open_waiting()
            else:
                self.timetable.open_due()
            return ended

    def _end_due(self) -> RoundStatus | None:
        with reading_session(self._engine) as session:
            summing = next((row for row in under_way(session) if _is_sum(row)), None)
        if summing is not None:
            return self._step_sum(summing)
        with reading_session(self._engine) as session:
            due = next((row for row in under_way(session) if self._is_due(session, row)), None)
            if due is None:
                return None
            uploaded = count_uploaded(session, due)
        round_id = f"round-{due.number}"
        if uploaded < due.cohort_minimum:
            self._give_up(round_id, f"{uploaded} updates came until the deadline; the minimum is {due.cohort_minimum}")
        else:
            self._try_to_apply(due)
        self._inbox.discard(round_id)
        return self.status(round_id)

    def _is_due(self, session: Session, row: Round) -> bool:
        return self._clock() >= row.closes_at or count_uploaded(session, row) >= row.cohort

    def _try_to_apply(self, row: Round) -> None:
        round_id = f"round-{row.number}"
        try:
            rules = self._rules_of(row)
            spec = self._systems[row.system]
            settle(lambda: gather_updates(self._engine, self._inbox, rules, row, spec.centre), spec, self._room, row)
        except (OwnfeedError, OSError) as reason:
            self._give_up(round_id, str(reason))
        except Exception as unforeseen:
            self._give_up(round_id, f"unforeseen: {type(unforeseen).__name__}")
            raise

    def _step_sum(self, row: Round) -> RoundStatus | None:
        round_id = f"round-{row.number}"
        try:
            reason = self.sums.step(row)
        except (OwnfeedError, OSError) as refused:
            reason = str(refused)
        except Exception as unforeseen:
            self._end_sum(round_id, f"unforeseen: {type(unforeseen).__name__}")
            raise
        if reason is not None:
            self._end_sum(round_id, reason)
        status = self.status(round_id)
        return status if status.state in ("applied", "failed") else None

    def _end_sum(self, round_id: RoundId, reason: str) -> None:
        self._give_up(round_id, reason)
        self._forget_sum(round_id, reason)

    def _forget_sum(self, round_id: RoundId, reason: str) -> None:
        with reading_session(self._engine) as session:
            summed = _is_sum(self._round(session, round_id))
        if summed:
            self.sums.fail(round_id, reason)

    def _give_up(self, round_id: RoundId, reason: str) -> None:
        """Fail a round unless it has ended meanwhile, by the operator's hand: that reason stays then."""
        with suppress(IllegalTransition):
            self._fail(round_id, reason)

    def _fail(self, round_id: RoundId, reason: str) -> RoundStatus:
        with writing_session(self._engine) as session:
            row = self._round(session, round_id, to_change=True)
            row.state = advance(cast(RoundState, row.state), "failed")
            row.reason, row.finished_at = reason[:500], self._clock()
            session.flush()
            return round_status(session, row)

    def _round(self, session: Session, round_id: RoundId, *, to_change: bool = False) -> Round:
        row = session.get(Round, round_number(round_id), with_for_update=to_change)
        if row is None:
            raise UnknownRound
        return row

    def _check_open(self, session: Session, row: Round) -> None:
        if row.state not in UNDER_WAY:
            raise RoundClosed(f"The round is {row.state}.", field="round")
        if self._clock() >= row.closes_at:
            raise RoundClosed(
                "The update is late.", field="closes_at", limit=row.closes_at.isoformat(timespec="seconds")
            )
        if count_uploaded(session, row) >= row.cohort:
            raise RoundClosed("The cohort is complete.", field="cohort", limit=str(row.cohort))

    def _rules_of(self, row: Round) -> UploadRules:
        round_id = f"round-{row.number}"
        known = self._rules
        if known is None or known[0] != round_id:
            manifest = RoundManifest.model_validate_json(row.manifest)
            assert isinstance(manifest.protection, LocalLaplace)
            known = (round_id, UploadRules.of(manifest.shapes, manifest.protection))
            self._rules = known
        return known[1]


def _earlier_receipt(round_id: RoundId, mine: Participation, sha256: str) -> UploadReceipt | None:
    if mine.sha256 is None:
        return None
    if mine.sha256 != sha256:
        raise UpdateConflict
    return UploadReceipt(round=round_id, sha256=sha256, duplicate=True)


def _check_takes_updates(row: Round) -> None:
    if _is_sum(row):
        raise RoundClosed("The round takes masked vectors, and never a single update.", field="round")


def _is_sum(row: Round) -> bool:
    return RoundManifest.model_validate_json(row.manifest).terms is not None

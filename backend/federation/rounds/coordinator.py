"""Runs training rounds: opens them, offers places, and ends them; `plain` and `secure` take what comes.

Everything a round is stands in the database and on disk, so a coordinator that is killed at any point goes on after a
restart. Several processes may serve devices over one database and one folder; one of them at a time ends rounds.
Rounds that change the same follow one another (`queue`); others are under way side by side.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from backend.db.advisory_lock import advisory_lock
from backend.db.engine import reading, reading_session, writing_session
from backend.db.tables_federation import ParticipationRow, RoundRow
from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.errors import OwnfeedError, may_pass
from backend.federation.accounting.spending import Spending, spending
from backend.federation.deadlines import is_over
from backend.federation.errors import CheckInsTooOften, IllegalTransition, UnknownSystem
from backend.federation.gate_scores import Score, scores
from backend.federation.rounds.client_addresses import ClientAddresses
from backend.federation.rounds.context import RoundContextLoader
from backend.federation.rounds.finalising import end_unfinished
from backend.federation.rounds.opening import RoundOpener
from backend.federation.rounds.plain import PlainRounds
from backend.federation.rounds.polls import PollCounter
from backend.federation.rounds.queue import CANCELLED, RoundQueue
from backend.federation.rounds.records import (
    LOOKED,
    CheckIns,
    TurnedAway,
    any_under_way,
    check_ins,
    count_joined,
    find_round,
    has_ended,
    is_paused,
    is_sum,
    round_status,
    turn_away,
    under_way,
)
from backend.federation.rounds.retries import failure_of, forget_refused, is_refused
from backend.federation.rounds.scheduling import RoundScheduler
from backend.federation.rounds.secure import SecureRounds
from backend.federation.rounds.selection import admitted, draw_pseudonym, places
from backend.federation.rounds.states import UNDER_WAY, advance
from backend.federation.secagg.store import SecureSumStore
from backend.federation.strategies.clustering import Clustering, GroupMoves, last_moves
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems.system import SystemSpec
from backend.popularity.store import HALF_LIFE_HOURS
from backend.releases.store import ReleaseStore
from backend.storage.local_folder import LocalFolder
from backend.storage.object_store import ObjectStore
from device_app.wire.ids import PROTOCOL_VERSION, ReleaseId, RoundId, release_number, short_release
from device_app.wire.rounds import CheckIn, QueuedRound, RoundManifest, RoundOffer, RoundState, RoundStatus

_log = logging.getLogger(__name__)

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
        data_dir: of this machine, for what a round is made with.
        storage: for updates and running sums, shared by all machines; data_dir where it is None.
        clock: the time, in UTC; tests bring their own.
        held_out: share of their samples that devices leave to the release gate; 0 while there is none.
        addresses: bounds what one network address may take of a round; None bounds nothing.
        retries: how often a round that its members made fail is opened again (`retries`); 0: never.
        waits_for_devices: whether a round that is asked for waits until as many devices as it needs seem to wait.
        counts_half_life_hours: of private counts, where a round's popularity reads them.
    """

    def __init__(
        self,
        engine: Engine,
        releases: ReleaseStore,
        systems: Mapping[str, SystemSpec],
        data_dir: Path,
        clock: Callable[[], datetime] = utc_now,
        held_out: float = 0.0,
        addresses: ClientAddresses | None = None,
        retries: int = 0,
        waits_for_devices: bool = False,
        polls_per_device: float = 1.0,
        counts_half_life_hours: float = HALF_LIFE_HOURS,
        storage: ObjectStore | None = None,
        executor: ExecutorSettings = HERE,
    ) -> None:
        self._engine = engine
        self.addresses, self._retries = addresses, retries
        self._systems = systems
        self._clock = clock
        self._loader = RoundContextLoader(engine, releases, clock, data_dir, held_out, counts_half_life_hours, executor)
        storage = LocalFolder(data_dir) if storage is None else storage
        self.plain = PlainRounds(systems, storage.under("rounds"), self._loader)
        self.sums = SecureRounds(systems, SecureSumStore(engine, storage.under("sums"), clock), self._loader)
        places = 0 if addresses is None else addresses.rules.places
        self.polls = PollCounter(clock, engine, places=places, per_device=polls_per_device)
        waiting = self.polls.devices if waits_for_devices else None
        self._opener = RoundOpener(systems, self._loader, self.sums, waiting, self.polls)
        self._interrupted = False
        self._seen_under_way = frozenset[int]()
        self.scheduler = RoundScheduler(engine, self._opener, self.polls, clock)

    def open_round(
        self, system: str, *, cohort: int, cohort_minimum: int, seconds: float, admission: float = 1.0
    ) -> RoundStatus:
        """Open a round of `system` on the current release.

        It is applied when `cohort` updates have come, or after `seconds` with at least `cohort_minimum`. `admission` is
        the chance of each check-in to get a place. Raises UnknownSystem, RoundImpossible, RoundUnderWay, RoundsPaused
        or NothingPublished.
        """
        return self._opener.open(RoundRequest(system, cohort, cohort_minimum, seconds, admission))

    def open_or_queue(self, request: RoundRequest) -> RoundStatus | QueuedRound:
        """As `open_round`, but a round waits its turn where another one that changes the same is under way, and for its
        devices where this server's rounds do.

        Raises RoundQueueFull, and what `open_round` does except RoundUnderWay.
        """
        return self._opener.open_or_queue(request)

    @property
    def queue(self) -> RoundQueue:
        """The rounds that wait their turn."""
        return self._opener.queue

    def check_in(self, message: CheckIn, source: str | None = None) -> RoundOffer | None:
        """A place in the round that the message names, or None: it is over, paused, full, for another release or task,
        by bad luck, or as many places as its source (`ClientAddresses.source`) may have.

        A message of an earlier version names none, and means the oldest round under way. Raises CheckInsTooOften.
        """
        if self.addresses is not None and (wait_sec := self.addresses.seconds_to_wait(source)):
            raise CheckInsTooOften(self.addresses.rules.check_ins_per_minute, wait_sec)
        with reading(self._engine) as connection:
            if not any_under_way(connection):
                return None
        now = self._clock()
        with writing_session(self._engine) as session:
            for row in [] if is_paused(session) else _meant(message, under_way(session, to_change=True)):
                if row.system not in self._systems:
                    continue  # a server of another version gives its places
                manifest = RoundManifest.model_validate_json(row.manifest)
                if (why := self._why_turned_away(session, row, manifest, message, now)) is not None:
                    turn_away(row, why)
                    continue
                if not self._has_places_for(session, row, source):
                    row.places_refused += 1
                    continue
                pseudonym = draw_pseudonym()
                session.add(ParticipationRow(round=row.number, pseudonym=pseudonym, offered_at=now, source=source))
                return RoundOffer(manifest=manifest, pseudonym=pseudonym)
        return None

    def _why_turned_away(
        self, session: Session, row: RoundRow, manifest: RoundManifest, message: CheckIn, now: datetime
    ) -> TurnedAway | None:
        if message.protocol != PROTOCOL_VERSION or manifest.task not in message.tasks:
            return "task"
        # Rounds of counts read no release, as devices know that name the round.
        reads_release = message.round is None or self.queue.changes(row.system) == "release"
        if reads_release and message.release not in (manifest.release, short_release(manifest.release)):
            return "release"
        over = is_over(now, row.closes_at, row.closes_at - row.opened_at)
        if over or not (manifest.terms is None or self.sums.takes_devices(session, manifest.terms)):
            return "late"
        if places(row.cohort, self._systems[row.system].offers) <= count_joined(session, row):
            return "full"
        return None if admitted(row.admission) else "chance"

    def _has_places_for(self, session: Session, row: RoundRow, source: str | None) -> bool:
        """Whether the source has fewer places in this round than it may have."""
        if is_refused(session, row, source):
            return False
        limit = 0 if self.addresses is None else self.addresses.rules.places
        return source is None or not limit or count_joined(session, row, source) < limit

    def check_release(self, system: str) -> None:
        """Raises UnknownSystem, NothingPublished or RoundImpossible where the current release can't run a system."""
        self._opener.check_release(system)

    def check_ins(self, round_id: RoundId) -> CheckIns:
        """What became of check-ins that got no place. Raises UnknownRound."""
        with reading_session(self._engine) as session:
            return check_ins(find_round(session, round_id))

    def status(self, round_id: RoundId) -> RoundStatus:
        """Progress anyone may see. Raises UnknownRound."""
        with reading_session(self._engine) as session:
            return round_status(session, find_round(session, round_id))

    def current(self) -> RoundStatus | None:
        """The oldest round under way, if any."""
        return next(iter(self.open_rounds()), None)

    def open_rounds(self) -> list[RoundStatus]:
        """The rounds under way, oldest first."""
        with reading_session(self._engine) as session:
            return [round_status(session, row) for row in under_way(session)]

    def history(self, limit: int = 100) -> list[RoundStatus]:
        """Rounds, newest first."""
        with reading_session(self._engine) as session:
            rows = session.scalars(select(RoundRow).order_by(RoundRow.number.desc()).limit(limit)).all()
            return [round_status(session, row) for row in rows]

    def spending(self) -> Spending:
        """What a device in all rounds would have spent."""
        return spending(self._engine)

    def scores(self) -> list[Score]:
        """What the release gate has found, oldest first."""
        return scores(self._engine, {spec.gate.system for spec in self._systems.values() if spec.gate is not None})

    def group_moves(self, limit: int) -> list[GroupMoves]:
        """Between which groups of readers devices went, by the last clusterings, oldest first."""
        found = {name for name, spec in self._systems.items() if isinstance(spec.strategy, Clustering)}
        return last_moves(self._engine, found, limit)

    def cancel(self, round_id: RoundId, reason: str = CANCELLED) -> RoundStatus:
        """End a round; its updates are thrown away. Raises UnknownRound, or IllegalTransition if it has ended."""
        status = self._fail(round_id, reason)
        try:
            self._forget(round_id, reason)
            self._forget_sources()
        except (OwnfeedError, OSError):
            self._interrupted = True
            raise
        return status

    async def tick(self) -> None:
        """`step` in a thread, so that the event loop goes on serving."""
        await asyncio.to_thread(self.step)

    def step(self) -> RoundStatus | None:
        """End each round under way whose time has come: complete, or past its deadline. Returns the first that ended.

        What ends order is opened at once, and so is what waits for them; what a server was killed before opening first
        of all, and what is scheduled at a tick of its own. A round whose updates can't be applied becomes failed, with
        the reason; anything unforeseen is raised besides.
        """
        self.polls.tell()
        if self._interrupted or self.plain.interrupted or self.sums.is_unsettled:
            self._interrupted = False
            self._settle()
        with advisory_lock(self._engine, ENDING) as mine:
            if not mine:
                return None
            self._opener.open_waiting()
            ended = self._end_due()
            if ended is not None:
                self._opener.open_waiting()
            else:
                self.scheduler.open_due()
            return ended

    def _settle(self) -> None:
        """Do for rounds that have ended what the start does: whoever ended them may have been interrupted before."""
        try:
            self.plain.sweep()
            self.sums.settle()
            self._forget_sources()
        except BaseException:
            self._interrupted = True
            raise

    def _end_due(self) -> RoundStatus | None:
        with reading_session(self._engine) as session:
            rows = under_way(session)
        numbers = frozenset(row.number for row in rows)
        if self._seen_under_way - numbers:
            self._interrupted = True  # who has ended one may have been killed before what it left was removed
        self._seen_under_way = numbers
        ended = [self._end_if_due(row) for row in rows]
        return next((each for each in ended if each is not None), None)

    def _end_if_due(self, row: RoundRow) -> RoundStatus | None:
        """The round, if it has ended. While storage or database don't answer, or the disk is full, it waits, and the
        others are looked at."""
        try:
            return self._ended_if_due(row)
        except (OwnfeedError, OSError) as passing:
            if not may_pass(passing):
                raise
            _log.warning("round-%d waits: %s", row.number, passing)
            self._interrupted = True
            return None  # its time has come at the next step as well

    def _ended_if_due(self, row: RoundRow) -> RoundStatus | None:
        round_id = f"round-{row.number}"
        if self.queue.is_anothers(row.system, row.closes_at):
            return None
        try:
            if row.system not in self._systems:
                raise UnknownSystem(f"This version runs no system {row.system!r}.", field="system")
            reason = (self.sums if is_sum(row) else self.plain).step(row)
        except (OwnfeedError, OSError) as refused:
            if may_pass(refused):
                raise
            reason = str(refused)
        except Exception as unforeseen:
            self._give_up(round_id, f"unforeseen: {type(unforeseen).__name__}")
            raise
        if reason is not None:
            self._give_up(round_id, reason)
        with reading_session(self._engine) as session:
            if not has_ended(session, row.number):
                return None
        self.plain.forget(round_id)
        self._forget_sources()
        self._seen_under_way -= {row.number}
        return self.status(round_id)

    def _forget_sources(self) -> None:
        """Of rounds that have ended."""
        with writing_session(self._engine) as session:
            ended = select(RoundRow.number).where(RoundRow.state.not_in(UNDER_WAY))
            session.execute(
                update(ParticipationRow)
                .where(ParticipationRow.source.is_not(None), ParticipationRow.round.in_(ended))
                .values(source=None)
            )
            forget_refused(session)

    def _give_up(self, round_id: RoundId, reason: str) -> None:
        """Fail a round unless it has ended meanwhile, by the operator's hand: that reason stays then."""
        with suppress(IllegalTransition):
            self._fail(round_id, reason, self._retries)
        self._forget(round_id, reason)

    def _forget(self, round_id: RoundId, reason: str) -> None:
        """What a round that failed has left."""
        with reading_session(self._engine) as session:
            summed = is_sum(find_round(session, round_id))
        if summed:
            self.sums.fail(round_id, reason)
        else:
            self.plain.forget(round_id)

    def _fail(self, round_id: RoundId, reason: str, retries: int = 0) -> RoundStatus:
        """retries: how often it may be opened again, if its members have made it fail."""
        with reading_session(self._engine) as session:
            row = find_round(session, round_id)
            # A sum that has failed stays as it is, so what is read here holds in the transaction below.
            failure = failure_of(session, row, retries)
        looked = self.polls.waiting()

        def mark(session: Session, published: ReleaseId | None) -> None:
            mine = find_round(session, round_id, to_change=True)
            mine.state = advance(cast(RoundState, mine.state), "failed")
            mine.reason, mine.finished_at = reason[:500], self._clock()
            mine.check_ins = {**(mine.check_ins or {}), LOOKED: looked}
            mine.published = None if published is None else release_number(published)
            if failure is not None:
                mine.summary = failure.summary
                if failure.retry is not None:
                    session.add(failure.retry.row(mine.number))

        if failure is not None and failure.retry is not None:
            # What a failure does to the release waits for the last of the retries.
            with writing_session(self._engine) as session:
                mark(session, None)
            return self.status(round_id)
        context = self._loader.context_of(row)
        end_unfinished(self._systems.get(row.system), self._loader, context, f"{round_id}: {reason}", mark)
        return self.status(round_id)


def _meant(message: CheckIn, rows: Sequence[RoundRow]) -> Sequence[RoundRow]:
    """The round that a check-in is for, of those under way; the oldest where it names none."""
    if message.round is None:
        return rows[:1]
    return [row for row in rows if f"round-{row.number}" == message.round]

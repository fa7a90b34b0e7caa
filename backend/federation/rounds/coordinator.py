"""Run training rounds: open them, give devices places, and end them.

`plain` and `secure` receive the updates. The complete state of a round is in the database and on disk, so a coordinator
that is killed at any point continues after a restart. Several processes may serve devices over one database and one
folder; only one of them at a time ends rounds. Rounds that change the same state run one after another (`queue`); all
others run side by side.
"""

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
from backend.db.tables import ParticipationRow, RoundRow
from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.errors import OwnfeedError, may_pass
from backend.federation.accounting import Spending, spending
from backend.federation.deadlines import is_over
from backend.federation.errors import CheckInsTooOften, IllegalTransition, UnknownSystem
from backend.federation.rounds.finalize import RoundContextLoader, end_unfinished
from backend.federation.rounds.opening import RoundOpener, failure_of, forget_refused, is_refused
from backend.federation.rounds.plain import PlainRounds
from backend.federation.rounds.queue import CANCELLED, RoundQueue
from backend.federation.rounds.records import (
    POLLS,
    UNDER_WAY,
    CheckIns,
    TurnedAway,
    advance,
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
from backend.federation.rounds.scheduling import RoundScheduler
from backend.federation.rounds.secure import SecureRounds
from backend.federation.rounds.selection import ClientAddresses, PollCounter, admitted, draw_pseudonym, places
from backend.federation.secagg.sum_store import SecureSumStore
from backend.federation.strategies.grouped import Clustering, GroupMoves, last_moves
from backend.federation.strategies.release_gate import Score, scores
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems.composition import SystemSpec
from backend.popularity.store import HALF_LIFE_HOURS
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder, ObjectStore
from protocol.ids import PROTOCOL_VERSION, ReleaseId, RoundId, release_number, short_release
from protocol.rounds import CheckIn, QueuedRound, RoundManifest, RoundOffer, RoundState, RoundStatus

_log = logging.getLogger(__name__)

ENDING = "rounds"
"""Name of the lock of the process that closes stages and ends rounds."""


def utc_now() -> datetime:
    """Return the current time in UTC; the default clock."""
    return datetime.now(UTC)


class Coordinator:
    """Runs the rounds of all systems on the server.

    Args:
        engine: a migrated database.
        releases: where rounds read weights and publish new ones.
        systems: the systems that can be run, by name.
        data_dir: folder of this machine for files that rounds need.
        storage: holds updates and running sums, shared by all machines; None: data_dir.
        clock: returns the time in UTC; tests pass their own.
        held_out: share of its samples that a device reserves for the release gate; 0 disables the gate.
        addresses: limits for one network address; None: no limits.
        retries: how often a round that failed because of its members is opened again; 0: never.
        waits_for_devices: whether a requested round waits until enough devices seem to be waiting for it.
        counts_half_life_hours: half-life of the private counts, for rounds that read popularity.
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

        The round is applied once `cohort` updates have arrived, or after `seconds` if there are at least
        `cohort_minimum`. `admission` is the probability that a check-in gets a place. Raises UnknownSystem,
        RoundImpossible, RoundUnderWay, RoundsPaused or NothingPublished.
        """
        return self._opener.open(RoundRequest(system, cohort, cohort_minimum, seconds, admission))

    def open_or_queue(self, request: RoundRequest) -> RoundStatus | QueuedRound:
        """Open a round, or queue it while a round that changes the same state is under way.

        If this server waits for devices, the round also waits until there are enough. Raises RoundQueueFull, and
        everything that `open_round` raises except RoundUnderWay.
        """
        return self._opener.open_or_queue(request)

    @property
    def queue(self) -> RoundQueue:
        """The queue of waiting rounds."""
        return self._opener.queue

    def check_in(self, message: CheckIn, source: str | None = None) -> RoundOffer | None:
        """Give a device a place in the round that its message names; returns None if it gets none.

        A device gets no place if the round is over, paused or full, uses another release or task, if the device was not
        drawn, or if its source (`ClientAddresses.source`) already has as many places as it may.

        A message that names no round means the oldest round that gives a place. Raises CheckInsTooOften.
        """
        if self.addresses is not None and (wait_sec := self.addresses.seconds_to_wait(source)):
            raise CheckInsTooOften(self.addresses.rules.check_ins_per_minute, wait_sec)
        with reading(self._engine) as connection:
            if not any_under_way(connection):
                return None
        now = self._clock()
        with writing_session(self._engine) as session:
            for row in [] if is_paused(session) else _named_or_oldest(message, under_way(session, to_change=True)):
                if row.system not in self._systems:
                    continue  # the next step will fail the round
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
        reads_release = self.queue.changes(row.system) == "release"  # rounds of counts read none
        if reads_release and message.release != short_release(manifest.release):
            return "release"
        over = is_over(now, row.closes_at, row.closes_at - row.opened_at)
        if over or not (manifest.terms is None or self.sums.takes_devices(session, manifest.terms)):
            return "late"
        if places(row.cohort, self._systems[row.system].offers) <= count_joined(session, row):
            return "full"
        return None if admitted(row.admission) else "chance"

    def _has_places_for(self, session: Session, row: RoundRow, source: str | None) -> bool:
        """Return whether the source may take another place in this round."""
        if is_refused(session, row, source):
            return False
        limit = 0 if self.addresses is None else self.addresses.rules.places
        return source is None or not limit or count_joined(session, row, source) < limit

    def check_release(self, system: str) -> None:
        """Raise if the current release can't run this system.

        The error is UnknownSystem, NothingPublished or RoundImpossible.
        """
        self._opener.check_release(system)

    def check_ins(self, round_id: RoundId) -> CheckIns:
        """Return how many check-ins got no place, by reason. Raises UnknownRound."""
        with reading_session(self._engine) as session:
            return check_ins(find_round(session, round_id))

    def status(self, round_id: RoundId) -> RoundStatus:
        """Return the public progress of a round. Raises UnknownRound."""
        with reading_session(self._engine) as session:
            return round_status(session, find_round(session, round_id))

    def current(self) -> RoundStatus | None:
        """Return the oldest round under way, if any."""
        return next(iter(self.open_rounds()), None)

    def open_rounds(self) -> list[RoundStatus]:
        """Return the rounds under way, oldest first."""
        with reading_session(self._engine) as session:
            return [round_status(session, row) for row in under_way(session)]

    def history(self, limit: int = 100) -> list[RoundStatus]:
        """Return past and present rounds, newest first."""
        with reading_session(self._engine) as session:
            rows = session.scalars(select(RoundRow).order_by(RoundRow.number.desc()).limit(limit)).all()
            return [round_status(session, row) for row in rows]

    def spending(self) -> Spending:
        """Return the privacy cost of a device that took part in every round."""
        return spending(self._engine)

    def scores(self) -> list[Score]:
        """Return the scores of the release gate, oldest first."""
        return scores(self._engine, {spec.gate.system for spec in self._systems.values() if spec.gate is not None})

    def group_moves(self, limit: int) -> list[GroupMoves]:
        """Return the devices' moves between groups in the last `limit` clusterings, oldest first."""
        found = {name for name, spec in self._systems.items() if isinstance(spec.strategy, Clustering)}
        return last_moves(self._engine, found, limit)

    def cancel(self, round_id: RoundId, reason: str = CANCELLED) -> RoundStatus:
        """End a round and delete its updates.

        Raises UnknownRound, or IllegalTransition if it has ended.
        """
        status = self._fail(round_id, reason)
        try:
            self._forget(round_id, reason)
            self._forget_sources()
        except (OwnfeedError, OSError):
            self._interrupted = True
            raise
        return status

    async def tick(self) -> None:
        """Run `step` in a thread so that the event loop keeps serving requests."""
        await asyncio.to_thread(self.step)

    def step(self) -> RoundStatus | None:
        """End each round under way that is complete or past its deadline.

        Returns the first that ended. Rounds ordered by the end of another round are opened at once, and so are rounds
        that were waiting for it. If the server was killed before it opened an ordered round, that one is opened first.
        Scheduled rounds are opened in a tick of their own. A round whose updates can't be applied fails, and its row
        states the reason; unforeseen errors are also raised.
        """
        self.polls.publish()
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
        """Clean up after rounds that have ended, as at the start.

        The process that ended them may have been interrupted.
        """
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
            self._interrupted = True  # the process that ended a round may have been killed before its cleanup
        self._seen_under_way = numbers
        ended = [self._end_if_due(row) for row in rows]
        return next((each for each in ended if each is not None), None)

    def _end_if_due(self, row: RoundRow) -> RoundStatus | None:
        """Return the round if it has ended, else None.

        If the storage or the database does not answer or the disk is full, the round waits and the others are
        processed.
        """
        try:
            return self._ended_if_due(row)
        except (OwnfeedError, OSError) as passing:
            if not may_pass(passing):
                raise
            _log.warning("round-%d waits: %s", row.number, passing)
            self._interrupted = True
            return None  # the next step tries again

    def _ended_if_due(self, row: RoundRow) -> RoundStatus | None:
        round_id = f"round-{row.number}"
        try:
            if row.system not in self._systems:
                raise UnknownSystem(f"This version has no system {row.system!r}.", field="system")
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
        """Erase the address hashes of rounds that have ended."""
        with writing_session(self._engine) as session:
            ended = select(RoundRow.number).where(RoundRow.state.not_in(UNDER_WAY))
            session.execute(
                update(ParticipationRow)
                .where(ParticipationRow.source.is_not(None), ParticipationRow.round.in_(ended))
                .values(source=None)
            )
            forget_refused(session)

    def _give_up(self, round_id: RoundId, reason: str) -> None:
        """Fail a round, unless the operator has ended it meanwhile.

        Then the operator's reason stays.
        """
        with suppress(IllegalTransition):
            self._fail(round_id, reason, self._retries)
        self._forget(round_id, reason)

    def _forget(self, round_id: RoundId, reason: str) -> None:
        """Delete what a failed round has left."""
        with reading_session(self._engine) as session:
            summed = is_sum(find_round(session, round_id))
        if summed:
            self.sums.fail(round_id, reason)
        else:
            self.plain.forget(round_id)

    def _fail(self, round_id: RoundId, reason: str, retries: int = 0) -> RoundStatus:
        """Fail a round; `retries`: how often it may be opened again if its members made it fail."""
        with reading_session(self._engine) as session:
            row = find_round(session, round_id)
            # A failed sum never changes again, so what is read here still holds in the transaction below.
            failure = failure_of(session, row, retries)
        polls = self.polls.waiting()

        def mark(session: Session, published: ReleaseId | None) -> None:
            mine = find_round(session, round_id, to_change=True)
            mine.state = advance(cast(RoundState, mine.state), "failed")
            mine.reason, mine.finished_at = reason[:500], self._clock()
            mine.check_ins = {**(mine.check_ins or {}), POLLS: polls}
            mine.published = None if published is None else release_number(published)
            if failure is not None:
                mine.summary = failure.summary
                if failure.retry is not None:
                    session.add(failure.retry.row(mine.number))

        if failure is not None and failure.retry is not None:
            # A failure affects the release only after the last retry.
            with writing_session(self._engine) as session:
                mark(session, None)
            return self.status(round_id)
        context = self._loader.context_of(row)
        end_unfinished(self._systems.get(row.system), self._loader, context, f"{round_id}: {reason}", mark)
        return self.status(round_id)


def _named_or_oldest(message: CheckIn, rows: Sequence[RoundRow]) -> Sequence[RoundRow]:
    """Return the rounds under way that a check-in may mean: the one it names, or the oldest."""
    if message.round is None:
        return rows[:1]
    return [row for row in rows if f"round-{row.number}" == message.round]

"""Opening rounds: those asked for now, those that another round's end has ordered, and those that waited their turn."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db.advisory_lock import wait_for_lock
from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import FollowUpRow, QueuedRoundRow, RoundRow
from backend.errors import OwnfeedError, may_pass
from backend.federation.errors import NoLongerWaiting, RoundImpossible, RoundsPaused, RoundUnderWay, UnknownSystem
from backend.federation.protections.registry import resolve
from backend.federation.rounds.context import RoundContextLoader
from backend.federation.rounds.finalising import end_unfinished
from backend.federation.rounds.polls import PollCounter
from backend.federation.rounds.queue import RoundQueue, follow_ups, waiting
from backend.federation.rounds.records import is_paused, round_status
from backend.federation.rounds.secure import SecureRounds
from backend.federation.strategies.robust_mean import STACK_LIMIT_BYTES
from backend.federation.strategies.strategy import ChecksCohort, ChecksReliability, Plan, RoundRequest
from backend.federation.systems.system import SystemSpec
from device_app.wire.ids import ReleaseId, release_number
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rounds import MATERIALS_LIMIT_BYTES, UPLOAD_LIMIT_BYTES, QueuedRound, RoundManifest, RoundStatus

_log = logging.getLogger(__name__)

COHORT_LIMIT = 100_000
COHORT_DEFAULT = 60
MINIMUM_DEFAULT = 10
"""Updates without which a round fails, where nobody says another number. It's what a group of a cohort needs as well
(`joined_sums.JoinOfSums`): half of a cohort instead would make every round one sum, whoever opens it."""
SECONDS_LIMIT = 7 * 24 * 3_600.0
OPENING = "open a round"


class RoundOpener:
    """Makes rounds of requests; of those that change the same, at most one is under way at a time.

    devices: how many seem to wait for a round, where those that are asked for wait for as many as they need; None: a
    round opens however few there are. polls: the questions of those that wait, of which a round may take a share.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemSpec],
        loader: RoundContextLoader,
        sums: SecureRounds,
        devices: Callable[[], int] | None = None,
        polls: PollCounter | None = None,
    ) -> None:
        self._systems, self._loader, self._sums, self._polls = systems, loader, sums, polls
        self.queue = RoundQueue(loader.engine, systems, loader.clock, devices)

    def open(self, request: RoundRequest) -> RoundStatus:
        """Open a round on the current release, or the one that a system begins with.

        Raises UnknownSystem, RoundImpossible, NothingPublished, RoundsPaused, or RoundUnderWay, also while a follow-up
        or a round of the queue that changes the same waits.
        """
        return self._open(self._beginning(request), None)

    def open_or_queue(self, request: RoundRequest) -> RoundStatus | QueuedRound:
        """Open a round, or let it wait for those that change the same, or for devices. Raises as `open`, or
        RoundQueueFull."""
        if self.queue.too_few(request) is None:
            with suppress(RoundUnderWay):
                return self.open(request)
        else:
            self.check(request)
        with writing_session(self._loader.engine) as session:
            wait_for_lock(session, OPENING)
            if is_paused(session):
                raise RoundsPaused
            number = self.queue.add(session, request)
        return self.queue.get(number)

    def check(self, request: RoundRequest) -> None:
        """Raises what `open` would for this request, whatever is under way."""
        _check_request(request)
        self.check_release(request.system)
        if request.participation is None:
            _check_cohort(self._spec(self._beginning(request).system), request.cohort)

    def check_release(self, system: str) -> None:
        """Raises UnknownSystem, NothingPublished or RoundImpossible where the current release lacks its model."""
        spec = self._spec(system)
        self._check_possible(self._loader.releases.require_current(), spec)

    def _sized(self, request: RoundRequest) -> RoundRequest:
        """With the cohort that its participation comes to now, one device at least: a share of the devices, each of
        which is drawn at each of its questions."""
        if request.participation is None:
            return request
        devices = self._polls.devices() if self._polls else 0
        cohort = min(COHORT_LIMIT, max(1, round(request.participation * devices)))
        minimum = min(request.cohort_minimum, cohort)
        return replace(
            request,
            cohort=cohort,
            cohort_minimum=minimum,
            admission=self._polls.fair_chance(cohort) if self._polls else 1.0,
        )

    def why_not(self, request: RoundRequest, devices: int) -> str | None:
        """Why a round that so many devices wait for would tell nothing, or None. Raises UnknownSystem."""
        spec = self._spec(request.system)
        judge = spec.strategy
        return judge.why_not(spec, self._loader.engine, devices) if isinstance(judge, ChecksReliability) else None

    def open_waiting(self) -> RoundStatus | None:
        """Open what ends have ordered, then what waits in the queue, where nothing under way changes the same: each
        once, however often the server is killed. Returns the first that was opened.

        It is judged anew, on the release that is current now. What can't be opened is given up, with the reason in its
        row; anything unforeseen is raised besides. While storage or database don't answer, or the disk is full, it goes
        on waiting.
        """
        with reading_session(self._loader.engine) as session:
            ends = [(each, session.get_one(RoundRow, each.after).finished_at) for each in follow_ups(session)]
            ordered = [(each.after, request) for each, ended in ends if (request := self._own(each.request, ended))]
            asked = waiting(session)
            queued = [(each.number, request) for each in asked if (request := self._own(each.request, each.queued_at))]
        opened = [
            self._open_turn(request, partial(self._give_up, after, request), follows=after)
            for after, request in ordered
        ]
        opened += [
            self._open_turn(request, partial(self.queue.give_up, number), queued=number) for number, request in queued
        ]
        return next((each for each in opened if each is not None), None)

    def _own(self, text: str, since: datetime | None) -> RoundRequest | None:
        """A request of a row; None while it is left to servers of another version."""
        request = RoundRequest.from_json(text)
        left = since is not None and self.queue.is_anothers(request.system, since)
        return None if left else request

    def _open_turn(
        self,
        request: RoundRequest,
        give_up: Callable[[str], object],
        *,
        follows: int | None = None,
        queued: int | None = None,
    ) -> RoundStatus | None:
        """Open one whose turn it may be; give_up: is told why it can't be opened at all."""
        try:
            return self._opened_in_turn(request, give_up, follows, queued)
        except (OwnfeedError, OSError) as passing:
            if not may_pass(passing):
                raise
            what = f"number {queued} of the queue" if follows is None else f"the round after round-{follows}"
            _log.warning("%s waits: %s", what, passing)
            return None  # the others are looked at; its turn comes at the next step as well

    def _opened_in_turn(
        self, request: RoundRequest, give_up: Callable[[str], object], follows: int | None, queued: int | None
    ) -> RoundStatus | None:
        with reading_session(self._loader.engine) as session:
            # Asked again in the transaction that opens it; planning takes a while, and most ticks it isn't its turn.
            held = is_paused(session) or self.queue.held_by(
                session, self.queue.changes(request.system), follows=follows, queued=queued
            )
        if held or (queued is not None and self.queue.too_few(request) is not None):
            return None
        try:
            return self._open(request if queued is None else self._beginning(request), follows, queued)
        except (RoundUnderWay, RoundsPaused):
            return None
        except OwnfeedError as refused:
            if may_pass(refused):
                raise
            reason = str(refused)
        except Exception as unforeseen:
            if may_pass(unforeseen):
                raise
            give_up(f"unforeseen: {type(unforeseen).__name__}")
            raise
        with suppress(NoLongerWaiting):  # taken out of the queue meanwhile
            give_up(reason)
        return None

    def _beginning(self, request: RoundRequest) -> RoundRequest:
        """The request for the round that a system begins with. Raises as `check_release`."""
        wanted = self._systems.get(request.system)
        if wanted is None or wanted.begins_with is None:
            return request
        self._check_possible(self._loader.releases.require_current(), wanted)
        return replace(request, system=wanted.begins_with)

    def _open(self, request: RoundRequest, follows: int | None, queued: int | None = None) -> RoundStatus:
        spec = self._spec(request.system)
        _check_request(request)
        request = self._sized(request)
        release = self._loader.releases.require_current()
        self._check_possible(release, spec)
        _check_cohort(spec, request.cohort)
        plan = spec.strategy.plan(spec, self._loader.context(release, request, follows))
        _check_plan(plan)
        held = 4 * _coordinates(plan) * request.cohort
        if spec.centre is not None and held > STACK_LIMIT_BYTES:
            raise RoundImpossible(
                "A robust mean holds all updates at once, and these are too many.",
                field="cohort",
                limit=f"{STACK_LIMIT_BYTES // (4 * _coordinates(plan))} devices",
            )
        now = self._loader.clock()
        with writing_session(self._loader.engine) as session:
            wait_for_lock(session, OPENING)
            if is_paused(session):
                raise RoundsPaused
            if ahead := self.queue.held_by(session, spec.changes, follows=follows, queued=queued):
                raise RoundUnderWay(ahead)
            number = (session.scalar(select(func.max(RoundRow.number))) or 0) + 1
            manifest = RoundManifest(
                round=f"round-{number}",
                release=release.release,
                system=spec.name,
                task=spec.task,
                model=spec.model if plan.model is None else plan.model,
                shapes=dict(plan.shapes),
                materials=dict(plan.materials),
                follows=None if follows is None else f"round-{follows}",
                protection=spec.protection,
                negatives=spec.negatives,
                samples_limit=spec.samples_limit,
                held_out=self._loader.held_out,
                dropout=spec.dropout,
                closes_at=now + timedelta(seconds=request.seconds),
                terms=resolve(spec.protection).terms(
                    f"round-{number}",
                    cohort=request.cohort,
                    cohort_minimum=request.cohort_minimum,
                    coordinates=_coordinates(plan),
                ),
            )
            row = RoundRow(
                number=number,
                system=spec.name,
                state="open",
                release=release_number(release.release),
                manifest=manifest.model_dump_json(),
                cohort=request.cohort,
                cohort_minimum=request.cohort_minimum,
                admission=request.admission,
                opened_at=now,
                closes_at=manifest.closes_at,
                follows=follows,
            )
            session.add(row)
            session.flush()
            if manifest.terms is not None:
                self._sums.begin(session, manifest.terms, request.seconds, spec.join)
            if follows is not None:
                session.get_one(FollowUpRow, follows).opened = number
            if queued is not None:
                session.get_one(QueuedRoundRow, queued).opened = number
            session.flush()
            return round_status(session, row)

    def _spec(self, system: str) -> SystemSpec:
        spec = self._systems.get(system)
        if spec is None:
            raise UnknownSystem("This server runs other systems.", field="system", limit=", ".join(self._systems))
        return spec

    def _give_up(self, after: int, request: RoundRequest, reason: str) -> None:
        def mark(session: Session, published: ReleaseId | None) -> None:
            given_up = session.get_one(FollowUpRow, after)
            given_up.reason, given_up.refused_sources = reason, None

        context = self._loader.context(self._loader.releases.require_current(), request, after)
        end_unfinished(self._systems.get(request.system), self._loader, context, reason, mark)

    def _check_possible(self, release: ReleaseManifest, spec: SystemSpec) -> None:
        if not _has_model(release, spec):
            raise RoundImpossible(
                f"Release {release.release} has no trainable model {spec.model!r} of architecture "
                f"{spec.architecture!r}.",
                field="system",
                limit=", ".join(
                    name for name, each in self._systems.items() if each.model is not None and _has_model(release, each)
                ),
            )


def minimum_of(cohort: int, wanted: int | None) -> int:
    """The cohort minimum that counts: the one wanted, else the default, or all of a cohort that is smaller."""
    return min(MINIMUM_DEFAULT, cohort) if wanted is None else wanted


def round_request(
    systems: Mapping[str, SystemSpec],
    system: str,
    *,
    seconds: float,
    cohort: int | None = None,
    cohort_minimum: int | None = None,
    admission: float = 1.0,
    participation: float | None = None,
) -> RoundRequest:
    """The request for a round of which the operator says this much: how many devices is left to `participation`, else
    to `cohort`, else to the system's own rate, else it is the usual number."""
    if cohort is None and participation is None and system in systems:
        participation = systems[system].participation
    wanted = COHORT_DEFAULT if cohort is None else cohort
    minimum = minimum_of(wanted, cohort_minimum)
    return RoundRequest(system, wanted, minimum, seconds, admission, participation)


def _check_request(request: RoundRequest) -> None:
    _check("cohort", 1 <= request.cohort <= COHORT_LIMIT, f"1 to {COHORT_LIMIT}")
    _check("cohort_minimum", 1 <= request.cohort_minimum <= request.cohort, "1 to the cohort")
    _check("seconds", 0 < request.seconds <= SECONDS_LIMIT, f"above 0, at most {SECONDS_LIMIT:g}")
    _check("admission", 0 < request.admission <= 1, "above 0, at most 1")
    share = request.participation
    _check("participation", share is None or 0 < share <= 1, "above 0, at most 1")


def _check_cohort(spec: SystemSpec, cohort: int) -> None:
    if isinstance(spec.strategy, ChecksCohort):
        spec.strategy.check_cohort(spec, cohort)


def _check_plan(plan: Plan) -> None:
    coordinates = _coordinates(plan)
    _check("system", 1 <= coordinates <= UPLOAD_LIMIT_BYTES // 4, f"1 to {UPLOAD_LIMIT_BYTES // 4} numbers an update")
    size_bytes = sum(ref.size_bytes for ref in plan.materials.values())
    _check("system", size_bytes <= MATERIALS_LIMIT_BYTES, f"at most {MATERIALS_LIMIT_BYTES} bytes of materials")


def _coordinates(plan: Plan) -> int:
    return sum(math.prod(shape) for shape in plan.shapes.values())


def _check(field: str, fits: bool, limit: str) -> None:
    if not fits:
        raise RoundImpossible(f"{field} is out of its limits.", field=field, limit=limit)


def _has_model(release: ReleaseManifest, spec: SystemSpec) -> bool:
    """Whether the release has the system's model with the graph the task needs; true of a system without a model."""
    if spec.model is None:
        return True
    entry = release.models.get(spec.model)
    return (
        entry is not None
        and entry.architecture == spec.architecture
        and spec.graph in entry.graphs
        and entry.weights is not None
    )

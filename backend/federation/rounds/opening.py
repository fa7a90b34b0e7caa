"""Open rounds: requested, ordered by the end of another round, or from the queue.

A round that failed because of its members is opened again without those known to be malicious. Malicious members can be
refused only if they have a network address.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from backend.db.advisory_lock import wait_for_lock
from backend.db.engine import reading_session, writing_session
from backend.db.tables import FollowUpRow, ParticipationRow, QueuedRoundRow, RoundRow, SecureSumRow
from backend.errors import OwnfeedError, may_pass
from backend.federation.errors import NoLongerWaiting, RoundImpossible, RoundsPaused, RoundUnderWay, UnknownSystem
from backend.federation.protections.registry import resolve
from backend.federation.rounds.finalize import RoundContextLoader, end_unfinished, request_of
from backend.federation.rounds.queue import RoundQueue, follow_ups, waiting
from backend.federation.rounds.records import UNDER_WAY, is_paused, round_status
from backend.federation.rounds.secure import SecureRounds
from backend.federation.rounds.selection import PollCounter
from backend.federation.secagg.graph import threshold_of
from backend.federation.secagg.messages import SumRecord
from backend.federation.strategies.fedavg import STACK_LIMIT_BYTES
from backend.federation.strategies.strategy import ChecksCohort, ChecksReliability, Plan, RoundRequest
from backend.federation.systems.composition import SystemSpec
from protocol.formatting import plural
from protocol.ids import ReleaseId, release_number
from protocol.releases import ReleaseManifest
from protocol.rounds import MATERIALS_LIMIT_BYTES, UPLOAD_LIMIT_BYTES, QueuedRound, RoundManifest, RoundStatus

REFUSED_SHARE = 1 / 3
"""The largest number of refused sources, as a share of the cohort's places.

If more members than that are malicious, no sum can be opened anyway, and every further source may be that of an honest
reader whom malicious members have framed.
"""


@dataclass(frozen=True)
class Retry:
    """A retry of a failed round.

    Args:
        request: the request of the failed round.
        number: 1 for the first retry of a round.
        refused: sources (`ClientAddresses.source`) that get no place in it, those named last first.
    """

    request: RoundRequest
    number: int
    refused: tuple[str, ...]

    def row(self, after: int) -> FollowUpRow:
        """Return the request's row for the transaction that ends the failed round."""
        return FollowUpRow(
            after=after, request=self.request.to_json(), retries=self.number, refused_sources=list(self.refused)
        )


@dataclass(frozen=True)
class Failure:
    """What follows from a failure caused by members: a sentence for people, and any retry."""

    summary: str
    retry: Retry | None = None


def failure_of(session: Session, row: RoundRow, limit: int) -> Failure | None:
    """Decide what to do about a round whose sum has failed.

    Returns None if its members did not cause the failure, or if `limit` is 0. A round is opened again at most `limit`
    times. If no malicious member could be named, or none of them has a limited address, the same members could take
    part again, so the round is retried only once. Sources stay refused in all retries of
    the round; those named last come first, and at most REFUSED_SHARE of the cohort is refused.
    `secagg.unmask` and `secagg.complaints` name malicious members.
    """
    found = session.scalar(
        select(SecureSumRow.record).where(SecureSumRow.name == f"round-{row.number}", SecureSumRow.stage == "failed")
    )
    record = None if found is None else SumRecord.model_validate_json(found)
    if not limit or record is None or not record.by_members:
        return None
    before = follow_up_of(session, row)
    number = 1 + (0 if before is None else before.retries)
    refused = [] if before is None else list(before.refused_sources or ())
    fresh = sorted(_sources(session, row, record.malicious).difference(refused))
    named = (
        f"Members known to be malicious: {len(record.malicious)}."
        if record.malicious
        else "It is unknown which members were malicious or dropped out."
    )
    if number > limit:
        return Failure(
            f"{named} The round was already opened again as often as the setting round_retries allows ({limit})."
        )
    if not fresh and number > 1:
        return Failure(f"{named} The round is not opened again, since the same members could take part.")
    without = (
        f"without the {plural(len(fresh), 'address', 'addresses')} of these members"
        if fresh
        else "once, and the same members may take part"
    )
    kept = (*fresh, *refused)[: max(1, int(row.cohort * REFUSED_SHARE))]
    return Failure(f"{named} The round is opened again {without}.", Retry(request_of(row), number, kept))


def follow_up_of(session: Session, row: RoundRow) -> FollowUpRow | None:
    """Return the follow-up that opened the round.

    Returns None if the operator or the schedule opened it.
    """
    return session.scalars(select(FollowUpRow).where(FollowUpRow.opened == row.number)).first()


def is_refused(session: Session, row: RoundRow, source: str | None) -> bool:
    """Return whether the source is refused for a malicious member in the failed round."""
    follow_up = None if source is None else follow_up_of(session, row)
    return follow_up is not None and source in (follow_up.refused_sources or ())


def forget_refused(session: Session) -> None:
    """Erase the sources of retries that have ended or were given up."""
    ended = select(RoundRow.number).where(RoundRow.state.not_in(UNDER_WAY))
    session.execute(
        update(FollowUpRow)
        .where(
            FollowUpRow.refused_sources.is_not(None),
            or_(FollowUpRow.opened.in_(ended), FollowUpRow.reason.is_not(None)),
        )
        .values(refused_sources=None)
        .execution_options(synchronize_session=False)
    )


def _sources(session: Session, row: RoundRow, pseudonyms: tuple[str, ...]) -> set[str]:
    found = session.scalars(
        select(ParticipationRow.source).where(
            ParticipationRow.round == row.number,
            ParticipationRow.pseudonym.in_(pseudonyms),
            ParticipationRow.source.is_not(None),
        )
    )
    return {source for source in found if source is not None}


_log = logging.getLogger(__name__)

COHORT_LIMIT = 100_000
COHORT_DEFAULT = 60
MINIMUM_DEFAULT = 10
"""The default cohort minimum: with fewer updates a round fails.

A group of a cohort needs as many (`joined_sums.JoinOfSums`). If the default were half of the cohort, every round would
be a single sum.
"""
SECONDS_LIMIT = 7 * 24 * 3_600.0
OPENING = "open a round"


class RoundOpener:
    """Opens requested rounds.

    Of the rounds that change the same state, at most one is under way at a time.

    devices: returns how many devices seem to be waiting, if requested rounds wait for enough of them; None: a round
    opens regardless of their number. polls: counts the polls of waiting devices, so that a round can take a share of
    them.
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
        """Open a round on the current release, or the round that a system begins with.

        Raises UnknownSystem, RoundImpossible, NothingPublished, RoundsPaused, or RoundUnderWay. The last is also raised
        while a follow-up or a queued round that changes the same state is waiting.
        """
        return self._open(self._beginning(request), None)

    def open_or_queue(self, request: RoundRequest) -> RoundStatus | QueuedRound:
        """Open a round, or queue it until no round changes the same state and enough devices wait.

        Raises RoundQueueFull, and whatever `open` raises except RoundUnderWay.
        """
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
        """Raise what `open` would raise for this request, apart from rounds under way."""
        _check_request(request)
        self.check_release(request.system)
        if request.participation is None:
            _check_cohort(self._spec(self._beginning(request).system), request.cohort)

    def check_release(self, system: str) -> None:
        """Raise UnknownSystem, NothingPublished or RoundImpossible if the release lacks the model."""
        spec = self._spec(system)
        self._check_possible(self._loader.releases.require_current(), spec)

    def _sized(self, request: RoundRequest) -> RoundRequest:
        """Return the request with the cohort that its participation rate gives now, at least one device.

        The rate is a share of the waiting devices, and a device may be drawn at each of its polls.
        """
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
        """Return why a round with this many waiting devices would give no result, or None.

        Raises UnknownSystem.
        """
        spec = self._spec(request.system)
        judge = spec.strategy
        return judge.why_not(spec, self._loader.engine, devices) if isinstance(judge, ChecksReliability) else None

    def open_waiting(self) -> RoundStatus | None:
        """Open the rounds that ended rounds have ordered, then those in the queue.

        Returns the first round that it opened. A round opens only if no round under way changes the same state, and
        each opens once, however often the server is killed. Its request is checked again on the release that is current
        now. A round that can't be opened is given up, and its row states the reason; unforeseen errors are also raised.
        While the storage or the database does not answer or the disk is full, the round keeps waiting.
        """
        with reading_session(self._loader.engine) as session:
            ordered = [(each.after, RoundRequest.from_json(each.request)) for each in follow_ups(session)]
            queued = [(each.number, RoundRequest.from_json(each.request)) for each in waiting(session)]
        opened = [
            self._try_open(request, partial(self._give_up, after, request), follows=after) for after, request in ordered
        ]
        opened += [
            self._try_open(request, partial(self.queue.give_up, number), queued=number) for number, request in queued
        ]
        return next((each for each in opened if each is not None), None)

    def _try_open(
        self,
        request: RoundRequest,
        give_up: Callable[[str], object],
        *,
        follows: int | None = None,
        queued: int | None = None,
    ) -> RoundStatus | None:
        """Open a waiting round if nothing holds it back.

        `give_up` receives the reason if it can't be opened.
        """
        try:
            return self._open_if_free(request, give_up, follows, queued)
        except (OwnfeedError, OSError) as passing:
            if not may_pass(passing):
                raise
            what = f"number {queued} of the queue" if follows is None else f"the round after round-{follows}"
            _log.warning("%s waits: %s", what, passing)
            return None  # the others are processed; the next step tries again

    def _open_if_free(
        self, request: RoundRequest, give_up: Callable[[str], object], follows: int | None, queued: int | None
    ) -> RoundStatus | None:
        with reading_session(self._loader.engine) as session:
            # The opening transaction checks this again: planning takes a while, and in most ticks the round still has
            # to wait.
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
        with suppress(NoLongerWaiting):  # it was taken out of the queue meanwhile
            give_up(reason)
        return None

    def _beginning(self, request: RoundRequest) -> RoundRequest:
        """Return the request for the round that a system begins with. Raises what `check_release` raises."""
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
                "A robust mean keeps all updates in memory, and there are too many of them.",
                field="cohort",
                limit=f"{STACK_LIMIT_BYTES // (4 * _coordinates(plan))} devices",
            )
        split = None if spec.join is None else spec.join.split_of(request.cohort)
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
                    cohort=split.largest(request.cohort, request.cohort_minimum) if split else request.cohort,
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
                self._sums.begin(session, manifest.terms, request.seconds, split)
            if follows is not None:
                session.get_one(FollowUpRow, follows).opened = number
            if queued is not None:
                session.get_one(QueuedRoundRow, queued).opened = number
            session.flush()
            return round_status(session, row)

    def _spec(self, system: str) -> SystemSpec:
        spec = self._systems.get(system)
        if spec is None:
            raise UnknownSystem("This server does not run that system.", field="system", limit=_known(self._systems))
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
                limit=_known(
                    name for name, each in self._systems.items() if each.model is not None and _has_model(release, each)
                ),
            )


def minimum_of(cohort: int, wanted: int | None) -> int:
    """Return the cohort minimum: the requested one, else the default, at most the whole cohort."""
    return min(MINIMUM_DEFAULT, cohort) if wanted is None else wanted


@dataclass(frozen=True)
class UpdatesNeeded:
    """What a round needs to be applied if its whole cohort joins.

    Args:
        updates: the fewest updates, of each group if there are groups.
        groups: how many groups must be left; 0 for a cohort that isn't split.
    """

    updates: int
    groups: int = 0


def need_of(spec: SystemSpec, cohort: int, minimum: int) -> UpdatesNeeded:
    """Return what a round of this system needs, by its requested minimum and its protection.

    Raises ValueError for a cohort that the protection's sum can't hold.
    """
    if not resolve(spec.protection).summed:
        return UpdatesNeeded(minimum)
    terms = resolve(spec.protection).terms("round-1", cohort=cohort, cohort_minimum=max(2, minimum), coordinates=1)
    assert terms is not None, "a summed protection has terms"
    split = None if spec.join is None else spec.join.split_of(cohort)
    parts = split.parts_of(cohort, terms) if split else 0
    needed = max(minimum, threshold_of(terms, cohort // max(1, parts)))
    return UpdatesNeeded(needed, split.left if split and parts else 0)


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
    """Return the request for a round from the operator's settings.

    The number of devices follows from `participation` if given, else it is `cohort`, else it follows from the system's
    own rate, else it is the default number.
    """
    if cohort is None and participation is None and system in systems:
        participation = systems[system].participation
    wanted = COHORT_DEFAULT if cohort is None else cohort
    minimum = minimum_of(wanted, cohort_minimum)
    return RoundRequest(system, wanted, minimum, seconds, admission, participation)


def _known(names: Iterable[str]) -> str:
    """Return the names of the systems of these full names, without their axes, each once."""
    return ", ".join(dict.fromkeys(each.partition("/")[0] for each in names))


def _check_request(request: RoundRequest) -> None:
    _check("cohort", request.cohort, 1 <= request.cohort <= COHORT_LIMIT, f"1 to {COHORT_LIMIT}")
    _check("cohort_minimum", request.cohort_minimum, 1 <= request.cohort_minimum <= request.cohort, "1 to the cohort")
    _check("seconds", request.seconds, 0 < request.seconds <= SECONDS_LIMIT, f"above 0, at most {SECONDS_LIMIT:g}")
    _check("admission", request.admission, 0 < request.admission <= 1, "above 0, at most 1")
    share = request.participation
    _check("participation", share, share is None or 0 < share <= 1, "above 0, at most 1")


def _check_cohort(spec: SystemSpec, cohort: int) -> None:
    if isinstance(spec.strategy, ChecksCohort):
        spec.strategy.check_cohort(spec, cohort)


def _check_plan(plan: Plan) -> None:
    coordinates = _coordinates(plan)
    numbers = UPLOAD_LIMIT_BYTES // 4
    _check("system", f"{coordinates} numbers", 1 <= coordinates <= numbers, f"1 to {numbers} numbers an update")
    size_bytes = sum(ref.size_bytes for ref in plan.materials.values())
    limit = MATERIALS_LIMIT_BYTES
    _check("system", f"{size_bytes} bytes", size_bytes <= limit, f"at most {limit} bytes of materials")


def _coordinates(plan: Plan) -> int:
    return sum(math.prod(shape) for shape in plan.shapes.values())


def _check(field: str, found: float | str | None, fits: bool, limit: str) -> None:
    if not fits:
        raise RoundImpossible(f"{field} is out of range: {found}.", field=field, limit=limit)


def _has_model(release: ReleaseManifest, spec: SystemSpec) -> bool:
    """Return whether the release has the system's model with the graph that the task needs.

    Systems without a model always pass.
    """
    if spec.model is None:
        return True
    entry = release.models.get(spec.model)
    return (
        entry is not None
        and entry.architecture == spec.architecture
        and spec.graph in entry.graphs
        and entry.weights is not None
    )

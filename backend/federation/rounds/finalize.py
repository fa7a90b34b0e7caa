"""End a round: aggregate its updates, let its strategy conclude it, and write all results in one transaction.

Single updates are added up, a secure sum is opened. `RoundContextLoader` collects everything that a strategy may read.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables import FollowUpRow, ParticipationRow, RoundRow
from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundClosed, SumFailed, UpdateRefused
from backend.federation.optimizers import Memory
from backend.federation.protections.protection import ServerProtection
from backend.federation.protections.registry import resolve
from backend.federation.protections.sum_bounds import UploadRules
from backend.federation.rounds.records import advance, state_of
from backend.federation.rounds.update_store import UpdateDamaged, UpdateStore
from backend.federation.secagg.secure_sum import OpenedSum
from backend.federation.secagg.sum_store import SecureSumStore
from backend.federation.strategies.fedavg import Centre, Stacked
from backend.federation.strategies.joined_sums import JoinOfSums
from backend.federation.strategies.strategy import PreviousRound, RoundContext, RoundRequest, RoundResult
from backend.federation.systems.composition import SystemSpec
from backend.popularity.store import HALF_LIFE_HOURS
from backend.releases.errors import ReleaseNotPublished
from backend.releases.publish import publish_changes
from backend.releases.store import ReleaseStore, is_repeated
from protocol.ids import ReleaseId, release_number
from protocol.releases import ReleaseManifest
from protocol.ring import WeightedSum
from protocol.rounds import RoundManifest
from protocol.secagg import SumTerms
from protocol.server_timing import Stopwatch


class RoundContextLoader:
    """Builds round contexts from rows and releases; it changes nothing."""

    def __init__(
        self,
        engine: Engine,
        releases: ReleaseStore,
        clock: Callable[[], datetime],
        data_dir: Path,
        held_out: float = 0.0,
        counts_half_life_hours: float = HALF_LIFE_HOURS,
        executor: ExecutorSettings = HERE,
    ) -> None:
        """Take the sources of the context.

        held_out: share of its samples that a device reserves for the release gate; 0 disables the gate.
        """
        self.counts_half_life_hours = counts_half_life_hours
        self.engine, self.releases, self.clock, self.held_out = engine, releases, clock, held_out
        self._data_dir, self._executor = data_dir, executor

    def context(self, release: ReleaseManifest, request: RoundRequest, follows: int | None) -> RoundContext:
        """Return the context of a round on this release.

        follows: the number of the round that it follows, if any.
        """
        self.releases.encoders.take_for(release.release)  # another machine may have made this encoder
        return RoundContext(
            release=release,
            request=request,
            releases=self.releases,
            engine=self.engine,
            clock=self.clock,
            data_dir=self._data_dir,
            past=None if follows is None else self._past(follows),
            held_out=self.held_out,
            memory=self._memory(request.system),
            counts_half_life_hours=self.counts_half_life_hours,
            executor=self._executor,
        )

    def context_of(self, row: RoundRow) -> RoundContext:
        """Return the context of a round that is under way."""
        return self.context(self.releases.manifest(f"r{row.release}"), request_of(row), row.follows)

    def _past(self, number: int) -> PreviousRound | None:
        """Return the round of this number as the previous round.

        If it failed and is being retried, the previous round is the one that it followed, if any.
        """
        with reading_session(self.engine) as session:
            row = session.get_one(RoundRow, number)
            follow_up = session.get(FollowUpRow, number)
            if follow_up is not None and follow_up.retries:
                return None if row.follows is None else self._past(row.follows)
            return PreviousRound(
                request=request_of(row),
                manifest=RoundManifest.model_validate_json(row.manifest),
                facts=row.facts or {},
                published=None if row.published is None else f"r{row.published}",
                survivors=row.survivors,
            )

    def _memory(self, system: str) -> Memory:
        with reading_session(self.engine) as session:
            kept = session.scalar(
                select(RoundRow.memory)
                .where(RoundRow.system == system, RoundRow.state == "applied", RoundRow.memory.is_not(None))
                .order_by(RoundRow.number.desc())
                .limit(1)
            )
        return Memory() if kept is None else Memory.from_bytes(kept)


def request_of(row: RoundRow) -> RoundRequest:
    seconds = (row.closes_at - row.opened_at).total_seconds()
    return RoundRequest(row.system, row.cohort, row.cohort_minimum, seconds, row.admission)


@dataclass(frozen=True)
class AggregatedUpdates:
    """The aggregated updates of a round.

    description: of the updates, for the note of the release. facts: figures for the round's row. finish: writes further
    changes of the round's row and its sum in the transaction that ends the round. left_out: a sentence for the devices
    whose updates were left out of the result, or None.
    """

    total: Aggregate
    description: str
    facts: Mapping[str, Any]
    finish: Callable[[Session, RoundRow], None]
    left_out: str | None = None


def aggregate_updates(
    engine: Engine, inbox: UpdateStore, rules: UploadRules, row: RoundRow, centre: Centre | None = None
) -> AggregatedUpdates:
    """Add up a round's updates one by one, or collect them all for a robust mean (`centre`).

    Damaged updates are left out. Raises RoundClosed if fewer than `cohort_minimum` undamaged updates remain.
    """
    total = Aggregate(rules.shapes) if centre is None else Stacked(rules.shapes, centre)
    accepted = _accepted(engine, row)
    updates = 0
    for pseudonym, sha256 in accepted:
        try:
            total.add(*rules.read(inbox.read(f"round-{row.number}", pseudonym, sha256)))
        except (UpdateDamaged, UpdateRefused):
            continue
        updates += 1
    damaged = len(accepted) - updates
    if updates < row.cohort_minimum:
        raise RoundClosed(
            f"{damaged} accepted updates are damaged on disk; {updates} are left, and the minimum is "
            f"{row.cohort_minimum}."
        )
    facts = {"updates": updates, "damaged": damaged}
    if rules.weight_limit > 1:
        facts["weight"] = total.count
    return AggregatedUpdates(total, f"{updates} updates", facts, lambda session, mine: None)


def aggregate_sum(store: SecureSumStore, manifest: RoundManifest, join: JoinOfSums | None = None) -> AggregatedUpdates:
    """Open the secure sum of a round, or the sums of its groups, and return the aggregate.

    If the server is killed before the round is concluded, opening again gives the same result.

    Raises ValueError for a round without a secure sum, SumFailed if the sum can't be opened, and UpdateRefused if the
    sum exceeds the bounds of honest devices and their noise (`ServerProtection.check`). In a round with groups, a group
    whose sum fails in one of the last two ways is left out instead, and so are groups that the join leaves out;
    UpdateRefused is raised if too few groups remain.

    Formal guarantees: the server reads only the opened sum of all survivors, at least `cohort_minimum` of them, of the
    cohort or of each of its groups; no device is in two groups. If nobody colludes, and with the noise shares of the
    survivors, epsilon is `spending.epsilon_spent` at the rho of the one opening that contains the device, computed with
    the smallest number of survivors of any opened sum.
    """
    protection, terms = resolve(manifest.protection), manifest.terms
    if terms is None:
        raise ValueError(f"{manifest.round}: this round has no secure sum that could be opened")
    if join is not None and (parts := store.parts(manifest.round)):
        return _aggregate_parts(store, parts, manifest, protection, terms, join)
    opened = store.stages.opened(manifest.round)
    sums, survivors = _passed(protection, manifest.shapes, terms, opened), len(opened.survivors)
    facts = {"survivors": survivors, "weight": sums.samples}
    description = f"a secure sum of {survivors} devices"
    return _aggregated(
        store, manifest, protection, Aggregate.of_opened(sums, protection.radius), description, survivors, facts
    )


def _aggregate_parts(
    store: SecureSumStore,
    parts: Sequence[str],
    manifest: RoundManifest,
    protection: ServerProtection,
    terms: SumTerms,
    join: JoinOfSums,
) -> AggregatedUpdates:
    sizes: list[int] = []
    passed: list[WeightedSum] = []
    refusals: list[str] = []
    for part in parts:
        try:
            opened = store.stages.opened(part)
            sizes.append(len(opened.survivors))
            passed.append(_passed(protection, manifest.shapes, terms, opened))
        except (SumFailed, UpdateRefused) as refused:
            refusals.append(str(refused))
    if len(passed) < join.left:
        raise UpdateRefused(
            f"{len(passed)} groups are left; {join.left} are needed. The first refusal: {refusals[0]}",
            field="body",
            limit=str(join.left),
        )
    total = join.join(passed, protection.radius, protection.noise_variance(1))
    joined, left_out = len(total.parts), len(parts) - len(total.parts)
    facts = {"survivors": sum(sizes), "weight": total.count, "groups": sizes, "groups_joined": joined}
    description = f"{join.words} of {joined} secure sums of at least {min(sizes)} devices"
    aggregated = _aggregated(store, manifest, protection, total, description, min(sizes), facts)
    if not left_out:
        return aggregated
    # The members of these groups send nothing further; they can only learn this from a notice that everyone may read.
    were = "was" if left_out == 1 else "were"
    notice = (
        f"{left_out} of {len(parts)} groups {were} left out after the devices had sent everything, so nothing that "
        "the devices of these groups sent is in the result. The groups are not named."
    )
    return replace(aggregated, left_out=notice)


def _aggregated(
    store: SecureSumStore,
    manifest: RoundManifest,
    protection: ServerProtection,
    total: Aggregate,
    description: str,
    survivors: int,
    facts: Mapping[str, Any],
) -> AggregatedUpdates:
    """Build the result; `survivors` is the number of devices in the smallest opened sum."""
    epsilon = _epsilon(protection, survivors, sum(math.prod(shape) for shape in manifest.shapes.values()))
    delta = None if epsilon is None else protection.delta

    def finish(session: Session, mine: RoundRow) -> None:
        mine.survivors, mine.epsilon, mine.delta = survivors, epsilon, delta
        store.finish(session, manifest.round)

    return AggregatedUpdates(total, description, {**facts, "epsilon": epsilon, "delta": delta}, finish)


def _passed(
    protection: ServerProtection, shapes: Mapping[str, tuple[int, ...]], terms: SumTerms, opened: OpenedSum
) -> WeightedSum:
    """Decode and check an opened sum; the ring vector is not kept.

    Raises UpdateRefused beyond the bounds.
    """
    survivors = len(opened.survivors)
    sums = protection.decode(shapes, terms, opened.vector, survivors)
    protection.check(sums, survivors)
    return sums


def _epsilon(protection: ServerProtection, survivors: int, coordinates: int) -> float | None:
    rho = protection.account(coordinates, survivors).rho
    if rho is None or protection.delta is None:
        return None
    # Importing dp-accounting takes seconds, and only a noisy sum needs it.
    from backend.federation.accounting import epsilon_spent

    return epsilon_spent(rho, protection.delta)


def _accepted(engine: Engine, row: RoundRow) -> list[tuple[str, str]]:
    with reading_session(engine) as session:
        found = session.execute(
            select(ParticipationRow.pseudonym, ParticipationRow.sha256)
            .where(ParticipationRow.round == row.number, ParticipationRow.sha256.is_not(None))
            .order_by(ParticipationRow.number)
        ).all()
    return [(pseudonym, str(sha256)) for pseudonym, sha256 in found]


def finalize(
    aggregated: AggregatedUpdates, spec: SystemSpec, loader: RoundContextLoader, row: RoundRow, watch: Stopwatch
) -> None:
    """Conclude the round from its aggregated updates, and write all results in one transaction.

    The results are the conclusion's rows, its release and the request for the next round. Either all of them exist and
    the round is applied, or none do, so no update is applied twice. Raises RoundClosed if the round would publish a
    release but another was published meanwhile, IllegalTransition if the round was ended meanwhile, ReleaseNotPublished
    if new weights fail their checks, and whatever the strategy raises.

    watch: the stopwatch that timed the aggregation, as stage "sum".
    """
    manifest = RoundManifest.model_validate_json(row.manifest)
    context = loader.context_of(row)
    with watch.stage("step"):
        result = spec.strategy.conclude(spec, aggregated.total, context, manifest)
    facts = {**aggregated.facts, **result.facts}
    follow_up = result.next or _gate(spec, result, context)
    finished_at = loader.clock()

    def mark_applied(session: Session, published: ReleaseManifest | None) -> None:
        if published is not None:
            _require_follows(session, published, manifest.release)
        mine = session.get_one(RoundRow, row.number, with_for_update=True)
        mine.state = advance(state_of(session, mine), "applied")
        mine.published = None if published is None else release_number(published.release)
        mine.finished_at, mine.facts, mine.summary = finished_at, facts, result.summary
        mine.reason = aggregated.left_out
        mine.memory = None if result.memory is None else result.memory.to_bytes()
        aggregated.finish(session, mine)
        if result.rows is not None:
            result.rows(session)
        if follow_up is not None:
            session.add(FollowUpRow(after=row.number, request=follow_up.to_json()))

    if not result.publishes:
        with writing_session(loader.engine) as session:
            mark_applied(session, None)
        return
    publish_changes(
        loader.releases,
        context.release,
        result.weights or {},
        note=f"{manifest.round}: {result.note or f'{aggregated.description} for {spec.name}'}",
        change=result.draft,
        facts={
            "round": manifest.round,
            **facts,
            "change_l2": _change(result, context),
            "stages_ms": watch.stages_ms,
        },
        together_with=mark_applied,
    )


def end_unfinished(
    spec: SystemSpec | None,
    loader: RoundContextLoader,
    context: RoundContext,
    reason: str,
    mark: Callable[[Session, ReleaseId | None], None],
) -> None:
    """Write in one transaction that a round failed or can't be opened.

    This includes the effect on its release.

    mark: writes the rows; it receives the release that was published instead, if any. Its errors are passed on. A
    release that can't be published again is skipped, and the rows say why.
    """
    undone = None if spec is None or spec.if_failed is None else spec.if_failed(context, reason)
    if undone is not None:
        rows = undone.rows

        def together(session: Session, published: ReleaseManifest) -> None:
            _require_follows(session, published, context.release.release)
            mark(session, published.release)
            if rows is not None:
                rows(session)

        try:
            publish_changes(
                loader.releases,
                context.release,
                {},
                note=undone.note or "",
                change=undone.draft,
                facts=dict(undone.facts),
                together_with=together,
            )
        except (RoundClosed, ReleaseNotPublished):
            pass
        else:
            return
    with writing_session(loader.engine) as session:
        mark(session, None)


def _require_follows(session: Session, published: ReleaseManifest, release: ReleaseId) -> None:
    """Raise RoundClosed unless the new release directly follows the round's release.

    After a kill that release may have been published a second time (`is_repeated`), which is allowed.
    """
    assert published.previous is not None, "there is the round's own"
    if not is_repeated(session, published.previous, of=release):
        raise RoundClosed(f"The round was for {release}, but {published.previous} has been published since.")


def _gate(spec: SystemSpec, result: RoundResult, context: RoundContext) -> RoundRequest | None:
    """Return the request for scoring a ranker's new weights if the gate is on, else None.

    Raises ReleaseNotPublished for a system without a gate round.
    """
    models = context.release.models
    if not context.held_out or not any(models[name].role == "ranker" for name in result.weights or {}):
        return None
    if spec.gate is None:
        raise ReleaseNotPublished(
            f"System {spec.name!r} names no gate. While the release gate is on, a ranker may only change "
            "after it was scored.",
            field="system",
        )
    return spec.gate.after(context.request)


def _change(result: RoundResult, context: RoundContext) -> float:
    """Return the total distance by which all published weights have moved."""
    moved = 0.0
    for model, weights in (result.weights or {}).items():
        before = context.releases.weights(context.release, model)
        moved += sum(float(np.square(weights[name] - each).sum()) for name, each in before.items() if name in weights)
    return float(np.sqrt(moved))

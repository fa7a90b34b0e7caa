"""Finalise a round: let its strategy conclude it, and write all results in one transaction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sqlalchemy.orm import Session

from backend.db.engine import writing_session
from backend.db.tables import FollowUpRow, RoundRow
from backend.federation.errors import RoundClosed
from backend.federation.rounds.aggregation import AggregatedUpdates
from backend.federation.rounds.context import RoundContextLoader
from backend.federation.rounds.records import advance, state_of
from backend.federation.strategies.strategy import RoundContext, RoundRequest, RoundResult
from backend.federation.systems.system import SystemSpec
from backend.releases.errors import ReleaseNotPublished
from backend.releases.publish import publish_changes
from backend.releases.store import is_repeated
from protocol.ids import ReleaseId, release_number
from protocol.releases import ReleaseManifest
from protocol.rounds import RoundManifest
from protocol.server_timing import Stopwatch


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
            f"System {spec.name!r} names no gate, and while the release gate is on no ranker changes unscored.",
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

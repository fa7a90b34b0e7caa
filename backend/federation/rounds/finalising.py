"""The end of a round that has enough updates: the strategy's conclusion, in one transaction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sqlalchemy.orm import Session

from backend.db.engine import writing_session
from backend.db.tables_federation import FollowUpRow, RoundRow
from backend.federation.errors import RoundClosed
from backend.federation.rounds.aggregation import AggregatedUpdates
from backend.federation.rounds.context import RoundContextLoader
from backend.federation.rounds.records import state_of
from backend.federation.rounds.states import advance
from backend.federation.strategies.strategy import RoundContext, RoundRequest, RoundResult
from backend.federation.systems.system import SystemSpec
from backend.releases.errors import ReleaseNotPublished
from backend.releases.publish import publish_changes
from backend.releases.store import is_repeated
from device_app.wire.ids import ReleaseId, release_number
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rounds import RoundManifest
from device_app.wire.server_timing import Stopwatch


def finalize(
    gather: Callable[[], AggregatedUpdates], spec: SystemSpec, loader: RoundContextLoader, row: RoundRow
) -> None:
    """Gather, conclude, and write down all that follows: the conclusion's rows, its release, the next round's request.

    So either all of it exists and the round is applied, or none: no update is applied twice. Raises RoundClosed if the
    round would publish and another release was published meanwhile, IllegalTransition if the round was ended meanwhile,
    ReleaseNotPublished if new weights do not pass, and what `gather` and the strategy raise.
    """
    manifest = RoundManifest.model_validate_json(row.manifest)
    watch = Stopwatch()
    with watch.stage("sum"):
        aggregated = gather()
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
        note=f"{manifest.round}: {result.note or f'{aggregated.words} for {spec.name}'}",
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
    """Write down that a round has failed or can't be opened, and what that does to its release, in one transaction.

    mark: writes the rows; told the release that was published instead, if any. Raises what it raises; a release that
    can't be published again is left, and the rows say why.
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
    """Raise RoundClosed unless what is published for a round comes right after the round's release, which a kill may
    have had published once more (`is_repeated`)."""
    assert published.previous is not None, "there is the round's own"
    if not is_repeated(session, published.previous, of=release):
        raise RoundClosed(f"The round was for {release}; {published.previous} was published meanwhile.")


def _gate(spec: SystemSpec, result: RoundResult, context: RoundContext) -> RoundRequest | None:
    """The request for the round that scores a ranker's new weights, while the gate is on.

    Raises ReleaseNotPublished for a system that names none.
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
    """How far all published weights together have moved."""
    moved = 0.0
    for model, weights in (result.weights or {}).items():
        before = context.releases.weights(context.release, model)
        moved += sum(float(np.square(weights[name] - each).sum()) for name, each in before.items() if name in weights)
    return float(np.sqrt(moved))

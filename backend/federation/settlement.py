"""The end of a round that has enough updates: the strategy's conclusion, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from backend.db.sessions import writing_session
from backend.db.tables_federation import Round, RoundOrderRow
from backend.federation.errors import RoundClosed
from backend.federation.gathering import Gathered
from backend.federation.records import state_of
from backend.federation.round import advance
from backend.federation.stockroom import Stockroom
from backend.federation.strategies.strategy import Conclusion, RoundOrder, Stock
from backend.federation.systems.system import SystemSpec
from backend.releases.errors import ReleaseNotPublished
from backend.releases.publish import publish_changes
from device_app.wire.ids import ReleaseId, release_number
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rounds import RoundManifest
from device_app.wire.timing import Stopwatch

GATE: Final = "release_gate"
"""The system that scores releases."""
GATE_COHORT_LIMIT: Final = 1_000
"""Votes that its sum has room for."""
GATE_SEC: Final = 90.0
"""The shortest time for its votes, since devices have to take the new release before they can score it."""


def settle(gather: Callable[[], Gathered], spec: SystemSpec, room: Stockroom, row: Round) -> None:
    """Gather, conclude, and write down all that follows: the conclusion's rows, its release, the next round's order.

    So either all of it exists and the round is applied, or none: no update is applied twice. Raises RoundClosed if the
    round would publish and another release was published meanwhile, IllegalTransition if the round was ended meanwhile,
    ReleaseNotPublished if new weights do not pass, and what `gather` and the strategy raise.
    """
    manifest = RoundManifest.model_validate_json(row.manifest)
    watch = Stopwatch()
    with watch.stage("sum"):
        gathered = gather()
    stock = room.stock_of(row)
    with watch.stage("step"):
        conclusion = spec.strategy.conclude(spec, gathered.total, stock, manifest)
    facts = {**gathered.facts, **conclusion.facts}
    follow_up = conclusion.next or _gate(conclusion, stock)
    finished_at = room.clock()

    def mark_applied(session: Session, published: ReleaseManifest | None) -> None:
        if published is not None and published.previous != manifest.release:
            raise RoundClosed(f"The round was for {manifest.release}; {published.previous} was published meanwhile.")
        mine = session.get_one(Round, row.number, with_for_update=True)
        mine.state = advance(state_of(session, mine), "applied")
        mine.published = None if published is None else release_number(published.release)
        mine.finished_at, mine.facts, mine.says = finished_at, facts, conclusion.says
        mine.memory = None if conclusion.memory is None else conclusion.memory.to_bytes()
        gathered.finish(session, mine)
        if conclusion.rows is not None:
            conclusion.rows(session)
        if follow_up is not None:
            session.add(RoundOrderRow(after=row.number, order=follow_up.to_json()))

    if not conclusion.publishes:
        with writing_session(room.engine) as session:
            mark_applied(session, None)
        return
    publish_changes(
        room.releases,
        stock.release,
        conclusion.weights or {},
        note=f"{manifest.round}: {conclusion.note or f'{gathered.words} for {spec.name}'}",
        change=conclusion.draft,
        facts={
            "round": manifest.round,
            **facts,
            "change_l2": _change(conclusion, stock),
            "stages_ms": watch.stages_ms,
        },
        together_with=mark_applied,
    )


def end_unfinished(
    spec: SystemSpec | None,
    room: Stockroom,
    stock: Stock,
    reason: str,
    mark: Callable[[Session, ReleaseId | None], None],
) -> None:
    """Write down that a round has failed or can't be opened, and what that does to its release, in one transaction.

    mark: writes the rows; told the release that was published instead, if any. Raises what it raises; a release that
    can't be published again is left, and the rows say why.
    """
    undone = None if spec is None or spec.if_failed is None else spec.if_failed(stock, reason)
    if undone is not None:
        rows = undone.rows

        def together(session: Session, published: ReleaseManifest) -> None:
            if published.previous != stock.release.release:
                raise RoundClosed(f"{published.previous} was published meanwhile.")
            mark(session, published.release)
            if rows is not None:
                rows(session)

        try:
            publish_changes(
                room.releases,
                stock.release,
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
    with writing_session(room.engine) as session:
        mark(session, None)


def _gate(conclusion: Conclusion, stock: Stock) -> RoundOrder | None:
    """While the gate is on, new weights of a ranker are scored by a cohort like the one that made them."""
    models = stock.release.models
    if not stock.held_out or not any(models[name].role == "ranker" for name in conclusion.weights or {}):
        return None
    cohort = min(stock.order.cohort, GATE_COHORT_LIMIT)
    minimum = min(max(2, stock.order.cohort_minimum), cohort)
    seconds = max(stock.order.seconds, GATE_SEC)
    return replace(stock.order, system=GATE, cohort=cohort, cohort_minimum=minimum, seconds=seconds)


def _change(conclusion: Conclusion, stock: Stock) -> float:
    """How far all published weights together have moved."""
    moved = 0.0
    for model, weights in (conclusion.weights or {}).items():
        before = stock.releases.weights(stock.release, model)
        moved += sum(float(np.square(weights[name] - each).sum()) for name, each in before.items() if name in weights)
    return float(np.sqrt(moved))

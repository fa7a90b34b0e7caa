"""Opening rounds: those asked for now, and those that another round's end has ordered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session, writing_session
from backend.db.tables_federation import Round, RoundOrderRow
from backend.db.turn import queue
from backend.errors import OwnfeedError
from backend.federation.errors import RoundImpossible, RoundsPaused, RoundUnderWay, UnknownSystem
from backend.federation.records import is_paused, round_status, under_way
from backend.federation.robust import STACK_LIMIT_BYTES
from backend.federation.secure_rounds import SecureRounds
from backend.federation.settlement import end_unfinished
from backend.federation.stockroom import Stockroom
from backend.federation.strategies.strategy import JudgesItsWorth, Plan, RoundOrder
from backend.federation.systems.system import SystemSpec
from device_app.wire.ids import ReleaseId, release_number
from device_app.wire.protections import SUMMED
from device_app.wire.releases import ReleaseManifest
from device_app.wire.rounds import MATERIALS_LIMIT_BYTES, UPLOAD_LIMIT_BYTES, RoundManifest, RoundStatus
from device_app.wire.secagg import SumTerms

COHORT_LIMIT = 100_000
COHORT_DEFAULT = 60
MINIMUM_DEFAULT = 10
"""Updates without which a round fails, where nobody says another number. It's what a group of a cohort needs as well
(`robust.MedianOfSums`): half of a cohort instead would make every round one sum, whoever opens it."""
SECONDS_LIMIT = 7 * 24 * 3_600.0
OPENING = "open a round"


class OrderBook:
    """Makes rounds of orders; at most one is under way at a time."""

    def __init__(self, systems: Mapping[str, SystemSpec], room: Stockroom, sums: SecureRounds) -> None:
        self._systems, self._room, self._sums = systems, room, sums

    def open(self, order: RoundOrder) -> RoundStatus:
        """Open a round on the current release, or the one that a system begins with.

        Raises UnknownSystem, RoundImpossible, NothingPublished, RoundsPaused, or RoundUnderWay, also while a round's
        follow-up waits.
        """
        with reading_session(self._room.engine) as session:
            if (waiting := _waiting(session)) is not None:
                raise RoundUnderWay(f"round-{waiting.after}")
        wanted = self._systems.get(order.system)
        if wanted is not None and wanted.begins_with is not None:
            self._check_possible(self._room.releases.require_current(), wanted)
            order = replace(order, system=wanted.begins_with)
        return self._open(order, None)

    def check(self, order: RoundOrder) -> None:
        """Raises what `open` would for this order, whatever is under way."""
        _check_order(order)
        self._check_possible(self._room.releases.require_current(), self._spec(order.system))

    def why_not(self, order: RoundOrder, devices: int) -> str | None:
        """Why a round that so many devices wait for would tell nothing, or None. Raises UnknownSystem."""
        spec = self._spec(order.system)
        judge = spec.strategy
        return judge.why_not(spec, self._room.engine, devices) if isinstance(judge, JudgesItsWorth) else None

    def open_waiting(self) -> RoundStatus | None:
        """Open what the last end has ordered, if nothing is under way: once, however often the server is killed.

        What can't be opened is given up, with the reason in its row; anything unforeseen is raised besides.
        """
        with reading_session(self._room.engine) as session:
            waiting = None if under_way(session) else _waiting(session)
            if waiting is None:
                return None
            after, order = waiting.after, RoundOrder.from_json(waiting.order)
        try:
            return self._open(order, after)
        except (RoundUnderWay, RoundsPaused):
            return None
        except OwnfeedError as refused:
            self._give_up(after, order, str(refused))
            return None
        except Exception as unforeseen:
            self._give_up(after, order, f"unforeseen: {type(unforeseen).__name__}")
            raise

    def _open(self, order: RoundOrder, follows: int | None) -> RoundStatus:
        spec = self._spec(order.system)
        _check_order(order)
        release = self._room.releases.require_current()
        self._check_possible(release, spec)
        plan = spec.strategy.plan(spec, self._room.stock(release, order, follows))
        _check_plan(plan)
        held = 4 * _coordinates(plan) * order.cohort
        if spec.centre is not None and held > STACK_LIMIT_BYTES:
            raise RoundImpossible(
                "A robust mean holds all updates at once, and these are too many.",
                field="cohort",
                limit=f"{STACK_LIMIT_BYTES // (4 * _coordinates(plan))} devices",
            )
        now = self._room.clock()
        with writing_session(self._room.engine) as session:
            queue(session, OPENING)
            if is_paused(session):
                raise RoundsPaused
            if others := under_way(session):
                raise RoundUnderWay(f"round-{others[0].number}")
            number = (session.scalar(select(func.max(Round.number))) or 0) + 1
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
                held_out=self._room.held_out,
                closes_at=now + timedelta(seconds=order.seconds),
                terms=_terms(f"round-{number}", spec, order, plan),
            )
            row = Round(
                number=number,
                system=spec.name,
                state="open",
                release=release_number(release.release),
                manifest=manifest.model_dump_json(),
                cohort=order.cohort,
                cohort_minimum=order.cohort_minimum,
                admission=order.admission,
                opened_at=now,
                closes_at=manifest.closes_at,
                follows=follows,
            )
            session.add(row)
            session.flush()
            if manifest.terms is not None:
                self._sums.begin(session, manifest.terms, order.seconds, spec.join)
            if follows is not None:
                session.get_one(RoundOrderRow, follows).opened = number
            session.flush()
            return round_status(session, row)

    def _spec(self, system: str) -> SystemSpec:
        spec = self._systems.get(system)
        if spec is None:
            raise UnknownSystem("This server runs other systems.", field="system", limit=", ".join(self._systems))
        return spec

    def _give_up(self, after: int, order: RoundOrder, reason: str) -> None:
        def mark(session: Session, published: ReleaseId | None) -> None:
            given_up = session.get_one(RoundOrderRow, after)
            given_up.reason, given_up.refused_sources = reason[:500], None

        stock = self._room.stock(self._room.releases.require_current(), order, after)
        end_unfinished(self._systems.get(order.system), self._room, stock, reason, mark)

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


def _waiting(session: Session) -> RoundOrderRow | None:
    return session.scalars(
        select(RoundOrderRow)
        .where(RoundOrderRow.opened.is_(None), RoundOrderRow.reason.is_(None))
        .order_by(RoundOrderRow.after)
    ).first()


def _check_order(order: RoundOrder) -> None:
    _check("cohort", 1 <= order.cohort <= COHORT_LIMIT, f"1 to {COHORT_LIMIT}")
    _check("cohort_minimum", 1 <= order.cohort_minimum <= order.cohort, "1 to the cohort")
    _check("seconds", 0 < order.seconds <= SECONDS_LIMIT, f"above 0, at most {SECONDS_LIMIT:g}")
    _check("admission", 0 < order.admission <= 1, "above 0, at most 1")


def _check_plan(plan: Plan) -> None:
    coordinates = _coordinates(plan)
    _check("system", 1 <= coordinates <= UPLOAD_LIMIT_BYTES // 4, f"1 to {UPLOAD_LIMIT_BYTES // 4} numbers an update")
    size_bytes = sum(ref.size_bytes for ref in plan.materials.values())
    _check("system", size_bytes <= MATERIALS_LIMIT_BYTES, f"at most {MATERIALS_LIMIT_BYTES} bytes of materials")


def _terms(round_id: str, spec: SystemSpec, order: RoundOrder, plan: Plan) -> SumTerms | None:
    law = spec.protection
    if not isinstance(law, SUMMED):
        return None
    _check("cohort", order.cohort <= law.cohort_limit, f"at most {law.cohort_limit}")
    _check("cohort_minimum", order.cohort_minimum >= 2, "at least 2, for a sum that hides anybody")
    return law.terms(round_id, cohort=order.cohort, cohort_minimum=order.cohort_minimum, coordinates=_coordinates(plan))


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

"""The state machine of a round, and what the coordinator reads from the rows of rounds.

Final states never change.

open     devices get places; no update has arrived
keys, shares, masked, (agree), unmask
         the stages of a secure sum, from the first place on; they replace `updates`, and the sum stores them itself
updates  at least one update has arrived; devices still get places while places and time are left
applied  the updates were aggregated and the round concluded; its release, if any, was published in that transaction
failed   with a reason, for example too few updates at the deadline, or cancelled by the operator
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from sqlalchemy import Connection, bindparam, func, or_, select
from sqlalchemy.orm import Session

from backend.db.statements import Prepared
from backend.db.tables import (
    FollowUpRow,
    ParticipationRow,
    RoundRow,
    ScheduleRow,
    SecureSumRow,
    cut,
)
from backend.federation.errors import IllegalTransition, UnknownPseudonym, UnknownRound
from backend.federation.secagg.graph import part_rows
from backend.federation.secagg.messages import SumRecord
from backend.federation.strategies.strategy import RoundRequest
from protocol.ids import Pseudonym, RoundId, round_number
from protocol.rounds import RoundManifest, RoundState, RoundStatus

TRANSITIONS: Final[dict[RoundState, frozenset[RoundState]]] = {
    "open": frozenset({"updates", "keys", "failed"}),
    "keys": frozenset({"shares", "failed"}),
    "shares": frozenset({"masked", "failed"}),
    "masked": frozenset({"agree", "unmask", "failed"}),
    "agree": frozenset({"unmask", "failed"}),
    "unmask": frozenset({"applied", "failed"}),
    "updates": frozenset({"applied", "failed"}),
    "applied": frozenset(),
    "failed": frozenset(),
}
UNDER_WAY: Final[tuple[RoundState, ...]] = ("open", "updates", "keys", "shares", "masked", "agree", "unmask")


def advance(state: RoundState, to: RoundState) -> RoundState:
    """Return `to` if a round may go there from `state`; raise IllegalTransition otherwise."""
    if to not in TRANSITIONS[state]:
        raise IllegalTransition(f"A round in state {state} can't change to {to}.", field="state")
    return to


TurnedAway = Literal["release", "task", "full", "late", "chance"]
"""Why a check-in got no place: the device has another release or doesn't know the task or version, no place was left,
the check-in came too late for its stage or deadline, or the device was not drawn.
"""
POLLS = "looked"
_UNDER_WAY = Prepared(select(RoundRow.number).where(or_(*(RoundRow.state == each for each in UNDER_WAY))).limit(1))
_PLACES = select(func.count()).where(ParticipationRow.round == bindparam("of"))
_JOINED, _JOINED_FROM = Prepared(_PLACES), Prepared(_PLACES.where(ParticipationRow.source == bindparam("source")))


@dataclass(frozen=True)
class CheckIns:
    """Check-ins that got no place in a round; one device may be counted many times.

    turned_away: number of check-ins by reason. address: refused because their address already had its share of places.
    polls: number of polls in the half minute before the round failed; None if it did not fail.
    """

    turned_away: dict[TurnedAway, int]
    address: int
    polls: int | None


def check_ins(row: RoundRow) -> CheckIns:
    """Return the check-ins of a round that got no place."""
    counts = dict(row.check_ins or {})
    polls = counts.pop(POLLS, None)
    return CheckIns(cast("dict[TurnedAway, int]", counts), row.places_refused, polls)


def turn_away(row: RoundRow, why: TurnedAway) -> None:
    """Count one check-in that got no place."""
    row.check_ins = {**(row.check_ins or {}), why: (row.check_ins or {}).get(why, 0) + 1}


def find_round(session: Session, round_id: RoundId, *, to_change: bool = False) -> RoundRow:
    """Return the row of a round. Raises UnknownRound."""
    row = session.get(RoundRow, round_number(round_id), with_for_update=to_change)
    if row is None:
        raise UnknownRound
    return row


def is_sum(row: RoundRow) -> bool:
    """Return whether the round is a secure sum and takes no single updates."""
    return RoundManifest.model_validate_json(row.manifest).terms is not None


def under_way(session: Session, *, to_change: bool = False) -> Sequence[RoundRow]:
    """Return the rounds that have not ended, oldest first.

    With `to_change` their rows stay locked until the session ends.
    """
    found = select(RoundRow).where(RoundRow.state.in_(UNDER_WAY)).order_by(RoundRow.number)
    return session.scalars(found.with_for_update() if to_change else found).all()


def any_under_way(connection: Connection) -> bool:
    """Return whether any round has not ended."""
    return _UNDER_WAY.run(connection).first() is not None


def count_joined(session: Session, row: RoundRow, source: str | None = None) -> int:
    """Return the number of places given, in total or to one source."""
    session.flush()  # so that places given in this transaction count
    if source is None:
        joined: int = _JOINED.run(session.connection(), of=row.number).scalar()
    else:
        joined = _JOINED_FROM.run(session.connection(), of=row.number, source=source).scalar()
    return joined


def count_uploaded(session: Session, row: RoundRow) -> int:
    """Return how many updates of the round were accepted."""
    return (
        session.scalar(
            select(func.count()).where(ParticipationRow.round == row.number, ParticipationRow.sha256.is_not(None))
        )
        or 0
    )


def place(session: Session, number: int, pseudonym: Pseudonym) -> ParticipationRow:
    """Return the place of this pseudonym in a round. Raises UnknownPseudonym."""
    found = session.scalars(
        select(ParticipationRow).where(ParticipationRow.round == number, ParticipationRow.pseudonym == pseudonym)
    ).first()
    if found is None:
        raise UnknownPseudonym
    return found


def state_of(session: Session, row: RoundRow) -> RoundState:
    """Return the state of the round, or the stage of its secure sum while that is under way."""
    return standing_of(session, row)[0]


def standing_of(session: Session, row: RoundRow) -> tuple[RoundState, str | None]:
    """Return `state_of` and the reason of a failure.

    A sum fails, with its reason, one transaction before its round does.
    """
    state = cast(RoundState, row.state)
    if state not in UNDER_WAY:
        return state, row.reason
    name = f"round-{row.number}"
    stage = session.scalar(select(SecureSumRow.stage).where(SecureSumRow.name == name))
    if stage is None or (stage == "keys" and count_joined(session, row) == 0):
        return state, row.reason
    if stage != "failed":
        return cast(RoundState, stage), row.reason
    reason = SumRecord.model_validate_json(session.get_one(SecureSumRow, name).record).reason
    return "failed", cut(reason)


def updates_needed(session: Session, row: RoundRow) -> int:
    """Return the fewest updates with which the round can be applied, as far as it is known now.

    It is the requested minimum, or the threshold of the secure sum where that is larger; the threshold follows from how
    many devices joined, and is known once their keys have arrived. A split cohort needs the smallest groups that may be
    left.
    """
    name = f"round-{row.number}"
    found = session.scalar(select(SecureSumRow.record).where(SecureSumRow.name == name))
    if found is None:
        return row.cohort_minimum
    record = SumRecord.model_validate_json(found)
    if record.split is None or not record.parts:
        return max(row.cohort_minimum, record.threshold)
    parts = (SumRecord.model_validate_json(each.record) for each in part_rows(session, name, record.parts))
    return sum(sorted(max(row.cohort_minimum, each.threshold) for each in parts)[: record.split.left])


def has_ended(session: Session, number: int) -> bool:
    """Return whether the round of this number has ended."""
    return session.scalar(select(RoundRow.state).where(RoundRow.number == number)) not in UNDER_WAY


def is_paused(session: Session) -> bool:
    """Return whether the operator has paused rounds."""
    row = session.get(ScheduleRow, 1)
    return row is not None and row.paused


def round_status(session: Session, row: RoundRow) -> RoundStatus:
    follow_up = session.get(FollowUpRow, row.number)
    next_one = None
    if follow_up is not None and follow_up.reason is None:
        next_one = RoundRequest.from_json(follow_up.request)
    manifest = RoundManifest.model_validate_json(row.manifest)
    state, reason = standing_of(session, row)
    received = session.scalar(select(func.sum(ParticipationRow.size_bytes)).where(ParticipationRow.round == row.number))
    return RoundStatus(
        round=f"round-{row.number}",
        system=row.system,
        task=manifest.task,
        stages="updates" if manifest.terms is None else "sum",
        state=state,
        reason=reason,
        release=f"r{row.release}",
        published=None if row.published is None else f"r{row.published}",
        follows=None if row.follows is None else f"round-{row.follows}",
        orders=None if next_one is None else next_one.system,
        followed_by=None if follow_up is None or follow_up.opened is None else f"round-{follow_up.opened}",
        summary=row.summary,
        cohort=row.cohort,
        cohort_minimum=updates_needed(session, row),
        joined=count_joined(session, row),
        uploaded=count_uploaded(session, row),
        received_bytes=received or 0,
        opened_at=row.opened_at,
        closes_at=row.closes_at,
        finished_at=row.finished_at,
        survivors=row.survivors,
        epsilon=row.epsilon,
        delta=row.delta,
    )

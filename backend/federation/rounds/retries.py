"""Open a round again if its members made it fail, without those known to be malicious.

Malicious members can be refused only if they have a network address.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from backend.db.tables import FollowUpRow, ParticipationRow, RoundRow, SecureSumRow
from backend.federation.rounds.context import request_of
from backend.federation.rounds.records import UNDER_WAY
from backend.federation.secagg.record import SumRecord
from backend.federation.strategies.strategy import RoundRequest
from protocol.formatting import plural

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

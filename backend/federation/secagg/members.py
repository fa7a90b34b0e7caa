"""A secure sum as one of its members sees it: its number, its neighbours, and the answers it's given."""

from __future__ import annotations

from backend.federation.errors import UnknownPseudonym
from backend.federation.secagg.errors import SumMessageRefused, SumStageClosed
from backend.federation.secagg.messages import Messages, MessageStage
from backend.federation.secagg.packing import box_for
from backend.federation.secagg.record import ENDED, STAGES, SumRecord
from device_app.wire.secagg import (
    AdvertisedKeys,
    Agreements,
    Box,
    MemberSignature,
    Roster,
    RosterEntry,
    Sharers,
    Shares,
    Survivors,
)


class Members:
    """What a record and its messages tell a member. Every answer raises SumStageClosed until its stage is closed."""

    def __init__(self, record: SumRecord, messages: Messages) -> None:
        self.record, self.messages = record, messages

    def number(self, pseudonym: str) -> int:
        """Raises UnknownPseudonym; SumStageClosed for a sum that has ended, where everybody is forgotten."""
        if self.record.stage in ENDED:
            raise SumStageClosed("one under way", self.record.stage)
        found = self.messages.number(pseudonym)
        if found is None:
            raise UnknownPseudonym
        return found

    def neighbours(self, member: int) -> tuple[int, ...]:
        """The member itself and whom it works with, ascending."""
        return self.record.graph.closed(member)

    def sharers(self, member: int) -> tuple[int, ...]:
        """U2 among its neighbours: who shared its keys in time, but for those out of the sum since the complaints."""
        come = self.messages.members("shares", self.neighbours(member))
        dropped = set(self.record.dropped)
        return tuple(one for one in come if one not in dropped)

    def alive(self, member: int) -> tuple[int, ...]:
        """U3 among its neighbours: whose masked vectors are in the sum."""
        return self.messages.members("masked", self.neighbours(member))

    def at(self, stage: MessageStage) -> None:
        """Raises SumStageClosed unless the sum is at this stage."""
        if self.record.stage != stage:
            raise SumStageClosed(stage, self.record.stage)

    def check_survivor(self, member: int) -> None:
        """Raises SumMessageRefused for a member whose vector isn't in the sum."""
        if self.messages.sha256("masked", member) is None:
            raise SumMessageRefused("This member's vector is not in the sum.", field="pseudonym")

    def keys_of(self, members: tuple[int, ...]) -> dict[int, AdvertisedKeys]:
        """What these members advertised."""
        bodies = self.messages.bodies("keys", members)
        return {member: AdvertisedKeys.model_validate_json(body) for member, body in bodies}

    def roster(self, pseudonym: str) -> Roster:
        """Answer of stage keys."""
        member = self.number(pseudonym)
        self._past("keys")
        return Roster(
            round=self.record.terms.round,
            me=member,
            cohort=self.record.members,
            threshold=self.record.threshold,
            members=tuple(
                RosterEntry(member=one, keys=keys) for one, keys in self.keys_of(self.neighbours(member)).items()
            ),
        )

    def shares(self, pseudonym: str) -> Shares:
        """Answer of stage shares: the boxes for this member, from those whose shares all came in time."""
        member = self.number(pseudonym)
        self._past("shares")
        return Shares(
            boxes=tuple(
                Box(member=sender, box=box_for(body, member, self._place_among(sender, member)))
                for sender, body in self.messages.bodies("shares", self.neighbours(member))
                if sender != member
            )
        )

    def sharers_answer(self, pseudonym: str) -> Sharers:
        """Answer of stage complaints; who is not in it is out of the sum."""
        member = self.number(pseudonym)
        self._past("complaints")
        return Sharers(members=self.sharers(member))

    def survivors(self, pseudonym: str) -> Survivors:
        """Answer of stage masked."""
        member = self.number(pseudonym)
        self._past("masked")
        return Survivors(members=self.alive(member))

    def agreements(self, pseudonym: str) -> Agreements:
        """Answer of stage agree."""
        self.number(pseudonym)
        self._past("agree")
        return Agreements(
            signatures=tuple(
                MemberSignature(member=one, signature=signature) for one, signature in self.messages.bodies("agree")
            )
        )

    def _place_among(self, sender: int, receiver: int) -> int:
        """Where a receiver stands among those to whom a sender sent boxes."""
        if self.record.degree >= self.record.members - 1:
            return receiver - 1 - (receiver > sender)
        near = self.neighbours(sender)
        return near.index(receiver) - (receiver > sender)

    def _past(self, stage: MessageStage) -> None:
        if STAGES.index(self.record.stage) <= STAGES.index(stage):
            raise SumStageClosed(f"past {stage}", self.record.stage)

"""A secure sum from a member's view: its number, its neighbours, and its answers."""

from functools import lru_cache

from backend.federation.errors import SumMessageRefused, SumStageClosed, UnknownPseudonym
from backend.federation.secagg.messages import ENDED, STAGES, Messages, MessageStage, SumRecord, box_for
from protocol.secagg import (
    SIGNATURE_BYTES,
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

KEYS_READ = 1_024
"""How many members' parsed keys are cached: each member is on the rosters of all its neighbours."""


@lru_cache(maxsize=KEYS_READ)
def _advertised(body: bytes) -> AdvertisedKeys:
    return AdvertisedKeys.model_validate_json(body)


class Members:
    """Answers members from a record and its messages.

    Every answer raises SumStageClosed until its stage has closed.
    """

    def __init__(self, record: SumRecord, messages: Messages) -> None:
        self.record, self.messages = record, messages

    def number(self, pseudonym: str) -> int:
        """Return a member's number.

        Raises UnknownPseudonym, or SumStageClosed for a sum that has ended, since it has forgotten its members.
        """
        if self.record.stage in ENDED:
            raise SumStageClosed("one under way", self.record.stage)
        found = self.messages.number(pseudonym)
        if found is None:
            raise UnknownPseudonym
        return found

    def neighbours(self, member: int) -> tuple[int, ...]:
        """Return the member itself and its neighbours, ascending."""
        return self.record.graph.closed(member)

    def sharers(self, member: int) -> tuple[int, ...]:
        """Return U2 among the member's neighbours: those that shared their keys in time.

        Members that are out of the sum since the `complaints` stage are excluded.
        """
        senders = self.messages.members("shares", self.neighbours(member))
        dropped = set(self.record.dropped)
        return tuple(one for one in senders if one not in dropped)

    def alive(self, member: int) -> tuple[int, ...]:
        """Return U3 among the member's neighbours: those whose masked vectors are in the sum."""
        return self.messages.members("masked", self.neighbours(member))

    def require_stage(self, stage: MessageStage) -> None:
        """Raise SumStageClosed unless the sum is at this stage."""
        if self.record.stage != stage:
            raise SumStageClosed(stage, self.record.stage)

    def check_survivor(self, member: int) -> None:
        """Raise SumMessageRefused if the member's vector isn't in the sum."""
        if self.messages.sha256("masked", member) is None:
            raise SumMessageRefused("This member's vector is not in the sum.", field="pseudonym")

    def keys_of(self, members: tuple[int, ...]) -> dict[int, AdvertisedKeys]:
        return {member: _advertised(body) for member, body in self.messages.bodies("keys", members)}

    def roster(self, pseudonym: str) -> Roster:
        """Return the answer in the `keys` stage."""
        member = self.number(pseudonym)
        self._require_closed("keys")
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
        """Return the answer in the `shares` stage: the boxes for this member.

        They come from members that shared in time.
        """
        member = self.number(pseudonym)
        self._require_closed("shares")
        graph = self.record.graph
        return Shares(
            boxes=tuple(
                Box(member=sender, box=box_for(body, member, graph.place_among(sender, member)))
                for sender, body in self.messages.bodies("shares", self.neighbours(member))
                if sender != member
            )
        )

    def sharers_answer(self, pseudonym: str) -> Sharers:
        """Return the answer in the `complaints` stage; members that are not in it are out of the sum."""
        member = self.number(pseudonym)
        self._require_closed("complaints")
        return Sharers(members=self.sharers(member))

    def survivors(self, pseudonym: str) -> Survivors:
        """Return the answer in the `masked` stage."""
        member = self.number(pseudonym)
        self._require_closed("masked")
        return Survivors(members=self.alive(member))

    def agreements(self, pseudonym: str) -> Agreements:
        """Return the answer in the `agree` stage: all signatures, or the neighbours' if sparse."""
        member = self.number(pseudonym)
        self._require_closed("agree")
        near = None if self.record.graph.is_complete else self.neighbours(member)
        return Agreements(
            signatures=tuple(
                MemberSignature(member=one, signature=body[:SIGNATURE_BYTES], alive=body[SIGNATURE_BYTES:] or None)
                for one, body in self.messages.bodies("agree", near)
            )
        )

    def _require_closed(self, stage: MessageStage) -> None:
        if STAGES.index(self.record.stage) <= STAGES.index(stage):
            raise SumStageClosed(f"past {stage}", self.record.stage)

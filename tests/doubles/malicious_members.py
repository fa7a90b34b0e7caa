"""Malicious members of a secure sum over HTTP.

Keys and signatures are real, one message is the attacker's.
"""

from __future__ import annotations

import httpx

from experiments.bench.secagg_clients import WireClient
from protocol.secagg import Agreement, Box, Complaints, RevealedShare, RevealedShares, SharedKeys


class MaliciousMember(WireClient):
    """Sends what `forge` makes of each message, and goes on as if it had sent its own."""

    def send(self) -> httpx.Response:
        sealed = self._step.sealed
        forged = self.forge(self.stage, sealed.payload)
        answer = self.http.put(self._path(), content=forged, headers={"Content-Type": sealed.content_type})
        self._is_sent = self._is_sent or answer.is_success
        return answer

    def forge(self, stage: str, payload: bytes) -> bytes:
        """Return the bytes to send at this stage."""
        raise NotImplementedError


class FalseSeed(MaliciousMember):
    """Commits to a different seed from the one that it shares and masks with."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "shares":
            return payload
        shared = SharedKeys.model_validate_json(payload)
        return shared.model_copy(update={"seed_commitment": bytes(32)}).model_dump_json().encode()


class FalseShares(MaliciousMember):
    """Answers with zeros instead of the others' shares."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "unmask":
            return payload
        revealed = RevealedShares.model_validate_json(payload)
        seeds = tuple(RevealedShare(member=one.member, share=bytes(33)) for one in revealed.seeds)
        return RevealedShares(seeds=seeds, keys=revealed.keys).model_dump_json().encode()


class FalseSharesOfTwo(MaliciousMember):
    """Answers with zeros instead of the shares of members 7 and 8, as if those had shared false ones."""

    VICTIMS = (7, 8)

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "unmask":
            return payload
        revealed = RevealedShares.model_validate_json(payload)
        seeds = tuple(
            RevealedShare(member=one.member, share=bytes(33)) if one.member in self.VICTIMS else one
            for one in revealed.seeds
        )
        return RevealedShares(seeds=seeds, keys=revealed.keys).model_dump_json().encode()


class AccusesTwo(MaliciousMember):
    """Claims that it could not open the boxes of members 7 and 8."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        return Complaints(members=(7, 8)).model_dump_json().encode() if stage == "complaints" else payload


class BadBoxes(MaliciousMember):
    """Sends each member another member's box, which it can't open."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "shares":
            return payload
        shared = SharedKeys.model_validate_json(payload)
        moved = (*shared.boxes[1:], shared.boxes[0])
        boxes = tuple(Box(member=one.member, box=other.box) for one, other in zip(shared.boxes, moved, strict=True))
        return shared.model_copy(update={"boxes": boxes}).model_dump_json().encode()


class OneBadBox(MaliciousMember):
    """Sends the first of the others a box that it can't open."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "shares":
            return payload
        first, *rest = (shared := SharedKeys.model_validate_json(payload)).boxes
        boxes = (first.model_copy(update={"box": bytes(len(first.box))}), *rest)
        return shared.model_copy(update={"boxes": boxes}).model_dump_json().encode()


class AccusesEverybody(MaliciousMember):
    """Claims that it could open no member's box."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "complaints":
            return payload
        assert self.state.roster is not None
        others = tuple(one for one in self.state.roster.numbers if one != self.state.roster.me)
        return Complaints(members=others).model_dump_json().encode()


class FalseSignature(MaliciousMember):
    """Signs the survivors with zeros."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        return Agreement(signature=bytes(64)).model_dump_json().encode() if stage == "agree" else payload


class Garbage(MaliciousMember):
    """Adds a quarter of the ring to every number that it sends."""

    def forge(self, stage: str, payload: bytes) -> bytes:
        if stage != "masked":
            return payload
        forged = bytearray(payload)
        for place in range(3, len(forged), 4):
            forged[place] = (forged[place] + 0x40) % 256
        return bytes(forged)

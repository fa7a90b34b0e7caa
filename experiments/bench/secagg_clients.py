"""Clients of a secure round over HTTP: keys, boxes, masks and shares are real; the device around them is left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

import httpx
import numpy as np
from numpy.typing import NDArray

from backend.federation.protections.secure_sum import secure_sum_of
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.contribution import Contribution
from device_app.privacy.secagg.messages import Reply, Step
from device_app.privacy.secagg.participant import take_part
from device_app.privacy.secagg.state import SumState, begin_sum
from device_app.wire.ids import PROTOCOL_VERSION, short_release
from device_app.wire.offers import SignedOffer, verify_offer
from device_app.wire.ring import ring_dtype
from device_app.wire.rounds import RoundOffer, SumStage
from device_app.wire.secagg import Agreements, Roster, Sharers, Shares, Survivors

ANSWERS: Mapping[SumStage, type[Roster | Shares | Sharers | Survivors | Agreements]] = {
    "keys": Roster,
    "shares": Shares,
    "complaints": Sharers,
    "masked": Survivors,
    "agree": Agreements,
}
FOLLOWING: Mapping[str, str] = {
    "keys": "shares", "shares": "complaints", "complaints": "masked", "masked": "survivors", "agree": "agreements",
}  # fmt: skip
"""What a client works out from the answer of a stage."""
NOTHING = Contribution(np.zeros(0, dtype=ring_dtype(32)), Charge("none", "bench"))
"""Of stages that read no vector."""
Draw = Callable[[int], NDArray[np.float64]]
"""A client's numbers, from how many there are; drawn when they are masked, and not kept."""


class Uncharged:
    """A ledger for a bench: there are no readers."""

    def spend(self, charge: Charge) -> None:
        """Nothing to charge."""


class WireClient:
    """One client in one round. `sent` and `heard` are bytes of bodies; `took` processor seconds by the stage begun."""

    def __init__(self, http: httpx.Client, offer: RoundOffer, draw: Draw, threads: int = 1) -> None:
        self.http, self.offer, self._draw, self._threads = http, offer, draw, threads
        assert offer.manifest.terms is not None
        self.terms = offer.manifest.terms
        self.sent = self.heard = 0
        self.took: dict[str, float] = {}
        terms = self.terms
        self._step: Step = self._timed("keys", lambda: next(take_part(begin_sum(terms), NOTHING, Uncharged())))
        self._is_sent = False

    @classmethod
    def joining(cls, http: httpx.Client, release: str, task: str, draw: Draw) -> WireClient | None:
        """Check in; None if there is no place."""
        asked = {"protocol": PROTOCOL_VERSION, "release": short_release(release), "tasks": [task]}
        answer = http.post("/v1/rounds/check-in", json=asked).raise_for_status()
        if answer.status_code == 204:
            return None
        signed = SignedOffer.model_validate_json(answer.content)
        return cls(http, verify_offer(signed, signed.public_key), draw)

    @property
    def stage(self) -> SumStage:
        """Whose message is being sent, or has been."""
        return self._step.state.stage

    @property
    def state(self) -> SumState:
        """What a device would keep."""
        return self._step.state

    def send(self) -> httpx.Response:
        """The present message; again, if it was sent before."""
        sealed = self._step.sealed
        answer = self.http.put(self._path(), content=sealed.payload, headers={"Content-Type": sealed.content_type})
        if answer.is_success and not self._is_sent:
            self._is_sent = True
            self.sent += len(sealed.payload)
        return answer

    def ask(self) -> httpx.Response:
        """For the answer of the present stage."""
        return self.http.get(self._path())

    def hear(self, reply: Reply) -> None:
        """Work out the next message, from the present state as a device keeps it."""
        state, payload = self._step.state, self._step.sealed.payload
        part = take_part(state, self._contribution(), Uncharged(), payload=payload, threads=self._threads)
        next(part)
        self._step, self._is_sent = self._timed(FOLLOWING[state.stage], lambda: part.send(reply)), False

    def go_on(self) -> bool:
        """Send and ask as far as the server's answers allow; True when nothing more is wanted of this client.

        Raises HTTPStatusError.
        """
        while True:
            if not self._is_sent and self._is_over(self.send()):
                return True
            if self.stage == "unmask":
                return True
            answer = self.ask()
            if self._is_over(answer):
                return True
            if answer.status_code == 204:
                return False
            self.heard += len(answer.content)
            self.hear(ANSWERS[self.stage].model_validate_json(answer.content))

    def _is_over(self, answer: httpx.Response) -> bool:
        """Whether the others needed no more of this client, whose vector is in the sum, than what it has sent."""
        summed = self.stage in ("masked", "agree", "unmask")
        if summed and answer.status_code == 409 and answer.json()["type"].endswith(":round-closed"):
            return True
        answer.raise_for_status()
        return False

    def _path(self) -> str:
        return f"/v1/rounds/{self.offer.manifest.round}/{self.stage}/{self.offer.pseudonym}"

    def _contribution(self) -> Contribution:
        if self.stage != "complaints":
            return NOTHING
        protection = secure_sum_of(self.offer.manifest.protection)
        layout = protection.layout(self.offer.manifest.shapes, self.terms)
        return Contribution(layout.encode({"x": self._draw(layout.coordinates)}, 1), NOTHING.charge)

    def _timed(self, name: str, work: Callable[[], Step]) -> Step:
        started = time.thread_time()
        result = work()
        self.took[name] = time.thread_time() - started
        return result


def drive(clients: Collection[WireClient], wait_sec: float = 0.05) -> None:
    """Every client to its end, one after the other as far as each can go."""
    left = list(clients)
    while left:
        before = [one.stage for one in left]
        left = [one for one in left if not one.go_on()]
        if [one.stage for one in left] == before:
            time.sleep(wait_sec)

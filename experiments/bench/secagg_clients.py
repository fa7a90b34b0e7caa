"""Clients of a secure round over HTTP, without the rest of a device.

Keys, boxes, masks and shares are real.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

import httpx
import numpy as np
from numpy.typing import NDArray

from backend.federation.protections.secure_sum import secure_sum_of
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.messages import NO_CONTRIBUTION, Contribution, Reply, Step, SumState, begin_sum, step_of
from device_app.privacy.secagg.transitions import SumParticipant
from protocol.ids import PROTOCOL_VERSION, short_release
from protocol.rounds import RoundOffer, SignedOffer, SumStage, verify_offer
from protocol.secagg import Agreements, Roster, Sharers, Shares, Survivors

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
"""The message that a client computes from the answer of each stage."""
Draw = Callable[[int], NDArray[np.float64]]
"""Draws a client's numbers, given their count; called when they are masked, and not stored."""


class Uncharged:
    """A ledger that charges nothing, because a bench has no readers."""

    def spend(self, charge: Charge) -> None:
        """Charge nothing."""


class WireClient:
    """One client in one round.

    `sent` and `heard`: bytes of bodies; `took`: processor seconds by stage.
    """

    def __init__(self, http: httpx.Client, offer: RoundOffer, draw: Draw, threads: int = 1) -> None:
        self.http, self.offer, self._draw, self._threads = http, offer, draw, threads
        assert offer.manifest.terms is not None
        self.terms = offer.manifest.terms
        self.sent = self.heard = 0
        self.took: dict[str, float] = {}
        terms = self.terms
        self._step: Step = self._timed("keys", lambda: step_of(begin_sum(terms)))
        self._is_sent = False

    @classmethod
    def joining(cls, http: httpx.Client, release: str, task: str, draw: Draw) -> WireClient | None:
        """Check in; return None if there is no place."""
        request = {"protocol": PROTOCOL_VERSION, "release": short_release(release), "tasks": [task]}
        answer = http.post("/v1/rounds/check-in", json=request).raise_for_status()
        if answer.status_code == 204:
            return None
        signed = SignedOffer.model_validate_json(answer.content)
        return cls(http, verify_offer(signed, signed.public_key), draw)

    @property
    def stage(self) -> SumStage:
        """The stage whose message is being sent or was sent last."""
        return self._step.state.stage

    @property
    def state(self) -> SumState:
        return self._step.state

    def send(self) -> httpx.Response:
        """Send the current message, again if it was sent before."""
        sealed = self._step.sealed
        answer = self.http.put(self._path(), content=sealed.payload, headers={"Content-Type": sealed.content_type})
        if answer.is_success and not self._is_sent:
            self._is_sent = True
            self.sent += len(sealed.payload)
        return answer

    def ask(self) -> httpx.Response:
        """Request the answer of the current stage."""
        return self.http.get(self._path())

    def receive(self, reply: Reply) -> None:
        """Compute the next message from the stored state."""
        state, payload = self._step.state, self._step.sealed.payload
        part = SumParticipant(state, self._contribution(), Uncharged(), payload=payload, threads=self._threads)
        self._step, self._is_sent = self._timed(FOLLOWING[state.stage], lambda: part.receive(reply)), False

    def go_on(self) -> bool:
        """Send messages and poll as far as the server's answers allow; return True if this client is done.

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
            self.receive(ANSWERS[self.stage].model_validate_json(answer.content))

    def _is_over(self, answer: httpx.Response) -> bool:
        """Return whether this client's vector is in the sum and the others need nothing more from it."""
        summed = self.stage in ("masked", "agree", "unmask")
        if summed and answer.status_code == 409 and answer.json()["type"].endswith(":round-closed"):
            return True
        answer.raise_for_status()
        return False

    def _path(self) -> str:
        return f"/v1/rounds/{self.offer.manifest.round}/{self.stage}/{self.offer.pseudonym}"

    def _contribution(self) -> Contribution:
        if self.stage != "complaints":
            return NO_CONTRIBUTION
        protection = secure_sum_of(self.offer.manifest.protection)
        layout = protection.layout(self.offer.manifest.shapes, self.terms)
        return Contribution(layout.encode({"x": self._draw(layout.coordinates)}, 1), NO_CONTRIBUTION.charge)

    def _timed(self, name: str, work: Callable[[], Step]) -> Step:
        started = time.thread_time()
        result = work()
        self.took[name] = time.thread_time() - started
        return result


def drive(clients: Collection[WireClient], wait_sec: float = 0.05) -> None:
    """Run all clients to the end, each in turn as far as it can go."""
    left = list(clients)
    while left:
        before = [one.stage for one in left]
        left = [one for one in left if not one.go_on()]
        if [one.stage for one in left] == before:
            time.sleep(wait_sec)

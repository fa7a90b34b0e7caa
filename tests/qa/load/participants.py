"""Devices that only take part in rounds: real keys, masks and shares, and vectors of zeros.

These are valid for every system: a device that has learnt nothing contributes zeros, and the sum leaves the weights.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
import numpy as np

from backend.federation.protections.secure_sum import secure_sum_of
from backend.operations.admin_client import Operator
from device_app.privacy.secagg.messages import NO_CONTRIBUTION, Contribution
from experiments.bench.secagg_clients import WireClient
from protocol.rounds import RoundStatus

ENDED = ("applied", "failed")
JOINED_IN = ("open", "keys")
COME_LATER = (429, 502, 503, 504)
POLL_SEC, ROUND_SEC = 0.2, 120.0
T = TypeVar("T")


class IdleClient(WireClient):
    """Sends zeros for every tensor of the round. masked_at: when its vector was received, in monotonic seconds."""

    masked_at: float | None = None

    def send(self) -> httpx.Response:
        """Send as `WireClient` does."""
        stage, answer = self.stage, super().send()
        if stage == "masked" and answer.is_success and self.masked_at is None:
            self.masked_at = time.monotonic()
        return answer

    def _contribution(self) -> Contribution:
        if self.stage != "complaints":
            return NO_CONTRIBUTION
        layout = secure_sum_of(self.offer.manifest.protection).layout(self.offer.manifest.shapes, self.terms)
        nought = {name: np.zeros(shape) for name, shape in self.offer.manifest.shapes.items()}
        return Contribution(layout.encode(nought, 1), NO_CONTRIBUTION.charge)


@dataclass
class Burst:
    """A round whose devices all arrive at once.

    Args:
        http: connections of these devices.
        operator: who opens the round.
        threads: devices that send at the same time.
        seconds: of a round.
    """

    http: httpx.Client
    operator: Operator
    threads: int = 8
    seconds: float = ROUND_SEC
    masked_at: list[float] = field(default_factory=list)
    """When the vectors of the last round were received."""
    later: Counter[str] = field(default_factory=Counter)
    """What devices were told, or what became of their connections, before they asked again."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def play(self, system: str, cohort: int) -> tuple[RoundStatus, float]:
        """Return how the round ended, and how long it took. Raises OperatorRefused, HTTPStatusError."""
        began = time.monotonic()
        opened = self.operator.open_round(
            system, cohort=cohort, cohort_minimum=max(2, cohort // 2), seconds=self.seconds
        )
        assert opened.task is not None
        task, release = opened.task, opened.release
        with ThreadPoolExecutor(self.threads, thread_name_prefix="devices") as threads:
            joined = list(threads.map(lambda _: self._joined(opened.round, release, task), range(cohort)))
            left = [each for each in joined if each is not None]
            while left:
                over = list(threads.map(lambda one: self._patiently(one.go_on), left))
                left = [one for one, done in zip(left, over, strict=True) if not done]
                if self.operator.status(opened.round).state in ENDED:
                    break
                time.sleep(POLL_SEC)
        self.masked_at = sorted(each.masked_at for each in joined if each is not None and each.masked_at is not None)
        *_, ended = self.operator.follow(opened)
        return ended, time.monotonic() - began

    def _joined(self, round_id: str, release: str, task: str) -> IdleClient | None:
        """Return a place, drawn at each check-in among all waiting devices; None once there are no more."""
        while True:
            made = self._patiently(lambda: IdleClient.joining(self.http, release, task, lambda size: np.zeros(size)))
            if made is not None:
                assert isinstance(made, IdleClient)
                return made
            if self.operator.status(round_id).state not in JOINED_IN:
                return None
            time.sleep(POLL_SEC)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Send again if the answer may come later."""
        while True:
            try:
                return ask()
            except httpx.HTTPStatusError as refused:
                if refused.response.status_code not in COME_LATER:
                    raise
                why, wait = str(refused.response.status_code), refused.response.headers.get("retry-after", "1")
            except httpx.TransportError as broken:
                why, wait = type(broken).__name__, "0.2"
            with self._lock:
                self.later[why] += 1
            time.sleep(float(wait))

"""Hours of a device in simulated time, against a server with a configurable mood that records its requests.

A private count is always open there. The background's own loops decide when something is requested; between their steps
the reader does nothing, or reads thirty stories, searches, likes and presses "New page". Nothing waits in real time.
"""

from __future__ import annotations

import heapq
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from device_app.background import Background
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings
from device_app.training.due_updates import DueUpdates
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.open_count import open_count

SESSION_SEC = 7_200.0
STORIES = 30
LIST_CHANGES_SEC = 1_500.0
"""Time between changes of the default list."""
TROUBLE_KINDS = ("kind", "busy", "slow", "any")
TROUBLE_SEC = 600.0
"""Duration of a server's outage."""
SMALL = {
    "recall_limit": 50,
    "default_list_limit": 50,
    "feed_size": 6,
    "sync_poll_sec": 300.0,
    "bodies_wait_sec": 0.0,
    "pool_limit": 0,
}
_NAMED = re.compile(r"[0-9a-f]{64}|(?<=/)[\w-]{32}(?=/|$)|(?<=/round-)\d+")


def without_ids(path: str) -> str:
    """Return the path with hashes, pseudonyms and round numbers replaced by `*`."""
    return _NAMED.sub("*", path)


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as the server sees it: seconds since the session began, and what was requested."""

    at_sec: float
    asked: str


class TroubledServer:
    """Answers as `FakeBackend` does, except in its outages, whose times are drawn from the session's seed."""

    def __init__(self, seed: int, trouble: str, clock: StillClock) -> None:
        chance = random.Random(f"server {seed}")
        self.backend = FakeBackend(pool=synthetic_pool(180, dim=16))
        self._count = open_count(self.backend, clock)
        self.received: list[ReceivedRequest] = []
        self._clock, self._began = clock, clock()
        kinds = {"kind": (), "busy": (429, 503), "slow": (0,), "any": (0, 429, 503)}[trouble]
        spans = [] if not kinds else [chance.uniform(0.05, 0.9) * SESSION_SEC for _ in range(3)]
        self._troubles = [(start, chance.choice(kinds), chance.choice([1, 40, 2_000])) for start in spans]

    @property
    def now_sec(self) -> float:
        """Seconds since the session began."""
        return (self._clock() - self._began).total_seconds()

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request, and record it."""
        now = self.now_sec
        self.received.append(ReceivedRequest(now, f"{request.method} {without_ids(request.url.path)}"))
        for start, kind, retry_after in self._troubles:
            if start <= now < start + TROUBLE_SEC:
                self._clock.go_on(10.0 if kind == 0 else 0.2)
                if kind == 0:
                    raise httpx.ReadTimeout("silent", request=request)
                problem = {"type": "urn:x", "title": "Busy", "status": kind, "detail": "come later"}
                headers = {"content-type": "application/problem+json", "retry-after": str(retry_after)}
                return httpx.Response(kind, json=problem, headers=headers)
        if request.url.path.startswith("/v1/rounds"):
            return self._count.handle_request(request)
        if request.url.path == "/v1/news/front":
            rows = np.arange(50) + 20 * int(now // LIST_CHANGES_SEC)
            text = self.backend._answer(self.backend.releases[-1], rows).model_dump_json()
            return self.backend._tagged(request, text, f"list-{rows[0]}")
        return self.backend.answer(request)


def reading(device: Device, chance: random.Random) -> Iterator[None]:
    """A reader's actions, one before each pause: thirty stories, and everything that leads to them."""
    device.interests.choose_sections(())
    device.reading.feed()
    yield
    for story in range(STORIES):
        cards = [card for listed in device.reading.explore() for card in listed.cards]
        if not cards:
            device.reading.feed(refresh=True)
            yield
            continue
        card = chance.choice(cards)
        device.reading.open(card.id)
        yield
        if story % 4 == 1:
            device.reading.feed(refresh=True)
            yield
        if story % 5 == 2:
            device.library.react(card.id, "like")
            device.library.search(card.title)
            yield
        if story % 10 == 3:
            device.library.save_search(card.title)
            device.interests.stance("topic", card.topic, "follow")
            device.training()
            yield
    if device.library.history().total:
        device.library.delete_click(device.library.history().entries[0].click_id)
    device.reading.feed(refresh=True)
    yield


def act_times(seed: int) -> list[float]:
    """The times of a reader's actions; for an idle reader, the times they would have had."""
    chance = random.Random(f"reader {seed}")
    return sorted(chance.uniform(30.0, SESSION_SEC) for _ in range(2 * STORIES + 4))


def session(
    folder: Path,
    seed: int,
    trouble: str,
    *,
    reads: bool,
    times: random.Random | None = None,
    spoil: Callable[[Device], None] = lambda device: None,
) -> list[ReceivedRequest]:
    """Return the server's requests in one session.

    times: the background's source of random times; spoil: damages the device.
    """
    clock = StillClock(NOW)
    server = TroubledServer(seed, trouble, clock)
    settings = DeviceSettings.model_validate({"data_dir": folder, "performance": SMALL})
    times = times or random.SystemRandom()
    updates = DueUpdates(clock, settings.performance.training_send_sec, times, lambda work: work(lambda: None))
    device = build_device(settings, transport=httpx.MockTransport(server.answer), clock=clock, updates=updates)
    spoil(device)
    background = Background(device, times)
    loops: dict[str, Iterator[float | None]] = {
        "sync": background.syncs(),
        "recall": background.recalls(),
        "texts": background.texts(),
        "training": background.trainings(),
    }
    due: list[tuple[float, str]] = [(0.0, name) for name in loops]
    if reads:
        acts = reading(device, random.Random(f"acts {seed}"))
        due += [(at, "reader") for at in act_times(seed)]
    heapq.heapify(due)
    texts_wait = False
    try:
        while due and due[0][0] < SESSION_SEC:
            at, name = heapq.heappop(due)
            clock.go_on(max(0.0, at - server.now_sec))
            if name == "reader":
                next(acts, None)
            else:
                pause = next(loops[name])
                if pause is None:
                    texts_wait = True
                else:
                    heapq.heappush(due, (server.now_sec + pause, name))
            if texts_wait and device.parts.bodies.waits():
                texts_wait = False
                heapq.heappush(due, (server.now_sec, "texts"))
    finally:
        device.close()
    return [one for one in server.received if one.at_sec < SESSION_SEC]

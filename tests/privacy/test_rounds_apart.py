"""A device behaves the same in rounds whether its reader reads thirty stories, is idle, or has never read.

The attacker is the server. It keeps rounds open, answers check-ins as it likes, and records each request with its time.
The test moves the clock: the device's own loop waits on it, and so do its computations, which take longer the more its
reader does. The regression: a device checked in only while its reader was idle, retried after exactly the second it was
given, and uploaded as soon as it had computed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from scipy.stats import ks_2samp

from device_app.background import Background
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import DeviceSettings, PerformanceSettings
from device_app.training.due_updates import DueUpdate, DueUpdates, Work
from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION, Problem
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.flaky_network import open_round
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.open_count import open_count
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

POLL_SEC = PerformanceSettings().training_poll_sec
STORIES = 30
AT_REST_SEC, READING_SEC, NEVER_SEC = 0.2, 1.5, 1e6
"""What a computation takes while nobody reads, while somebody does, and one that is starved of the processor."""
Seen = tuple[float, str, str, int]
"""Seconds since the start, method, path without what is drawn for the round, and bytes of the body."""


@dataclass
class Day:
    """The clock of one device, by which its loop waits, its reader acts, and its computations end."""

    clock: StillClock
    lasts_sec: float
    acts: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    work: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    computes_sec: Callable[[], float] = lambda: AT_REST_SEC

    def __post_init__(self) -> None:
        self.start = self.clock()

    @property
    def now_sec(self) -> float:
        return (self.clock() - self.start).total_seconds()

    def is_set(self) -> bool:
        return self.now_sec >= self.lasts_sec

    def wait(self, seconds: float) -> bool:
        """Let the time pass, and run everything due in it."""
        until = self.now_sec + seconds
        while due := sorted((one for one in [*self.acts, *self.work] if one[0] <= until), key=lambda one: one[0]):
            at, act = due[0]
            for queue in (self.acts, self.work):
                if due[0] in queue:
                    queue.remove(due[0])
                    break
            self.clock.now = self.start + timedelta(seconds=max(at, self.now_sec))
            act()
        self.clock.now = self.start + timedelta(seconds=until)
        return self.is_set()

    def beside(self, work: Work) -> None:
        """Make a computation end after its duration."""
        self.work.append((self.now_sec + self.computes_sec(), lambda: work(lambda: None)))


@dataclass
class WatchedRounds(httpx.BaseTransport):
    """The attacker's server, which records the requests about rounds."""

    inner: httpx.BaseTransport
    day: Day
    seen: list[Seen] = field(default_factory=list)
    refusal: tuple[int, dict[str, str]] | None = None
    slow_sec: float = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.startswith("/v1/rounds"):
            parts = path.split("/")
            named = path if len(parts) < 6 else "/".join(parts[:5])
            self.seen.append((round(self.day.now_sec, 3), request.method, named, len(request.read())))
            if self.slow_sec:
                self.day.wait(self.slow_sec)
        if path == "/v1/rounds/check-in" and self.refusal is not None:
            status, headers = self.refusal
            body = Problem(type="urn:ownfeed:problem:busy", title="Busy", status=status, detail="Later.")
            return httpx.Response(
                status,
                content=body.model_dump_json(),
                headers={"content-type": "application/problem+json", PROTOCOL_HEADER: str(PROTOCOL_VERSION), **headers},
            )
        return self.inner.handle_request(request)


def loop(device: Any, day: Day, seed: int) -> None:
    """Run the device's own training loop until the day is over."""
    for pause_sec in Background(device, random.Random(seed)).trainings():
        if day.wait(pause_sec):
            return


def reads(device: Device, day: Day, seed: int) -> None:
    """Read thirty stories at random times, every third found by a search and every other liked."""
    drawn = random.Random(f"reader {seed}")
    items = [card for section in device.reading.explore() for card in section.cards][:STORIES]
    assert len(items) == STORIES
    feed = device.reading.feed(refresh=True)
    shown = [item.card.id for item in feed.items]
    starts = drawn.uniform(0.1, 0.5) * day.lasts_sec

    def act(place: int) -> None:
        day.computes_sec = lambda: READING_SEC
        card = items[place]
        device.reading.view(feed.feed_id, shown[place : place + 2])
        if place % 3 == 0:
            device.library.search(card.title)
            device.library.save_search(card.title)
        device.reading.open(card.id, feed.feed_id)
        if place % 2:
            device.library.react(card.id, "like")

    for place in range(STORIES):
        day.acts.append((starts + place * 6.0 + drawn.uniform(0, 5.0), partial(act, place)))


def lived(
    folder: Path,
    *,
    reading: bool,
    seed: int = 5,
    refusal: tuple[int, dict[str, str]] | None = None,
    slow_sec: float = 0.0,
    lasts_sec: float = 600.0,
    computes_sec: float = AT_REST_SEC,
) -> tuple[list[Seen], float, MaliciousServer]:
    """Return the attacker's view of a reader's ten minutes, the cost of its counts, and the attacker."""
    backend, clock = FakeBackend(pool=synthetic_pool(160)), StillClock(NOW)
    server = open_count(backend, clock)
    day = Day(clock, lasts_sec, computes_sec=lambda: computes_sec)
    watched = WatchedRounds(server, day)
    settings = DeviceSettings.model_validate({"data_dir": folder, "performance": {"watch_backend": False}})
    send_sec = settings.performance.training_send_sec
    device = build_device(
        settings,
        transport=watched,
        chance=random.Random(seed),
        clock=clock,
        updates=DueUpdates(clock, send_sec, random.Random(seed), day.beside),
    )
    device.sync()
    device.reading.feed(refresh=True)
    while device.prefetch_step():
        pass
    if reading:
        reads(device, day, seed)
    watched.seen.clear()
    watched.refusal, watched.slow_sec = refusal, slow_sec
    loop(device, day, seed)
    assert device.library.history().total == (STORIES if reading else 0)
    cost = device.parts.ledger.total("counts")
    device.close()
    return watched.seen, cost, server


REFUSALS = {
    "503 and a second": (503, {"retry-after": "1"}),
    "429 and a second": (429, {"retry-after": "1"}),
    "503 alone": (503, {}),
    "503 and minutes": (503, {"retry-after": "60"}),
}


@pytest.mark.parametrize("slow_sec", [0.0, 7.0], ids=["at once", "slow"])
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refused_check_in_is_retried_at_times_independent_of_reading(
    tmp_path: Path, refusal: tuple[int, dict[str, str]], slow_sec: float
) -> None:
    rest, _, _ = lived(tmp_path / "rest", reading=False, refusal=refusal, slow_sec=slow_sec)
    read, _, _ = lived(tmp_path / "read", reading=True, refusal=refusal, slow_sec=slow_sec)
    assert rest == read
    asked = [at for at, _, path, _ in rest if path == "/v1/rounds/check-in"]
    assert len(asked) >= 5
    least = 60.0 if refusal[1].get("retry-after") == "60" else POLL_SEC / 2
    assert all(later - earlier >= least - 1e-3 for earlier, later in pairwise(asked)), asked


def test_poll_times_of_active_and_idle_readers_have_one_distribution(tmp_path: Path) -> None:
    """Each device draws its own pauses. With correct pauses the test fails once in a million runs."""
    pauses: dict[bool, list[float]] = {False: [], True: []}
    for reading, found in pauses.items():
        for seed in range(6):
            seen, _, _ = lived(
                tmp_path / f"{reading}{seed}",
                reading=reading,
                seed=2 * seed + reading,
                refusal=REFUSALS["503 and a second"],
            )
            asked = [at for at, _, path, _ in seen if path == "/v1/rounds/check-in"]
            found += np.diff(asked).tolist()
    assert min(map(len, pauses.values())) > 150
    assert ks_2samp(pauses[False], pauses[True]).pvalue > 1e-6
    every = np.concatenate([*pauses.values()])
    assert abs(every.mean() - POLL_SEC) < 5 * POLL_SEC / math.sqrt(12 * len(every))


def test_count_messages_leave_at_times_independent_of_reading_and_computation(tmp_path: Path) -> None:
    """Covers check-in to the shares that open the sum. The attacker has invented all other members."""
    rest = lived(tmp_path / "rest", reading=False)
    lives = {
        "reads": lived(tmp_path / "read", reading=True),
        "starved": lived(tmp_path / "starved", reading=True, computes_sec=NEVER_SEC),
    }
    paths = [path for _, _, path, _ in rest[0]]
    for stage in ("keys", "shares", "complaints", "masked", "agree", "unmask"):
        assert any(path.endswith(f"/{stage}") for path in paths), stage
    sent = [at for at, method, path, _ in rest[0] if method == "PUT" and path.endswith("/masked")]
    joined = next(at for at, _, path, _ in rest[0] if path == "/v1/rounds/check-in")
    assert 2.0 <= sent[0] - joined <= 6.0 + 1.5, "a drawn time, and at most a pause more"
    assert rest[1] > 0
    for name, life in lives.items():
        assert [each[:3] for each in life[0]] == [each[:3] for each in rest[0]], name
        assert life[1] == rest[1], name


def test_comparison_detects_devices_that_send_updates_as_soon_as_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This was once so: if devices sent at the end of the computation, the attacker would see who reads."""
    monkeypatch.setattr(DueUpdate, "is_due", lambda self, now: self._done.is_set())
    rest, _, _ = lived(tmp_path / "rest", reading=False)
    read, _, _ = lived(tmp_path / "starved", reading=False, computes_sec=5.0)
    assert [each[:3] for each in rest] != [each[:3] for each in read]


@pytest.fixture
def rounds(tmp_path: Path) -> Callable[..., tuple[list[Seen], float]]:
    """Run an honest backend's round under local noise, for a reader who reads, is at rest, or never read."""
    made = 0

    def take_part(system: str, who: str) -> tuple[list[Seen], float]:
        nonlocal made
        made += 1
        folder = tmp_path / str(made)
        (folder / "backend").mkdir(parents=True)
        backend = BackendRig.make(folder / "backend", StillClock(NOW + timedelta(days=1)))
        inner = InProcess(backend.app)
        day = Day(backend.clock, 120.0)
        watched = WatchedRounds(inner, day)
        pool = synthetic_pool(240, dim=DIM)
        updates = DueUpdates(backend.clock, 4.0, random.Random(3), day.beside)
        device = DeviceRig(folder / "device.sqlite", backend.clock, watched, updates=updates)
        device.sync()
        if who != "never read":
            device.read(simulated_reader(pool, np.random.default_rng(1)), pool)
        if who == "reads":

            def click(place: int) -> None:
                day.computes_sec = lambda: READING_SEC
                device.stores.impressions.record(f"now {place}", [pool.cards[place].id], backend.clock())
                device.stores.clicks.add(pool.cards[place].id, f"now {place}", backend.clock())

            day.acts += [(2.0 * place, partial(click, place)) for place in range(STORIES)]
        open_round(backend, system, cohort=2, minimum=1, seconds=600)
        watched.seen.clear()
        parts = SimpleNamespace(policy=SimpleNamespace(own=device.privacy), watch=None)
        host = SimpleNamespace(
            settings=SimpleNamespace(performance=PerformanceSettings()),
            parts=parts,
            train_step=device.trainer.step,
            sync=lambda: None,
            copy_step=lambda: None,
            damage=lambda: None,
        )
        loop(host, day, 7)
        assert backend.coordinator.status("round-1").uploaded == 1
        spent = device.ledger.spent_today("training")
        device.stop()
        inner.close()
        return watched.seen, spent

    return take_part


@pytest.mark.parametrize("system", ["uni_fedrec", "small_ranker/local/mean"])
def test_round_with_local_noise_hides_who_reads(rounds: Callable[..., tuple[list[Seen], float]], system: str) -> None:
    """Compares requests, times, lengths of bodies and the price.

    Regression: a device whose reader had fewer than five clicks didn't check in.
    """
    rest, spent = rounds(system, "is at rest")
    (sent,) = [at for at, method, _, _ in rest if method == "PUT"]
    joined = next(at for at, _, path, _ in rest if path == "/v1/rounds/check-in")
    assert 2.0 <= sent - joined <= 6.0 + 1.5
    for who in ("reads", "never read"):
        assert rounds(system, who) == (rest, spent), who

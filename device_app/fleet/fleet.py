"""Many readers in one process, each with a complete device (store, ledger, log).

They share only loaded models.
"""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

import numpy as np

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, DeviceError
from device_app.feed.model_cache import ModelCache
from device_app.fleet.faults import FaultRates, InjectedFault
from device_app.fleet.simulated_interests import SimulatedInterests
from device_app.settings import DeviceSettings
from device_app.training.participant import Outcome, may_pass
from device_app.uplink.faulty_transport import FaultyTransport

WORKERS = 2
"""Number of devices working at the same time.

The machine's cores are the limit, not the network.
"""
PAGE_CACHE_KIB = 256
"""Size of each device's database cache.

Sixty caches of the usual size would slowly fill memory with what the system caches of the same files anyway.
"""
ENOUGH_CLICKS = 8
LEAST_VISITS = 2
"""Minimum number of visits.

A sample is a click with clicks of earlier visits before it, so a single visit teaches nothing.
"""
FOUND_OPENED = 3
FEEDS_LIMIT = 10
"""A reader gives up after this many feeds in which it opens nothing."""


@dataclass
class Member:
    """One simulated reader.

    Its interests are drawn once it has seen the default list; a replayed reader has none. network injects its faults,
    if the fleet has any; injected is the fault in the current round.
    """

    device: Device
    rng: np.random.Generator
    interests: SimulatedInterests | None = None
    network: FaultyTransport | None = None
    injected: InjectedFault | None = None


class Fleet:
    """Builds, drives and closes the devices.

    Errors of one device are counted and never stop the others. If the server is too busy to answer, the request is
    retried at the time that the server states.
    """

    def __init__(
        self,
        settings: DeviceSettings,
        count: int,
        *,
        seed: int,
        prefix: str = "fleet",
        faults: FaultRates | None = None,
    ) -> None:
        """Open `count` devices under settings.data_dir; sends no request yet. Raises StoreBroken."""
        self._model_cache = ModelCache(ranker=settings.feed.ranker, threads=1)
        self._blobs = settings.data_dir / "devices" / f"{prefix}-blobs"
        self.faults = faults
        # No real reader uses these devices, and all share one machine.
        performance = settings.performance.model_copy(
            update={"training_send_sec": 0.0, "page_cache_kib": PAGE_CACHE_KIB}
        )
        self.members: list[Member] = []
        self.failures: list[str] = []
        self._closing = Event()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="fleet")
        try:
            for number in range(count):
                own = settings.model_copy(update={"profile": f"{prefix}-{number:04d}", "performance": performance})
                network = None if faults is None else FaultyTransport()
                device = build_device(own, transport=network, model_cache=self._model_cache, blob_folder=self._blobs)
                self.members.append(Member(device, np.random.default_rng([seed, number]), network=network))
        except BaseException:
            self.close()
            raise

    def each(self, step: Callable[[Member], object]) -> Iterator[int]:
        """Run `step` for every member, a few at a time; yields the number done after each."""
        futures = [self._pool.submit(self._guarded, step, member) for member in self.members]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            yield done

    def run(self, step: Callable[[Member], object]) -> None:
        """Run `step` for every member and wait."""
        for _ in self.each(step):
            pass

    def releases(self) -> dict[str, int]:
        """Return how many devices hold each release."""
        held: dict[str, int] = {}
        for member in self.members:
            release = member.device.release()
            name = release.manifest.release if release else "none"
            held[name] = held.get(name, 0) + 1
        return held

    def draw_faults(self) -> None:
        """Draw every member's fault for the next round."""
        for member in self.members:
            if self.faults is not None and member.network is not None:
                member.injected = self.faults.draw(member.rng)
                if member.injected is None:
                    member.network.expect(None)
                else:
                    member.network.expect(member.injected.fault, member.injected.message, member.injected.offset_steps)

    def start_again(self, member: Member) -> None:
        """Restart a crashed device from its disk."""
        settings, network = member.device.settings, FaultyTransport()
        member.device.close()
        member.network = network
        member.device = build_device(
            settings, transport=network, model_cache=self._model_cache, blob_folder=self._blobs
        )

    def close(self) -> None:
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for member in self.members:
            member.device.close()

    def _guarded(self, step: Callable[[Member], object], member: Member) -> None:
        """Run a step; while the server is busy, wait and retry, until the fleet closes."""
        try:
            patiently(
                lambda: step(member),
                lambda trouble: is_busy(trouble) and not self._closing.is_set(),
                sleep=self._closing.wait,
            )
        except DeviceError as trouble:
            self.failures.append(f"{member.device.settings.profile}: {trouble}")


def warm_up(member: Member) -> None:
    """Simulate a reader's first visits, until there is enough to learn from.

    The device syncs, the reader picks sections and reads.
    """
    device = member.device
    device.sync()
    if member.interests is None:
        cards = [card for section in device.reading.explore() for card in section.cards]
        member.interests = SimulatedInterests.drawn(cards, member.rng)
        device.interests.choose_sections(member.interests.sections)
    clicks = device.parts.stores.clicks
    for visit in range(FEEDS_LIMIT):
        if clicks.count() >= ENOUGH_CLICKS and (visit == 0 or visit >= LEAST_VISITS):
            return
        read(member)


def search(member: Member) -> int:
    """Follow the favourite topic, save a search for it, and open some results.

    Once per reader. The device's other view learns from these. Returns the number of opened stories.
    """
    device = member.device
    if member.interests is None or device.parts.stores.searches.saved():
        return 0
    _, topic = max(member.interests.favourites, key=member.interests.favourites.__getitem__)
    device.interests.stance("topic", topic, "follow")
    device.library.save_search(topic)
    found = device.library.search(topic).cards[:FOUND_OPENED]
    for card in found:
        device.reading.open(card.id, found=True)
    return len(found)


def read(member: Member) -> int:
    """Simulate a later visit and return its number of clicks.

    The device requests candidates; then the reader views all of a new page and opens stories that match its interests.
    """
    member.device.recall_step()
    feed = member.device.reading.feed(refresh=True)
    member.device.reading.view(feed.feed_id, [item.card.id for item in feed.items])
    opened = member.interests.opened(feed, member.rng) if member.interests else []
    for item in opened:
        member.device.reading.open(item.card.id, feed.feed_id)
    while member.device.prefetch_step():
        pass
    return len(opened)


def train(member: Member) -> Outcome:
    """Try once to take part in a round."""
    return member.device.train_step()


def catch_up(member: Member) -> bool:
    """Sync; return True if a new release was swapped in."""
    return member.device.sync()


T = TypeVar("T")

TRIES = 30
WAIT_SEC = 1.0
WAIT_LIMIT_SEC = 60.0
BUSY = (429, 503)
CHANCE: random.Random = random.SystemRandom()


def is_busy(trouble: DeviceError) -> bool:
    """Return whether the server said that it is too busy now."""
    return isinstance(trouble, BackendRefused) and trouble.problem.status in BUSY


def passes(trouble: DeviceError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(trouble, BackendRefused):
        return is_busy(trouble) or may_pass(trouble)
    return isinstance(trouble, BackendUnreachable | AnswerMalformed)


def pause_sec(trouble: DeviceError, tries: int = 0, chance: random.Random = CHANCE) -> float:
    """Return how many seconds to wait before the next try.

    That is the server's Retry-After if given, else it doubles each time. Up to half as much is added at random, so that
    a fleet doesn't return all at once.
    """
    requested_sec = trouble.retry_after_sec if isinstance(trouble, BackendRefused) else None
    wanted = min(WAIT_LIMIT_SEC, WAIT_SEC * 2 ** min(tries, 10)) if requested_sec is None else requested_sec
    return wanted * chance.uniform(1.0, 1.5)


def patiently(
    step: Callable[[], T],
    waits: Callable[[DeviceError], bool] = is_busy,
    *,
    tries: int | None = TRIES,
    sleep: Callable[[float], object] = time.sleep,
    chance: random.Random = CHANCE,
) -> T:
    """Return what `step` returns, retrying while its error is worth waiting for.

    Raises the last error after this many tries (None: never), and any other error at once.
    """
    done = 0
    while True:
        try:
            return step()
        except DeviceError as trouble:
            done += 1
            if not waits(trouble) or (tries is not None and done >= tries):
                raise
            sleep(pause_sec(trouble, done - 1, chance))

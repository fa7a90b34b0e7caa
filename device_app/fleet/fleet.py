"""Many readers in one process, each with a whole device (store, ledger, byte log); only loaded models are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event

import numpy as np

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import DeviceError
from device_app.feed.model_cache import ModelCache
from device_app.fleet.faults import FaultRates, InjectedFault
from device_app.fleet.retrying import is_busy, patiently
from device_app.fleet.simulated_interests import SimulatedInterests
from device_app.settings import DeviceSettings
from device_app.training.participant import Outcome
from device_app.uplink.faulty_transport import FaultyTransport

WORKERS = 2
"""Devices at work at the same time: the machine's cores are the limit, not the network."""
PAGE_CACHE_KIB = 256
"""Of each device's database in memory: sixty caches of the usual size would fill over hours with what the system keeps
of the same files anyway."""
ENOUGH_CLICKS = 8
LEAST_VISITS = 2
"""A sample is a click with earlier visits' clicks before it, so one visit, however busy, teaches nothing."""
FOUND_OPENED = 3
FEEDS_LIMIT = 10
"""A reader whose first feeds tempt it to nothing gives up after so many."""


@dataclass
class Member:
    """One simulated reader. Its tastes are drawn when it has seen the default list; a replayed reader has none.

    network is where its faults strike, if the fleet has any; strike, which one does in the round under way.
    """

    device: Device
    rng: np.random.Generator
    interests: SimulatedInterests | None = None
    network: FaultyTransport | None = None
    injected: InjectedFault | None = None


class Fleet:
    """Builds, drives and closes the devices. Errors of one device are counted and never stop the others; a backend that
    is too busy to answer is asked again when it says (`retrying`)."""

    def __init__(
        self,
        settings: DeviceSettings,
        count: int,
        *,
        seed: int,
        prefix: str = "fleet",
        faults: FaultRates | None = None,
    ) -> None:
        """Open `count` devices under settings.data_dir; no request is made yet. Raises StoreBroken."""
        self._model_cache = ModelCache(ranker=settings.feed.ranker, threads=1)
        self._blobs = settings.data_dir / "devices" / f"{prefix}-blobs"
        self.faults = faults
        # Nobody sits at these machines, and all of them are one.
        performance = settings.performance.model_copy(
            update={"training_idle_sec": 0.0, "page_cache_kib": PAGE_CACHE_KIB}
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
        """Run `step` for every member, a few at a time; yields how many are done after each."""
        futures = [self._pool.submit(self._guarded, step, member) for member in self.members]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            yield done

    def run(self, step: Callable[[Member], object]) -> None:
        """Run `step` for every member and wait."""
        for _ in self.each(step):
            pass

    def releases(self) -> dict[str, int]:
        """How many devices hold which release."""
        held: dict[str, int] = {}
        for member in self.members:
            release = member.device.release()
            name = release.manifest.release if release else "none"
            held[name] = held.get(name, 0) + 1
        return held

    def draw_faults(self) -> None:
        """Before a round: what befalls each member in it."""
        for member in self.members:
            if self.faults is not None and member.network is not None:
                member.injected = self.faults.draw(member.rng)
                if member.injected is None:
                    member.network.expect(None)
                else:
                    member.network.expect(member.injected.fault, member.injected.message, member.injected.lie_steps)

    def start_again(self, member: Member) -> None:
        """A device that crashed comes back with what is on its disk, and nothing else."""
        settings, network = member.device.settings, FaultyTransport()
        member.device.close()
        member.network = network
        member.device = build_device(
            settings, transport=network, model_cache=self._model_cache, blob_folder=self._blobs
        )

    def close(self) -> None:
        """Close every device."""
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for member in self.members:
            member.device.close()

    def _guarded(self, step: Callable[[Member], object], member: Member) -> None:
        """A backend that is busy is waited for, until the fleet closes."""
        try:
            patiently(
                lambda: step(member),
                lambda trouble: is_busy(trouble) and not self._closing.is_set(),
                sleep=self._closing.wait,
            )
        except DeviceError as trouble:
            self.failures.append(f"{member.device.settings.profile}: {trouble}")


def warm_up(member: Member) -> None:
    """A reader's first visits: catch up, pick sections, then read feeds until there is something to learn from."""
    device = member.device
    device.sync()
    if member.interests is None:
        cards = [card for section in device.explore() for card in section.cards]
        member.interests = SimulatedInterests.drawn(cards, member.rng)
        device.choose_sections(member.interests.sections)
    clicks = device.parts.stores.clicks
    for visit in range(FEEDS_LIMIT):
        if clicks.count() >= ENOUGH_CLICKS and (visit == 0 or visit >= LEAST_VISITS):
            return
        read(member)


def search(member: Member) -> int:
    """A settled reader follows the topic it likes most, keeps a search for it, and opens some of what that finds: what
    its device's other view learns from. Once for all; returns how many it opened."""
    device = member.device
    if member.interests is None or device.parts.stores.searches.saved():
        return 0
    _, topic = max(member.interests.favourites, key=member.interests.favourites.__getitem__)
    device.stance("topic", topic, "follow")
    device.save_search(topic)
    found = device.search(topic).cards[:FOUND_OPENED]
    for card in found:
        device.open(card.id, found=True)
    return len(found)


def read(member: Member) -> int:
    """One visit of a settled reader: a fresh feed, all of it looked at, and a click on what tempts; returns the number
    of clicks."""
    feed = member.device.feed(refresh=True)
    member.device.view(feed.feed_id, [item.card.id for item in feed.items])
    opened = member.interests.opened(feed, member.rng) if member.interests else []
    for item in opened:
        member.device.open(item.card.id, feed.feed_id)
    while member.device.prefetch_step():
        pass
    return len(opened)


def train(member: Member) -> Outcome:
    """One attempt to take part in a round."""
    return member.device.train_step()


def catch_up(member: Member) -> bool:
    """Look for a new release; True if it was swapped in."""
    return member.device.sync()

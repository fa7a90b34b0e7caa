"""The device's background loops: sync, recall, training, texts, copies, connection watch.

An error is shown to the reader and never ends a loop.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread

from device_app.device import Device
from device_app.errors import DeviceError
from device_app.process import fault_in_words
from device_app.training.participant import Outcome

log = logging.getLogger(__name__)

TEXTS_WAKE_SEC = 1.0
AFTER_TROUBLE_SEC = 5.0
STOP_WAIT_SEC = 15.0
COPY_FIRST_SEC, COPY_LOOK_SEC = 20.0, 300.0
"""Seconds from the first page until the first copy is considered, and mean seconds between later checks."""
FIRST_RECALL = (0.02, 0.2)
"""Fraction of the usual pause between first sync and first request for candidates.

Drawn uniformly from this range.
"""
SYNCED_LOOK_SEC = 1.0
SPREAD = (0.5, 1.5)
"""A pause is the configured one times a uniform draw from this range, whose mean is 1."""
AGAIN_SPREAD = (1.0, 2.0)
"""If the server asks for a pause, the device waits that long, times a draw from this range."""
SILENT_SEC, SILENT_FOR_SEC = 2.0, 300.0
"""Interval and duration of polls of a server that accepts connections but doesn't answer."""


class Background:
    """Runs a device's five threads, and one that watches its server if that is on the network.

    They start once and stop promptly. Polls for a release, polls for a round and requests for candidates are sent at
    independently drawn times, so that neither their rhythm nor their order links them to one device.

    Formal guarantees: these times are functions of the settings, of the draws and of the server's answers; they don't
    depend on anything that the reader does (tests/privacy/test_two_readers.py).

    Args:
        chance: source of the random times; cryptographic on a device.
    """

    def __init__(self, device: Device, chance: random.Random | None = None) -> None:
        self._device = device
        self._chance = chance or random.SystemRandom()
        self._stop = Event()
        self._outcome: Outcome | None = None
        self._threads = [
            Thread(target=self._run, args=(self.syncs(),), name="sync"),
            Thread(target=self._run, args=(self.recalls(),), name="recall"),
            Thread(target=self._run, args=(self.trainings(),), name="training"),
            Thread(target=self._attend_texts, name="texts"),
            Thread(target=self._copying, name="copy"),
        ]
        watch = device.parts.watch
        if watch is not None:
            self._threads.append(Thread(target=watch.run, args=(self._stop,), name="watch"))

    def start(self) -> None:
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def stop(self) -> None:
        """Ask all threads to stop and wait for them; a request in progress ends by its own timeout."""
        self._stop.set()
        self._device.parts.bodies.wake()
        for thread in self._threads:
            thread.join(timeout=STOP_WAIT_SEC)

    def running(self) -> tuple[str, ...]:
        """Return the names of the running threads."""
        return tuple(thread.name for thread in self._threads if thread.is_alive())

    def syncs(self) -> Iterator[float]:
        """Run sync steps; yields the seconds until the next."""
        self._guarded("sync", self._device.first_sync)
        while True:
            yield self._until_next_sync() * self._chance.uniform(*SPREAD)
            self._guarded("sync", self._device.sync)

    def recalls(self) -> Iterator[float]:
        """Run requests for candidates; yields the seconds until the next.

        A longer pause requested by the server is respected.
        """
        device, mean_sec = self._device, self._device.settings.performance.recall_poll_sec
        while device.parts.syncing.last_at is None:
            yield SYNCED_LOOK_SEC
        yield mean_sec * self._chance.uniform(*FIRST_RECALL)
        asked_sec = [0.0]

        def recall() -> None:
            asked_sec[0] = device.recall_step() or 0.0

        while True:
            asked_sec[0] = 0.0
            self._guarded("recall", recall)
            yield max(mean_sec * self._chance.uniform(*SPREAD), asked_sec[0] * self._chance.uniform(*AGAIN_SPREAD))

    def texts(self) -> Iterator[float | None]:
        """Run requests for texts; yields the seconds until the next, or None to wait for a list."""
        while True:
            with_trouble = self._guarded("texts", self._fetch_waiting)
            yield AFTER_TROUBLE_SEC * self._chance.uniform(*SPREAD) if with_trouble else None

    def _fetch_waiting(self) -> None:
        while not self._stop.is_set() and self._device.prefetch_step():
            pass

    def _attend_texts(self) -> None:
        with self._device.parts.bodies.attended():
            self._run(self.texts())

    def _run(self, pauses: Iterator[float | None]) -> None:
        for seconds in pauses:
            if seconds is None:
                self._device.parts.bodies.wait_for_list(self._stop, TEXTS_WAKE_SEC)
            else:
                self._stop.wait(seconds)
            if self._stop.is_set():
                return

    def trainings(self) -> Iterator[float]:
        """Run training steps, the first after a random delay; yields the seconds until the next."""
        mean_sec = self._device.settings.performance.training_poll_sec
        yield mean_sec * self._chance.random()
        while True:
            self._outcome = None
            self._guarded("training", self._train)
            yield self._until_next_step(mean_sec)

    def _train(self) -> None:
        """Run a training step if the reader allows any kind of participation."""
        settings = self._device.parts.policy.own
        if settings.training or settings.counting:
            self._outcome = self._device.train_step()

    def _until_next_step(self, seconds: float) -> float:
        """Return a randomly drawn number of seconds, at least what the server asks for.

        It is drawn around the usual pause, or around that of a participation that waits. It doesn't depend on what the
        reader does. The server can only lengthen a pause, and equally for every device: if an answer could bring the
        next request closer, the server could keep polling a device and time each answer. The requested pause is
        randomised too, because an exact one would mark the device that it was given to.
        """
        outcome = self._outcome
        usual = seconds if outcome is None or outcome.again_sec is None else outcome.again_sec
        requested_sec = 0.0 if outcome is None else outcome.not_before_sec
        return max(usual * self._chance.uniform(*SPREAD), requested_sec * self._chance.uniform(*AGAIN_SPREAD))

    def _copying(self) -> None:
        if not self._stop.wait(COPY_FIRST_SEC):
            self._every("copy", self._device.copy_step, lambda: COPY_LOOK_SEC)

    def _until_next_sync(self) -> float:
        """Return the mean seconds until the next sync.

        They depend on the outcome of earlier syncs and on the watched connection, never on what the reader does. A
        device without a list can show nothing, so it polls as often as if the server didn't answer. So does one whose
        own server prepares its first release.
        """
        usual, watch = self._device.settings.performance.sync_poll_sec, self._device.parts.watch
        syncing, own = self._device.parts.syncing, self._device.own_server
        if own is not None and own.preparing is not None:
            return min(usual, SILENT_SEC)
        since_sec, is_new = syncing.silent_since_sec, syncing.last_at is None and not self._device.reading.has_list()
        if since_sec is None or time.monotonic() - since_sec > SILENT_FOR_SEC:
            return usual
        if not is_new and (watch is None or watch.lost):
            return usual
        return min(usual, SILENT_SEC)

    def _every(self, name: str, step: Callable[[], object], seconds: Callable[[], float]) -> None:
        while not self._stop.is_set():
            self._guarded(name, step)
            self._stop.wait(seconds() * self._chance.uniform(*SPREAD))

    def _guarded(self, name: str, step: Callable[[], object]) -> bool:
        """Run a step and return whether it failed.

        `Device` has already recorded the error for the status page.
        """
        try:
            step()
        except DeviceError as trouble:
            log.info("%s: %s", name, trouble)
            return True
        except Exception as fault:
            damaged = self._device.damage()
            if damaged is not None:  # reading a damaged database can break anything
                log.info("%s: %s", name, damaged)
            else:
                log.error("%s failed; the loop goes on: %s", name, fault_in_words(fault))
            return True
        return False

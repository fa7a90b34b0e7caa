"""The device's background loops: keeping up, training, fetching texts, copying the databases, watching the backend.

An error is shown and never ends a loop.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from threading import Event, Thread

from device_app.device import Device
from device_app.errors import DeviceError
from device_app.logs import fault_in_words

log = logging.getLogger(__name__)

TEXTS_WAKE_SEC = 1.0
AFTER_TROUBLE_SEC = 5.0
STOP_WAIT_SEC = 15.0
COPY_FIRST_SEC, COPY_LOOK_SEC = 20.0, 300.0
"""The first look at whether a copy is due comes when the first page is out, the others so far apart on average."""
SPREAD = (0.5, 1.5)
"""A pause is so many times what the settings say, drawn uniformly: the mean stays."""
AGAIN_SPREAD = (1.0, 2.0)
"""A backend that asks to be left alone for a time is left alone so many times as long."""
SILENT_SEC, SILENT_FOR_SEC = 2.0, 300.0
"""One that takes connections and does not answer is asked again so soon, for so long; then at the usual pace."""


class Background:
    """Four threads of one device, and one that watches its backend where that is on the network; started once and
    stopped promptly.

    Polls for a release and polls for a round come at times drawn for each anew, so that neither their rhythm nor their
    order shows that they are one device's.

    Args:
        chance: where the times come from; cryptographic on a device.
    """

    def __init__(self, device: Device, chance: random.Random | None = None) -> None:
        self._device = device
        self._chance = chance or random.SystemRandom()
        self._stop = Event()
        performance = device.settings.performance
        self._threads = [
            Thread(target=self._every, args=("sync", device.sync, self._until_next_sync), name="sync"),
            Thread(target=self._training, args=(performance.training_poll_sec,), name="training"),
            Thread(target=self._texts, name="texts"),
            Thread(target=self._copying, name="copy"),
        ]
        watch = device.parts.watch
        if watch is not None:
            self._threads.append(Thread(target=watch.run, args=(self._stop,), name="watch"))

    def start(self) -> None:
        """Start all threads."""
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def stop(self) -> None:
        """Ask all threads to stop and wait for them; a request under way ends by its own timeout."""
        self._stop.set()
        self._device.parts.bodies.wake()
        for thread in self._threads:
            thread.join(timeout=STOP_WAIT_SEC)

    def running(self) -> tuple[str, ...]:
        """Names of the threads that run."""
        return tuple(thread.name for thread in self._threads if thread.is_alive())

    def _train(self) -> None:
        """A step, and more of them while a secure sum waits for its next stage, or when the backend asks to come back.

        Of what the backend says, the pause is drawn anew: an exact one would be a mark, by which it knew the device
        again that it gave it to. A sum's stages are asked for under one pseudonym anyway.
        """
        while self._device.parts.ledger.settings.training or self._device.parts.ledger.settings.counting:
            outcome = self._device.train_step()
            again_sec = outcome.again_sec
            if again_sec is not None and outcome.state != "waiting":
                again_sec *= self._chance.uniform(*AGAIN_SPREAD)
            if again_sec is None or self._stop.wait(again_sec):
                return

    def _training(self, seconds: float) -> None:
        """The first look comes a drawn while after the first sync, which is due at once."""
        self._stop.wait(seconds * self._chance.random())
        self._every("training", self._train, lambda: seconds)

    def _copying(self) -> None:
        if not self._stop.wait(COPY_FIRST_SEC):
            self._every("copy", self._device.copy_step, lambda: COPY_LOOK_SEC)

    def _until_next_sync(self) -> float:
        """Seconds, on average. They follow from what became of earlier syncs and of the watch's connection, never from
        what the reader does."""
        usual, watch = self._device.settings.performance.sync_poll_sec, self._device.parts.watch
        since_sec = self._device.parts.syncing.silent_since_sec
        if watch is None or watch.lost or since_sec is None or time.monotonic() - since_sec > SILENT_FOR_SEC:
            return usual
        return min(usual, SILENT_SEC)

    def _every(self, name: str, step: Callable[[], object], seconds: Callable[[], float]) -> None:
        while not self._stop.is_set():
            self._guarded(name, step)
            self._stop.wait(seconds() * self._chance.uniform(*SPREAD))

    def _texts(self) -> None:
        bodies = self._device.parts.bodies
        while not self._stop.is_set():
            with_trouble = self._guarded(
                "texts", lambda: bodies.attend(self._stop, TEXTS_WAKE_SEC, self._device.prefetch_step)
            )
            if with_trouble:
                self._stop.wait(AFTER_TROUBLE_SEC)

    def _guarded(self, name: str, step: Callable[[], object]) -> bool:
        """Run a step; True if it failed. `Device` has recorded the error for the status page by then."""
        try:
            step()
        except DeviceError as trouble:
            log.info("%s: %s", name, trouble)
            return True
        except Exception as fault:
            damaged = self._device.damage()
            if damaged is not None:  # what is read from a damaged page can break anything
                log.info("%s: %s", name, damaged)
            else:
                log.error("%s failed; the loop goes on: %s", name, fault_in_words(fault))
            return True
        return False

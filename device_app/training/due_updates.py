"""Send each update at a random time, drawn when the device joins the round.

The time does not depend on how long the computation takes. Otherwise a server could tell from the time of an upload how
much its reader has read, or whether the reader was using the machine. So the computation runs in the background at the
lowest priority, and its result is used when the update is due. If it isn't ready by then, the update is zeros
(`Computation.nothing`).
"""

import logging
import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from device_app.privacy.protections.protection import ComputedUpdate
from device_app.training.computation import Computation

_log = logging.getLogger(__name__)
SPREAD = (0.5, 1.5)
"""An update is due this many times the settings' seconds after its place was taken, drawn uniformly."""
LOWEST = 19
Work = Callable[[Callable[[], None]], None]
"""Computes; calls its argument when its priority may be lowered."""
Beside = Callable[[Work], object]
"""Runs the work in the background."""


def in_a_thread(work: Work) -> None:
    """Run the work in a thread of its own, which ends with the process."""
    threading.Thread(target=work, args=(lower_priority,), name="update", daemon=True).start()


def at_this_priority() -> None:
    """Leave the priority unchanged."""


def lower_priority() -> None:
    """Give this thread the lowest priority, where threads have their own (Linux).

    Elsewhere the priority is that of the whole process, which also serves pages: the computation then competes with
    them as an equal.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)


@dataclass
class DueUpdate:
    """The update for one round.

    One thread may compute it and another take it. due_at: the earliest time it can be taken. begun_at: when the device
    joined. beside: runs the computation in the background; None: it is computed when it is taken.
    """

    computation: Computation
    begun_at: datetime
    due_at: datetime
    beside: Beside | None = None
    _started: bool = False
    _done: threading.Event = field(default_factory=threading.Event)
    _found: ComputedUpdate | None = None
    _fault: Exception | None = None

    def start(self) -> None:
        """Start the computation, if it hasn't started.

        Call it after a step, so that it doesn't delay the step's requests.
        """
        if self.beside is not None and not self._started:
            self._started = True
            self.beside(self.compute)

    def compute(self, lower: Callable[[], None] = at_this_priority) -> None:
        """Gather and compute; `take` raises any error."""
        try:
            self.computation.gather()
            lower()  # not before: who holds the store's lock must not be kept waiting
            self._found = self.computation.update()
        except Exception as fault:
            self._fault = fault
        finally:
            self._done.set()

    def is_due(self, now: datetime) -> bool:
        """Return whether it is due; setting the clock back makes it due at once."""
        return now >= self.due_at or now < self.begun_at

    def take(self) -> ComputedUpdate:
        """Return the update, or zeros if it can't be used.

        It can't be used if it isn't ready, or if the reader has deleted or muted some of its data.

        Raises errors that are the same for every reader, as `Computation.update`.
        """
        round_id = self.computation.round
        if self.beside is None:
            self.compute()
        if not self._done.is_set():
            _log.warning("the update for %s was not ready when it was due, and counts as zeros", round_id)
            return self.computation.nothing()
        if self._fault is not None:
            raise self._fault
        assert self._found is not None, "what is done has an update or a fault"
        return self._found if self.computation.unchanged() else self.computation.nothing()


class DueUpdates:
    """Draws the times, and sets how updates are computed.

    Args:
        clock: the device's.
        send_sec: mean seconds from joining a round to sending the update; 0: it is computed when it is taken, as in a
        simulation.
        chance: the source of random times; cryptographic on a device.
        beside: runs a computation in the background.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        send_sec: float = 0.0,
        chance: random.Random | None = None,
        beside: Beside = in_a_thread,
    ) -> None:
        self._clock, self._send_sec, self._beside = clock, send_sec, beside
        self._chance = chance or random.SystemRandom()

    def begin(self, computation: Computation) -> DueUpdate:
        """Prepare an update and draw when it is due."""
        now = self._clock()
        wait_sec = self._send_sec * self._chance.uniform(*SPREAD)
        beside = self._beside if self._send_sec else None
        return DueUpdate(computation, now, now + timedelta(seconds=wait_sec), beside)

"""What the reader allows this device to do now: settings, a pause, budgets, and whether the reader is reading."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from device_app.errors import NotEligible
from device_app.privacy.ledger import Ledger
from device_app.training.eligibility import Readiness, switched_on
from device_app.training.stored_samples import StoredSamples
from device_app.training.tasks import TASKS
from device_app.wire.ids import ReleaseId


class ReaderConsent:
    """Asked anew at every step: a reader may change its mind at any moment.

    Args:
        ledger: budget and, in its settings, what the reader accepts.
        reading: the reader's feeds and clicks.
        paused: whether the reader has paused training.
        idle_sec: how long the reader must have read nothing.
    """

    def __init__(
        self,
        ledger: Ledger,
        reading: StoredSamples,
        clock: Callable[[], datetime],
        *,
        paused: Callable[[], bool] = lambda: False,
        idle_sec: float = 0.0,
    ) -> None:
        self.ledger, self.paused = ledger, paused
        self._reading, self._clock, self._idle_sec = reading, clock, idle_sec

    def readiness(self, release: ReleaseId | None) -> Readiness:
        """What is known before any request, on a device with this release."""
        settings = self.ledger.settings
        return Readiness(
            switched_on=settings.training,
            paused=self.paused(),
            release=release,
            clicks=self._reading.count(),
            epsilon_left=self.ledger.left("training"),
            idle=self._idle_sec == 0 or self._reading.quiet_since(self._clock() - timedelta(seconds=self._idle_sec)),
            counting=settings.counting,
            counts_left=self.ledger.left("counts"),
        )

    def switched_on(self, task: str) -> bool:
        """Whether the reader lets a device take part in such a task, a pause apart."""
        kind = TASKS.get(task)
        return switched_on(self.ledger.settings, "training" if kind is None else kind.channel)

    def check(self, task: str) -> None:
        """Raise NotEligible if the reader has changed its mind meanwhile: the last moment is before the payment."""
        if self.paused() or not self.switched_on(task):
            raise NotEligible("its reader has paused training or switched it off meanwhile.", "off")

"""What of the reader left this device today, over all channels, for the sentence that its pages begin with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from device_app.privacy.budget import CHANNELS, Ledger
from device_app.privacy.modes import MODES
from device_app.stores import DeviceStores
from device_app.training.tasks import TASKS

SENT = frozenset({"summing", "uploaded", "applied"})
"""States of a part in a round in which something was sent for it."""


@dataclass(frozen=True)
class TodayView:
    """Counts of one day of the ledger (UTC).

    reports: new ones, each of which was paid for; one_number: whether the mode reports a number or a set that hides
    one; again: how often one that was paid for before was sent once more, which tells nothing new. counts: private
    counts; rounds: of training. spent_before: whether anything was paid for on any day, which an erase doesn't undo.
    """

    reports: int
    again: int
    counts: int
    rounds: int
    one_number: bool
    spent_before: bool

    def __bool__(self) -> bool:
        return bool(self.reports or self.again or self.counts or self.rounds)


def today_view(stores: DeviceStores, ledger: Ledger) -> TodayView:
    """Today's, from the ledger, whose charges an erase leaves; what cost nothing, from the logs that an erase takes.

    A charge comes before the bytes: what was paid for counts as sent.
    """
    day = ledger.day()
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    charges = {one.channel: one.charges for one in stores.ledger_entries.days() if one.day == day}
    charged = stores.ledger_entries.of_sums()
    uncharged_counts = sum(one.until >= midnight and one.round not in charged for one in stores.counted.list())
    reports = charges.get("reports", 0)
    return TodayView(
        reports=reports,
        again=max(0, stores.byte_log.sent_since("recall", midnight) - reports),
        counts=charges.get("counts", 0) + uncharged_counts,
        rounds=charges.get("training", 0) + _exact_rounds(stores, day),
        one_number=MODES[ledger.settings.mode].in_a_sentence,
        spent_before=any(ledger.total(channel) > 0 for channel in CHANNELS),
    )


def _exact_rounds(stores: DeviceStores, day: date) -> int:
    """Rounds of training of today whose sums carry no noise, so that no charge tells of them."""
    return sum(
        one.state in SENT and one.sent_bytes > 0 and one.epsilon == 0 and TASKS[one.task].channel == "training"
        for one in stores.participations.list()
        if one.task in TASKS and one.changed_at.astimezone(UTC).date() == day
    )

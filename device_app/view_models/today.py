"""What of the reader left this device today, over all channels, for the sentence that its pages begin with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from device_app.privacy.ledger import CHANNELS, Ledger
from device_app.privacy.modes import MODES
from device_app.privacy.moved_charges import MECHANISM as MOVED
from device_app.privacy.restored_copy import MECHANISM as RESTORED
from device_app.store.preferences import TAKEN_OVER
from device_app.stores import DeviceStores
from device_app.training.tasks import TASKS

SENT = frozenset({"summing", "uploaded", "applied"})
"""States of a part in a round in which something was sent for it."""
LEFT_BEFORE_ERASE = "left_before_erase"
"""The preference that an erase leaves: when it was, and how often something had left that day without a charge."""


@dataclass(frozen=True)
class TodayView:
    """Counts of one day of the ledger (UTC).

    reports: new ones, each of which was paid for; one_number: whether the mode reports a number or a set that hides
    one; again: how often one that was paid for before was sent once more, which tells nothing new. counts: private
    counts; rounds: of training. spent_before: whether anything was paid for on any day, which an erase doesn't undo.
    erased_at: when everything was last erased here, if ever. moved: whether another device's charges were taken over
    today, so that reports, counts and rounds are what both may have sent. up_to_limits: whether a charge of today
    stands for whatever may have been sent up to a limit, so that none of these numbers is known.
    """

    reports: int
    again: int
    counts: int
    rounds: int
    one_number: bool
    spent_before: bool
    erased_at: datetime | None = None
    moved: bool = False
    up_to_limits: bool = False

    def __bool__(self) -> bool:
        return bool(self.reports or self.again or self.counts or self.rounds)


def today_view(stores: DeviceStores, ledger: Ledger) -> TodayView:
    """Today's, from the ledger, whose charges an erase leaves; what cost nothing, from the logs that an erase takes and
    from the sums of them that it keeps.

    A charge comes before the bytes: what was paid for counts as sent.
    """
    day = ledger.day()
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    charges = {one.channel: one.charges for one in stores.ledger_entries.days() if one.day == day}
    left = left_so_far(stores, ledger)
    erased_at = (stores.preferences.get(LEFT_BEFORE_ERASE) or {}).get("at")
    moved_at = stores.preferences.get(TAKEN_OVER)
    return TodayView(
        reports=charges.get("reports", 0),
        again=left["again"],
        counts=charges.get("counts", 0) + left["counts"],
        rounds=charges.get("training", 0) + left["rounds"],
        one_number=MODES[ledger.settings.mode].in_a_sentence,
        spent_before=any(ledger.total(channel) > 0 for channel in CHANNELS),
        erased_at=None if erased_at is None else datetime.fromisoformat(erased_at),
        moved=moved_at is not None and datetime.fromisoformat(moved_at).date() == day,
        up_to_limits=stores.ledger_entries.charged_by((MOVED, RESTORED), midnight),
    )


def left_so_far(stores: DeviceStores, ledger: Ledger) -> dict[str, Any]:
    """How often something left today without a charge ('again', 'counts', 'rounds'), and until when ('at')."""
    day = ledger.day()
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    kept = stores.preferences.get(LEFT_BEFORE_ERASE)
    before = kept if kept and datetime.fromisoformat(kept["at"]).date() == day else {}
    charged = stores.ledger_entries.of_sums()
    since = datetime.fromisoformat(before["at"]) if before else midnight
    reports = stores.byte_log.sent_since("recall", since) - stores.ledger_entries.charges_since("reports", since)
    uncharged = sum(one.until >= midnight and one.round not in charged for one in stores.counted.list())
    return {
        "at": ledger.now().astimezone(UTC).isoformat(),
        "again": before.get("again", 0) + max(0, reports),
        "counts": before.get("counts", 0) + uncharged,
        "rounds": before.get("rounds", 0) + _exact_rounds(stores, day),
    }


def _exact_rounds(stores: DeviceStores, day: date) -> int:
    """Rounds of training of today whose sums carry no noise, so that no charge tells of them."""
    return sum(
        one.state in SENT and one.sent_bytes > 0 and one.epsilon == 0 and TASKS[one.task].channel == "training"
        for one in stores.participations.list()
        if one.task in TASKS and one.changed_at.astimezone(UTC).date() == day
    )

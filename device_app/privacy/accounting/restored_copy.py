"""Charge a device that was restored from a copy for all it may have spent since."""

from datetime import UTC, date, datetime, timedelta

from device_app.errors import StoreBroken
from device_app.privacy.accounting.cost_of_sums import RHO_ALONE
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import CHANNELS, Limits
from device_app.store.database import Database
from device_app.store.database_copy import mark_inside, unmark
from device_app.store.ledger_entries import LedgerEntry
from device_app.store.participations import CountLog

MECHANISM = "restored"
LONGEST_DAYS = 3_660
"""Oldest copy accepted, ten years: one that seems older means that a clock was never set."""
_DAY, _MOMENT = timedelta(days=1), timedelta(microseconds=1)


def charge_for_restored_copy(database: Database, ledger: Ledger) -> int:
    """Charge for every day since this database was copied.

    Returns the number of days, 0 if it isn't a copy. For the copy's day, today and every day between, each channel is
    charged the difference between its daily ceiling and what the copy knows of that day, and so are noisy sums with one
    share of noise each; all of it within the lifetime ceilings. Displays and clicks until now are excluded from all
    later counts, because they may already have been counted.

    Formal guarantees:

    - after this the ledger holds, for every UTC day, at least what was spent on it, and in all at least what was spent
      in all, for each kind of cost: a day's true spending never exceeded its ceiling, and the highest ceiling since the
      copy is stored in the copy (`Limits`). Restoring a copy, once or many times, gives no budget back;
    - it runs in the same transaction that removes the copy's mark, so a restored copy releases nothing before it;
    - epsilons of noisy sums are charged at one delta a day and channel. All sums of one day together cost no more than
      that by concentrated differential privacy, whose epsilon is subadditive in rho.

    It relies on the clock: days on which it was set forward, and back again before the copy was restored, are missed.

    Raises StoreBroken if the clock is before the copy, or more than ten years after it: nothing is charged then, and
    the database stays a copy.
    """
    mark = mark_inside(database)
    if mark is None:
        return 0
    now = ledger.now()
    first, last = mark.at.astimezone(UTC).date(), ledger.day()
    if not timedelta(0) <= last - first <= LONGEST_DAYS * _DAY:
        raise StoreBroken(
            database.path,
            f"it is a copy from {mark.at:%Y-%m-%d %H:%M} UTC, but this machine's clock says "
            f"{now.astimezone(UTC):%Y-%m-%d %H:%M} UTC. Set the clock first: what may have been spent since then is "
            "counted day by day",
        )
    try:
        limits = Limits.read(mark.limits).or_higher(Limits.of(ledger.ceilings))
    except ValueError as broken:
        raise StoreBroken(
            database.path, f"it is a copy, and the record of what may have been spent since is lost ({broken})"
        ) from None
    days = [first + number * _DAY for number in range((last - first).days + 1)]
    with ledger.repository.transaction():
        for day in days:
            at = now if day == last else _midnight(day + _DAY) - _MOMENT
            for entry in _missing(ledger, limits, day, at, f"copy of {mark.at:%Y-%m-%d}"):
                ledger.repository.append(entry)
        CountLog(database).pass_over(now)
        unmark(database)
    return len(days)


def _missing(ledger: Ledger, limits: Limits, day: date, at: datetime, subject: str) -> list[LedgerEntry]:
    """Return entries that raise one day's spending to its ceilings.

    The lifetime ceilings are kept.
    """
    repository, since, before = ledger.repository, _midnight(day), _midnight(day + _DAY)
    rho = _left(limits.rho_day, repository.rho_alone(since, before), limits.rho_life, repository.rho_alone())
    entries = []
    for channel in CHANNELS:
        epsilon = _left(
            limits.day[channel],
            repository.spent(channel, since, before),
            limits.life[channel],
            repository.total(channel),
        )
        # One account for the sums of all channels; every device has counts.
        parameters = {RHO_ALONE: rho} if channel == "counts" and rho > 0 else {}
        if epsilon > 0 or parameters:
            delta = 0.0 if channel == "reports" else limits.delta
            entries.append(LedgerEntry(at, channel, MECHANISM, parameters, epsilon, delta, "", subject))
    return entries


def _left(per_day: float, of_day: float, lifetime: float | None, in_all: float) -> float:
    today = per_day - of_day
    return max(0.0, today if lifetime is None else min(today, lifetime - in_all))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), tzinfo=UTC)

"""Import the charges of the reader's other device, so that moving brings no new budget."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from device_app.privacy.accounting.cost_of_sums import RHO_ALONE
from device_app.privacy.accounting.ledger import ROUNDING
from device_app.privacy.accounting.limits import CHANNELS, Limits
from device_app.privacy.accounting.restored_copy import LONGEST_DAYS
from device_app.store.database import Database
from device_app.store.exported import MovedCharge
from device_app.store.ledger_entries import LedgerEntry, LedgerRepository
from device_app.store.rows import from_us, to_us

MECHANISM = "moved"
EXPORTED_AT = "exported_at"
"""Parameter of such a charge: the export it was made for, as that file's time in microseconds since 1970."""
_DAY, _MOMENT = timedelta(days=1), timedelta(microseconds=1)
ChargeKey = tuple[int, str, str, tuple[tuple[str, float], ...], float, float]


def take_charges(database: Database, charges: Sequence[MovedCharge]) -> int:
    """Append the charges that this ledger lacks; returns how many.

    Call it in the transaction that imports the rest.

    Formal guarantees:

    - afterwards the ledger holds every charge it had, and every charge of `charges` as often as it occurs there: no
    charge is removed and no budget is given back, however often files are imported, in either direction;
    - a charge that both have, with equal time to the microsecond, channel, mechanism, parameters and cost, is kept
    once, so a reader who moves to the other device and back pays nothing twice. If two devices make the same charge in
      the same microsecond, they are counted as one. The subject of a charge isn't compared, because erasing blanks it.
    """
    repository = LedgerRepository(database)
    held = Counter(
        _key(to_us(one.at), one.channel, one.mechanism, one.parameters, one.epsilon, one.delta)
        for one in repository.all()
    )
    added = 0
    for one in sorted(charges, key=lambda charge: (charge.at, charge.id)):
        key = _key(one.at, one.channel, one.mechanism, one.parameters, one.epsilon, one.delta)
        if held[key]:
            held[key] -= 1
            continue
        repository.append(
            LedgerEntry(
                at=from_us(one.at),
                channel=one.channel,
                mechanism=one.mechanism,
                parameters=one.parameters,
                epsilon=one.epsilon,
                delta=one.delta,
                payload_sha256=one.payload_sha256,
                subject=one.subject,
            )
        )
        added += 1
    return added


def paid_since(repository: LedgerRepository, exported_at: datetime) -> list[LedgerEntry]:
    """Return the charges that an earlier import of this export added here.

    They cover what the other device may have spent after it made the export.
    """
    exported = float(to_us(exported_at))
    return [
        one for one in repository.all() if one.mechanism == MECHANISM and one.parameters.get(EXPORTED_AT) == exported
    ]


def charges_since(
    charges: Sequence[MovedCharge],
    limits: Limits,
    exported_at: datetime,
    now: datetime,
    paid: Sequence[LedgerEntry] = (),
) -> list[LedgerEntry]:
    """Return charges for what another device may have spent since it exported `charges`.

    Formal guarantees: for the day of the export, today and every day between, each cost is raised from what the other
    device had spent to its daily ceiling, within its lifetime ceilings; `limits` must be the highest that it has had
    since. So the two devices together have spent no more than a ledger with `charges` and these charges states. paid
    (`paid_since`) is what the ledger already holds for this very file, which isn't charged again: importing one file
    twice charges only the days since the first import. Two devices that export in the same microsecond count as one.

    Raises ValueError if the export is more than ten years old.
    """
    last = now.astimezone(UTC).date()
    first = min(last, exported_at.astimezone(UTC).date())
    if last - first > LONGEST_DAYS * _DAY:
        raise ValueError(f"exported_at: at most {LONGEST_DAYS} days ago, got {(last - first).days}")
    total: dict[str, float] = dict.fromkeys((*CHANNELS, RHO_ALONE), 0.0)
    by_day: Counter[tuple[date, str]] = Counter()
    spent: list[tuple[datetime, MovedCharge | LedgerEntry]] = [(from_us(one.at), one) for one in charges]
    spent += [(one.at, one) for one in paid]
    for when, one in spent:
        for name, price in ((one.channel, float(one.epsilon)), (RHO_ALONE, float(one.parameters.get(RHO_ALONE, 0)))):
            total[name] += price
            by_day[when.astimezone(UTC).date(), name] += price  # type: ignore[assignment]
    ceilings = {name: (limits.day[name], limits.life[name]) for name in CHANNELS}
    ceilings[RHO_ALONE] = limits.rho_day, limits.rho_life
    entries = []
    for number in range((last - first).days + 1):
        day = first + number * _DAY
        at = now if day == last else datetime.combine(day + _DAY, datetime.min.time(), tzinfo=UTC) - _MOMENT
        missing = {}
        for name, (per_day, lifetime) in ceilings.items():
            today = per_day - by_day[day, name]
            left = today if lifetime is None else min(today, lifetime - total[name])
            missing[name] = left if left > ROUNDING * per_day else 0.0
            total[name] += missing[name]
        for channel in CHANNELS:
            # One account for the sums of all channels; every device has counts.
            rho = missing[RHO_ALONE] if channel == "counts" else 0.0
            if missing[channel] > 0 or rho > 0:
                delta = 0.0 if channel == "reports" else limits.delta
                parameters = {EXPORTED_AT: float(to_us(exported_at))} | ({RHO_ALONE: rho} if rho > 0 else {})
                subject = f"export of {exported_at.astimezone(UTC):%Y-%m-%d}"
                entries.append(LedgerEntry(at, channel, MECHANISM, parameters, missing[channel], delta, "", subject))
    return entries


def _key(
    us: int, channel: str, mechanism: str, parameters: dict[str, float], epsilon: float, delta: float
) -> ChargeKey:
    named = tuple(sorted((name, float(value)) for name, value in parameters.items()))
    return us, channel, mechanism, named, float(epsilon), float(delta)

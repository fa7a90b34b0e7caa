"""Charge each release of data to its channel before anything leaves, or refuse it.

Every channel has a daily ceiling and may have a lifetime ceiling.
"""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime

from device_app.errors import BudgetSpent
from device_app.privacy.accounting.cost_of_sums import RHO_ALONE, SumsAlone
from device_app.privacy.accounting.limits import CHANNELS, Ceilings
from device_app.privacy.sealed import Charge
from device_app.store.ledger_entries import LedgerEntry, LedgerRepository

ROUNDING = 1e-9
"""Relative slack of the ceiling, so that three charges of 50.00000000000001 fit into 150."""


class Ledger:
    """The privacy account of this device.

    Three channels, each with a daily and a lifetime ceiling of pure epsilon.

    Formal guarantees:

    - the charges of a channel on one UTC day never exceed its ceiling (by more than one part in 10^9, for rounding). A
      span of 24 hours across midnight can hold the ceilings of two days;
    - the charges of a channel over the lifetime of the device never exceed its lifetime ceiling, if it has one;
    - the noisy sums of one UTC day, and of the device's lifetime if it has such a ceiling, never cost more than their
    ceilings even if no other device in them was real; this adds up their rho, at the ceilings' delta;
    - a charge is on the disk before `spend` returns (within an outer transaction: when that one ends), and nothing is
      sealed without it, so a crash can cost budget but never give it back;
    - charges add up (basic composition, which pure epsilon allows for adaptive releases); delta adds up too. Refusals
      depend on these sums alone; `privacy_loss` shows on the page the tighter figure of a sharper composition.

    The ledger counts what is charged; each mechanism states what one release costs. It binds this device only: the same
    reader on two devices has two ledgers.
    """

    def __init__(
        self, repository: LedgerRepository, ceilings: Callable[[], Ceilings], clock: Callable[[], datetime]
    ) -> None:
        """ceilings: returns those in force, which the reader may change at any time."""
        self.repository = repository
        self._ceilings = ceilings
        self._clock = clock
        self._listeners: list[Callable[[str], None]] = []

    @property
    def ceilings(self) -> Ceilings:
        return self._ceilings()

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the channel of each charge refused from now on."""
        self._listeners.append(listener)

    def spend(self, charge: Charge) -> LedgerEntry:
        """Record the charge, or raise BudgetSpent and record nothing.

        Raises ValueError for an unknown channel, or an epsilon or delta that is negative or not finite.
        """
        try:
            return self._spend(charge)
        except BudgetSpent:
            for listener in self._listeners:
                listener(charge.channel)
            raise

    def _spend(self, charge: Charge) -> LedgerEntry:
        per_day = self.per_day(charge.channel)
        for name, value in (("epsilon", charge.epsilon), ("delta", charge.delta)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} of a charge must be finite and not negative; got {value}")
        with self.repository.transaction():
            spent = self.spent_today(charge.channel)
            if spent + charge.epsilon > per_day * (1 + ROUNDING):
                raise BudgetSpent(charge.channel, charge.epsilon, max(0.0, per_day - spent))
            whole = self.lifetime(charge.channel)
            if whole is not None:
                total = self.total(charge.channel)
                if total + charge.epsilon > whole * (1 + ROUNDING):
                    raise BudgetSpent(charge.channel, charge.epsilon, max(0.0, whole - total), lifetime=True)
            if RHO_ALONE in charge.parameters:
                self.alone().check(charge.parameters[RHO_ALONE], self.ceilings)
            entry = LedgerEntry(
                at=self._clock(),
                channel=charge.channel,
                mechanism=charge.mechanism,
                parameters=charge.parameters,
                epsilon=charge.epsilon,
                delta=charge.delta,
                payload_sha256=charge.payload_sha256,
                subject=charge.subject,
            )
            self.repository.append(entry)
        return entry

    def day(self) -> date:
        """Today in UTC, the day that the daily ceilings apply to."""
        return self._clock().astimezone(UTC).date()

    def now(self) -> datetime:
        """Return the current time by the ledger's clock."""
        return self._clock()

    def per_day(self, channel: str) -> float:
        """Return the ceiling of a channel; raises ValueError for an unknown one."""
        return self.ceilings.day[_known(channel)]

    def lifetime(self, channel: str) -> float | None:
        """Return the lifetime ceiling of a channel, None if it has none.

        Raises ValueError for an unknown channel.
        """
        return self.ceilings.life[_known(channel)]

    def alone(self) -> SumsAlone:
        """Return the cost of all noisy sums if every other device was fake, today and in total."""
        return SumsAlone(self.repository.rho_alone(self._midnight()), self.repository.rho_alone())

    def spent_today(self, channel: str) -> float:
        """Return the pure epsilon charged since midnight UTC.

        A charge dated later than now (a clock set back) counts too.
        """
        return self.repository.spent(channel, self._midnight())

    def _midnight(self) -> datetime:
        return datetime.combine(self.day(), datetime.min.time(), tzinfo=UTC)

    def left(self, channel: str) -> float:
        """Return the pure epsilon that may still be charged today, under both ceilings; never below 0."""
        today = self.per_day(channel) - self.spent_today(channel)
        whole = self.lifetime(channel)
        return max(0.0, today if whole is None else min(today, whole - self.total(channel)))

    def total(self, channel: str) -> float:
        """Return the pure epsilon charged over the lifetime of the device."""
        return self.repository.total(channel)


def _known(channel: str) -> str:
    if channel not in CHANNELS:
        raise ValueError(f"channel {channel!r}: the ledger has {', '.join(CHANNELS)}")
    return channel

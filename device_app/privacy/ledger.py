"""The ledger: what each channel may cost a day and in all, spent before anything leaves, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime

from device_app.errors import BudgetSpent
from device_app.privacy.modes import MODES
from device_app.privacy.prices import RHO_ALONE
from device_app.privacy.sealed import Charge
from device_app.privacy.settings import PrivacySettings
from device_app.privacy.worst_case_sums import SumsAlone
from device_app.recall_frontier import ListChoice
from device_app.store.ledger_entries import LedgerEntry, LedgerRepository

CHANNELS = ("reports", "training", "counts")
ROUNDING = 1e-9
"""Relative slack of the ceiling, so that three charges of 50.00000000000001 fit into 150."""


class Ledger:
    """One account of all that leaves; three channels, each with ceilings of pure epsilon: a UTC day, and a lifetime.

    Formal guarantees:

    - the charges of a channel on one UTC day never exceed its ceiling (by more than one part in 10^9, for rounding).
      A span of 24 hours across midnight can hold the ceilings of two days;
    - the charges of a channel over the life of the device never exceed its lifetime ceiling, where it has one;
    - the noisy sums of one UTC day, and of the device's life where that has a ceiling, never cost more than
      `epsilon_per_day_alone` and `epsilon_lifetime_alone` if no other device in them was real, by adding up their rho
      alone, at `delta_per_sum`;
    - a charge is on the disk before `spend` returns (within an outer transaction: when that one ends), and nothing is
      sealed without it, so a crash can cost budget but never give it back;
    - charges add up (basic composition, which pure epsilon allows for adaptive releases); delta adds up too. What is
      refused is decided by these sums alone; `privacy_loss` says for the page what a sharper account makes of them.

    The ledger counts what is charged; how much one release costs is the mechanism's word. It binds this device only:
    the same reader on two devices has two ledgers.
    """

    def __init__(self, repository: LedgerRepository, settings: PrivacySettings, clock: Callable[[], datetime]) -> None:
        self.repository = repository
        self.own = settings
        self._choose: Callable[[PrivacySettings], ListChoice | None] = lambda own: None
        self._clock = clock
        self._listeners: list[Callable[[str], None]] = []

    @property
    def settings(self) -> PrivacySettings:
        """What holds now: the reader's `own`, in which a mode that stands for another is that other."""
        return self.own.in_force(self.choice())

    def choice(self) -> ListChoice | None:
        """What the reader's mode stands for just now; None where it stands for itself."""
        return None if MODES[self.own.mode].chooses is None else self._choose(self.own)

    def choose_by(self, choose: Callable[[PrivacySettings], ListChoice | None]) -> None:
        """Have this tell from now on what a mode stands for: it must go by releases, never by clicks."""
        self._choose = choose

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have the channel of each refused charge told from now on."""
        self._listeners.append(listener)

    def spend(self, charge: Charge) -> LedgerEntry:
        """Write the charge down, or raise BudgetSpent and write nothing.

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
                self.alone().check(charge.parameters[RHO_ALONE], self.settings)
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
        """Today in UTC: the day whose ceiling counts."""
        return self._clock().astimezone(UTC).date()

    def now(self) -> datetime:
        """The ledger's clock."""
        return self._clock()

    def per_day(self, channel: str) -> float:
        """The ceiling of a channel; raises ValueError for an unknown one."""
        return ceiling_of_day(self.settings, channel)

    def lifetime(self, channel: str) -> float | None:
        """The lifetime ceiling of a channel, None if it has none; raises ValueError for an unknown channel."""
        return ceiling_of_life(self.settings, channel)

    def alone(self) -> SumsAlone:
        """What noisy sums of all channels have cost together if nobody else in them was real: today, and in all."""
        return SumsAlone(self.repository.rho_alone(self._midnight()), self.repository.rho_alone())

    def spent_today(self, channel: str) -> float:
        """Pure epsilon charged since midnight UTC; a charge dated later than now (a clock set back) counts too."""
        return self.repository.spent(channel, self._midnight())

    def _midnight(self) -> datetime:
        return datetime.combine(self.day(), datetime.min.time(), tzinfo=UTC)

    def left(self, channel: str) -> float:
        """Pure epsilon that may still be charged today, under both ceilings; never below 0."""
        today = self.per_day(channel) - self.spent_today(channel)
        whole = self.lifetime(channel)
        return max(0.0, today if whole is None else min(today, whole - self.total(channel)))

    def total(self, channel: str) -> float:
        """Pure epsilon charged over the life of the device."""
        return self.repository.total(channel)


def ceiling_of_day(settings: PrivacySettings, channel: str) -> float:
    """What a channel may cost in one UTC day; raises ValueError for an unknown one."""
    if channel == "reports":
        return settings.epsilon_per_day_reports
    if channel == "training":
        return settings.epsilon_per_day_training
    if channel == "counts":
        return settings.epsilon_per_day_counts
    raise ValueError(f"channel {channel!r}: the ledger has {', '.join(CHANNELS)}")


def ceiling_of_life(settings: PrivacySettings, channel: str) -> float | None:
    """What a channel may cost over the device's life, None for as much as it likes; ValueError for an unknown one."""
    if channel == "reports":
        return settings.epsilon_lifetime_reports
    if channel == "training":
        return settings.epsilon_lifetime_training
    if channel == "counts":
        return settings.epsilon_lifetime_counts
    raise ValueError(f"channel {channel!r}: the ledger has {', '.join(CHANNELS)}")

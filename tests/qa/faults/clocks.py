"""Rounds of seven devices while their clocks and the server's are set an hour forward and back at seeded moments.

Time passes steadily otherwise. Whatever the clocks show, a round ends not much later than planned, and is applied once
or fails with a reason; no budget is given back; and with correct clocks the next round is applied.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from backend.federation.deadlines import CLOCKS_APART
from backend.federation.rounds.records import UNDER_WAY
from device_app.privacy.accounting.limits import CHANNELS
from tests.doubles.clock import StillClock
from tests.doubles.secure_cohort import DEVICES, SecureCohort, secure_cohort
from tests.qa.faults.kills import KillTally

SYSTEMS = ("small_ranker/local/mean", "small_ranker/exact/mean")
ROUND_SEC, TICK_SEC = 60.0, 3.0
HOUR = timedelta(hours=1)
SOMETIMES = 0.06
"""The chance that a clock is set, of each clock at each tick."""
LONGEST = timedelta(seconds=3 * ROUND_SEC) + CLOCKS_APART
"""A sum's stages each have their own deadline, of which a step can restart one."""
SLACK = 1e-6


@dataclass
class OwnClock:
    """A clock that is some steps apart from the server's."""

    servers: StillClock
    apart: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return self.servers.now + self.apart


@dataclass
class WatchedBudgets:
    """What each device had left on each day of its clock: it never grows again."""

    least: dict[tuple[int, str, date], float] = field(default_factory=lambda: defaultdict(lambda: float("inf")))

    def look(self, cohort: SecureCohort) -> None:
        for number, device in enumerate(cohort.devices):
            for channel in CHANNELS:
                key, left = (number, channel, device.ledger.day()), device.ledger.left(channel)
                assert left <= self.least[key] + SLACK, f"device {number} was given back budget of {key[1]}, {key[2]}"
                self.least[key] = left


def set_clocks(folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None) -> KillTally:
    """Run rounds until clocks have been set this many times."""
    tally, number = KillTally(), 0
    while tally.kills.total() < points and not tally.wrong:
        place = folder / str(number)
        place.mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch, secure_cohort(place, patch) as cohort:
            try:
                _rounds(cohort, random.Random(f"{seed} {number}"), tally)
            except AssertionError as wrong:
                tally.wrong.append(f"life {number}: {wrong}")
                say(f"wrong in life {number}: {wrong}")
        number += 1
    return tally


def _rounds(cohort: SecureCohort, dice: random.Random, tally: KillTally) -> None:
    clocks, budgets = [OwnClock(cohort.backend.clock) for _ in range(DEVICES)], WatchedBudgets()
    for device, clock in zip(cohort.devices, clocks, strict=True):
        device.stop()
        device.clock = clock
        device.start()
    for number, system in enumerate(dice.choices(SYSTEMS, k=3), start=1):
        _round(cohort, clocks, number, system, dice, tally, budgets)
    for clock in clocks:
        clock.apart = timedelta(0)
    _round(cohort, clocks, 4, SYSTEMS[1], None, tally, budgets)
    assert cohort.coordinator.status("round-4").state == "applied", cohort.coordinator.status("round-4").reason


def _round(
    cohort: SecureCohort,
    clocks: list[OwnClock],
    number: int,
    system: str,
    dice: random.Random | None,
    tally: KillTally,
    budgets: WatchedBudgets,
) -> None:
    """Run one round; dice: None for clocks that are left alone."""
    before = len(cohort.backend.releases.history())
    for device in cohort.devices:
        device.sync()
    cohort.open(system, seconds=ROUND_SEC)
    steady = timedelta(0)
    while (status := cohort.coordinator.status(f"round-{number}")).state in UNDER_WAY:
        assert steady <= LONGEST, f"round {number} of {system}, of {ROUND_SEC:g} s, is {status.state} after {steady}"
        for which, clock in enumerate([None, *clocks]):
            if dice is not None and dice.random() < SOMETIMES:
                step = dice.choice((-HOUR, HOUR))
                if clock is None:
                    cohort.backend.clock.now += step
                    for each in clocks:
                        each.apart -= step  # theirs are left alone
                else:
                    clock.apart += step
                whose = "a device's" if which else "the server's"
                tally.kills[f"{whose} set {'back' if step < timedelta(0) else 'forward'}"] += 1
        for device in dice.sample(cohort.devices, DEVICES - 1) if dice is not None else cohort.devices:
            device.trainer.step()
        cohort.coordinator.step()
        cohort.backend.clock.go_on(TICK_SEC)
        steady += timedelta(seconds=TICK_SEC)
        budgets.look(cohort)
    assert status.state in ("applied", "failed"), status.state
    assert status.state == "applied" or status.reason, "it says why"
    releases = len(cohort.backend.releases.history())
    assert releases == before + (status.state == "applied"), "a round is applied once, or not at all"

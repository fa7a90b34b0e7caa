"""When updates are due, and what is sent then. Oracle: a computation that the test ends by hand."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from device_app.privacy.private_parameters import SharedUpdate
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.training.due_updates import LOWEST, DueUpdate, DueUpdates, Work, in_a_thread
from tests.doubles.clock import StillClock

UPDATE = ComputedUpdate(SharedUpdate({}, None), samples=3)
ZEROS = ComputedUpdate(SharedUpdate({}, None), samples=0)


@dataclass
class Computing:
    """A computation that records its calls."""

    fault: Exception | None = None
    deleted: bool = False
    round: str = "round-1"
    asked: list[str] = field(default_factory=list)

    def gather(self) -> None:
        self.asked.append("gather")

    def update(self) -> ComputedUpdate:
        self.asked.append("update")
        if self.fault is not None:
            raise self.fault
        return UPDATE

    def nothing(self) -> ComputedUpdate:
        return ZEROS

    def unchanged(self) -> bool:
        return not self.deleted


def begin_update(
    computing: Computing, clock: StillClock, work: list[Work], send_sec: float = 4.0, seed: int = 1
) -> DueUpdate:
    updates = DueUpdates(clock, send_sec, random.Random(seed), work.append)
    return updates.begin(computing)  # type: ignore[arg-type]


def end_work(work: list[Work]) -> None:
    for each in work:
        each(lambda: None)


def test_due_times_of_updates_are_random_and_computing_waits_for_the_start() -> None:
    clock, waits = StillClock(), set[float]()
    for seed in range(40):
        computing, work = Computing(), list[Work]()
        update = begin_update(computing, clock, work, seed=seed)
        waits.add((update.due_at - clock()).total_seconds())
        assert not update.is_due(clock())
        assert (computing.asked, work) == ([], [])
        update.start()
        update.start()
        assert len(work) == 1
    assert len(waits) == 40
    assert all(2.0 <= wait <= 6.0 for wait in waits)


def test_update_unfinished_when_due_is_sent_as_zeros() -> None:
    clock, work, computing = StillClock(), list[Work](), Computing()
    update = begin_update(computing, clock, work)
    update.start()
    clock.go_on(6.0)
    assert update.is_due(clock())
    assert update.take() is ZEROS
    end_work(work)
    assert update.take() is UPDATE


def test_deletion_during_computation_gives_zeros() -> None:
    clock, work, computing = StillClock(), list[Work](), Computing()
    update = begin_update(computing, clock, work)
    update.start()
    end_work(work)
    computing.deleted = True
    assert update.take() is ZEROS


def test_error_of_a_computation_is_raised_when_its_update_is_taken() -> None:
    clock, work = StillClock(), list[Work]()
    update = begin_update(Computing(fault=ValueError("no graph")), clock, work)
    update.start()
    end_work(work)
    with pytest.raises(ValueError, match="no graph"):
        update.take()


def test_clock_set_back_does_not_delay_an_update() -> None:
    clock = StillClock()
    update = begin_update(Computing(), clock, [])
    clock.go_on(-3_600.0)
    assert update.is_due(clock())


def test_simulated_device_computes_its_update_on_demand() -> None:
    clock, work, computing = StillClock(), list[Work](), Computing()
    update = begin_update(computing, clock, work, send_sec=0.0)
    update.start()
    assert update.is_due(clock())
    assert (work, computing.asked) == ([], [])
    assert update.take() is UPDATE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is a process's")
def test_computation_thread_alone_has_the_lowest_priority() -> None:
    found, done = list[int](), threading.Event()

    def work(lower: Callable[[], None]) -> None:
        lower()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        done.set()

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    in_a_thread(work)
    assert done.wait(30)
    assert found == [LOWEST]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before

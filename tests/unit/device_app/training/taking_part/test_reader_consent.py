"""What the reader allows, asked anew each time. Oracle: the reader's settings."""

from __future__ import annotations

from datetime import timedelta

import pytest

from device_app.errors import NotEligible
from device_app.training.consent import ReaderConsent
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.round_rig import DeviceRig

GRADIENT, COUNT = "full_gradient", "count"


def consent(device: DeviceRig, idle_sec: float = 0.0) -> ReaderConsent:
    return ReaderConsent(
        device.ledger, device.trainer._reading, device.clock, paused=lambda: device.paused, idle_sec=idle_sec
    )


@pytest.mark.parametrize(("training", "counting"), [(True, True), (True, False), (False, True), (False, False)])
def test_each_channel_is_switched_on_by_itself_and_counts_from_that_moment(
    device: DeviceRig, training: bool, counting: bool
) -> None:
    allowed = consent(device)
    device.ledger.own = device.ledger.own.model_copy(update={"training": training, "counting": counting})

    assert (allowed.switched_on(GRADIENT), allowed.switched_on(COUNT)) == (training, counting)
    assert allowed.switched_on("a task that this program doesn't know") == training
    for task, wanted in ((GRADIENT, training), (COUNT, counting)):
        if wanted:
            allowed.check(task)
        else:
            with pytest.raises(NotEligible, match="switched it off meanwhile"):
                allowed.check(task)
    ready = allowed.readiness("r1")
    assert (ready.switched_on, ready.counting, ready.release) == (training, counting, "r1")


def test_a_pause_holds_for_every_task_until_it_ends(device: DeviceRig) -> None:
    allowed = consent(device)
    device.paused = True
    for task in (GRADIENT, COUNT):
        with pytest.raises(NotEligible, match="paused"):
            allowed.check(task)
    assert allowed.readiness("r1").paused
    device.paused = False
    allowed.check(GRADIENT)


def test_a_reader_is_idle_once_it_has_read_nothing_for_so_long(device: DeviceRig) -> None:
    clock = device.clock
    assert isinstance(clock, StillClock)
    with device.stores.database.transaction():
        device.stores.clicks.add("n1", None, clock())
    assert consent(device).readiness("r1").idle, "no time is asked for"
    assert not consent(device, idle_sec=60.0).readiness("r1").idle
    clock.go_on(61)
    assert consent(device, idle_sec=60.0).readiness("r1").idle
    assert clock() > NOW + timedelta(days=1)


def test_readiness_tells_the_clicks_and_what_is_left_of_each_budget(device: DeviceRig) -> None:
    ready = consent(device).readiness(None)
    assert ready.release is None
    assert ready.clicks == device.stores.clicks.count() > 0
    assert ready.epsilon_left == device.ledger.left("training")
    assert ready.counts_left == device.ledger.left("counts")

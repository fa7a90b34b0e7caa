"""What the reader allows is checked again each time. Oracle: the reader's settings."""

from __future__ import annotations

import pytest

from device_app.errors import NotEligible
from device_app.training.eligibility import ReaderConsent
from tests.doubles.round_rig import DeviceRig

GRADIENT, COUNT = "full_gradient", "count"


def consent(device: DeviceRig) -> ReaderConsent:
    return ReaderConsent(device.ledger, lambda: device.privacy, paused=lambda: device.paused)


@pytest.mark.parametrize(("training", "counting"), [(True, True), (True, False), (False, True), (False, False)])
def test_each_channel_is_switched_separately_with_its_own_start_time(
    device: DeviceRig, training: bool, counting: bool
) -> None:
    allowed = consent(device)
    device.privacy = device.privacy.model_copy(update={"training": training, "counting": counting})

    assert (allowed.switched_on(GRADIENT), allowed.switched_on(COUNT)) == (training, counting)
    assert allowed.switched_on("a task that this program doesn't know") == training
    for task, wanted in ((GRADIENT, training), (COUNT, counting)):
        if wanted:
            allowed.check(task)
        else:
            with pytest.raises(NotEligible, match="since been paused or switched off"):
                allowed.check(task)
    ready = allowed.readiness("r1")
    assert (ready.switched_on, ready.counting, ready.release) == (training, counting, "r1")


def test_pause_applies_to_every_task_until_it_ends(device: DeviceRig) -> None:
    allowed = consent(device)
    device.paused = True
    for task in (GRADIENT, COUNT):
        with pytest.raises(NotEligible, match="paused"):
            allowed.check(task)
    assert allowed.readiness("r1").paused
    device.paused = False
    allowed.check(GRADIENT)


def test_readiness_reports_the_remaining_budgets(device: DeviceRig) -> None:
    ready = consent(device).readiness(None)
    assert ready.release is None
    assert ready.epsilon_left == device.ledger.left("training")
    assert ready.counts_left == device.ledger.left("counts")

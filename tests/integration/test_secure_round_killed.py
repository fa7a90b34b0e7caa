"""Secure rounds go on after kills on either side, and leave nothing behind.

Oracle: the mean of clipped gradients.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.federation.secagg.sum_store import SecureSumStore, SumStages
from tests.doubles.kills import Killed
from tests.doubles.secure_cohort import (
    DEVICES,
    STAGES,
    SecureCohort,
    check_exact,
    running_sums,
    secure_cohort,
)

SECRETS = "identity_secret", "encryption_secret", "mask_secret", "seed"
"""Fields of a device's state in a sum."""


@pytest.fixture
def cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureCohort]:
    with secure_cohort(tmp_path, monkeypatch) as made:
        yield made


def dies(*_: object) -> None:
    raise Killed


def test_running_sum_of_a_killed_server_is_removed_at_the_next_start(
    cohort: SecureCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort.open()
    for _ in STAGES[:-1]:
        cohort.steps()
    with monkeypatch.context() as patch:
        patch.setattr(SecureSumStore, "clear", dies)  # the round is applied, the file is still there
        with pytest.raises(Killed):
            cohort.steps()
    assert cohort.status().state == "applied"
    assert len(running_sums(cohort)) == 1
    cohort.restart_server()
    assert running_sums(cohort) == []


def test_dead_servers_running_sum_is_removed_at_the_next_start(
    cohort: SecureCohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort.open()
    for _ in STAGES[:-1]:
        cohort.steps()
    assert len(running_sums(cohort)) == 1
    with monkeypatch.context() as patch:
        patch.setattr(SumStages, "fail", dies)  # the round has failed, and its sum doesn't know
        with pytest.raises(Killed):
            cohort.coordinator.cancel("round-1")
    assert cohort.status().state == "failed"
    cohort.restart_server()
    assert running_sums(cohort) == []


def test_ended_sum_leaves_no_secret_in_the_devices_database(cohort: SecureCohort) -> None:
    cohort.open()
    device, secrets = cohort.devices[2], set[str]()
    files = [device.path, device.path.with_name(f"{device.path.name}-wal")]

    def kept() -> bytes:
        return b"".join(file.read_bytes() for file in files if file.exists())

    for _ in STAGES:
        cohort.steps()
        for (state,) in device.stores.database.rows("SELECT state FROM sum_part"):
            found = json.loads(state)
            secrets |= {found[name] for name in SECRETS} - {None}
    assert cohort.status().state == "applied"
    assert len(secrets) == 4
    assert all(len(secret) > 30 for secret in secrets)
    assert [secret for secret in secrets if secret.encode() in kept()] == []


@pytest.mark.parametrize("stage", STAGES)
def test_server_and_device_killed_at_any_stage_continue(cohort: SecureCohort, stage: str) -> None:
    cohort.open(minimum=DEVICES)
    for now in STAGES:
        if now == stage:
            cohort.restart_server()
            cohort.devices[2].stop()
            cohort.devices[2].start()
        cohort.steps()
        if now == stage:
            cohort.restart_server()
    status = cohort.status()
    assert (status.state, status.survivors) == ("applied", DEVICES), status.reason
    check_exact(cohort, range(DEVICES))
    cohort.restart_server()
    cohort.coordinator.step()
    assert cohort.backend.releases.require_current().release == "r2", "nothing is applied twice"

"""Sixty devices in one process, with real stores and routes, from the operator's opening to the swap.

Twenty in the short form, whose limit follows from the number.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from device_app.training.tasks.recall_gradient import RecallTask
from device_app.training.tasks.task import Update
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.long_form import by_length
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import BASIS, DIM, TOKEN, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

DEVICES = by_length(20, long=60)


@pytest.mark.long_form
def test_sixty_devices_complete_a_round_and_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    network = InProcess(backend.app)
    pool = synthetic_pool(240, dim=DIM)
    rng = np.random.default_rng(2)
    first = DeviceRig(tmp_path / "first.sqlite", backend.clock, network, blob_folder=tmp_path / "blobs")
    first.sync()
    first.stop()
    devices = []
    for number in range(DEVICES):
        path = tmp_path / f"device{number}.sqlite"
        shutil.copy(first.path, path)  # sixty migrations and first syncs would only take time
        device = DeviceRig(path, backend.clock, network, seed=number, blob_folder=tmp_path / "blobs")
        device.read(simulated_reader(pool, rng), pool)
        devices.append(device)

    operator = httpx.Client(transport=network, base_url="http://backend", headers={"Authorization": f"Bearer {TOKEN}"})
    asked = {"system": "uni_fedrec", "cohort": DEVICES, "cohort_minimum": DEVICES, "seconds": 60}
    opened = operator.post("/v1/admin/rounds", json=asked)
    assert opened.status_code == 201, opened.text

    clear: list[Update] = []
    run = RecallTask.run

    def recording(*args: object) -> Update:
        update = run(*args)  # type: ignore[arg-type]
        clear.append(update)
        return update

    monkeypatch.setattr(RecallTask, "run", recording)
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda device: device.trainer.step(), devices))
    assert {outcome.state for outcome in outcomes} == {"uploaded"}
    assert len({outcome.offer.pseudonym for outcome in outcomes if outcome.offer}) == DEVICES

    backend.coordinator.step()
    status = RoundStatus.model_validate_json(operator.get("/v1/rounds/round-1").content)
    assert (status.state, status.joined, status.uploaded, status.published) == ("applied", DEVICES, DEVICES, "r2")

    # The oracle: the clear updates that never left the devices. The mean of 60 Laplace(0, 0.01) has a standard
    # deviation of 0.01 * sqrt(2 / 60) = 0.0018; times the learning rate 0.05, six of them are 0.00055; of 20, 0.00095.
    six_deviations = 6 * 0.05 * 0.01 * np.sqrt(2 / DEVICES)
    before = backend.releases.weights(backend.releases.manifest("r1"), "recall")
    after = backend.releases.weights(backend.releases.manifest("r2"), "recall")
    for name in before:
        mean = np.mean([np.clip(update.tensors[f"g.{name}"], -0.1, 0.1) for update in clear], axis=0)
        np.testing.assert_allclose(after[name], before[name] - 0.05 * mean, rtol=0, atol=six_deviations)
        assert (after[name] != before[name]).all(), "noise reaches every coordinate"
    assert np.abs(after["basis_values"] - before["basis_values"]).max() > 1e-3, "the clicks moved the values"

    for device in devices:
        assert device.sync()
        assert device.release() == "r2"
        assert device.ledger.spent_today("training") == 20.0 * 2 * BASIS * DIM
        device.stop()
    assert list((backend.folder / "rounds").iterdir()) == []
    operator.close()
    network.close()

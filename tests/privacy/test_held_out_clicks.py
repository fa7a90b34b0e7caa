"""A malicious server chooses the held-out share of the clicks, to learn from refusals how many clicks there are.

Oracle: the outcome, the upload and the charge, for readers with some, none and all of their clicks held out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from device_app.training import samples
from device_app.training.tasks import TASKS
from tests.doubles.flaky_network import EPSILON, FlakyNetwork, open_round, training_reader
from tests.doubles.news import synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

SHARES = {"some": 0.5, "none": 0.0, "all": 1.0}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[tuple[BackendRig, DeviceRig, FlakyNetwork]]:
    pool = synthetic_pool(240, dim=DIM)
    with training_reader(tmp_path, simulated_reader(pool, np.random.default_rng(1)), pool) as made:
        yield made


@pytest.mark.parametrize("held_out", [False, True], ids=["gradient", "evaluation"])
def test_held_out_clicks_do_not_show_in_any_message(
    reader: tuple[BackendRig, DeviceRig, FlakyNetwork], monkeypatch: pytest.MonkeyPatch, held_out: bool
) -> None:
    backend, device, network = reader
    backend.coordinator._loader.held_out = 0.5
    monkeypatch.setitem(TASKS, "recall", replace(TASKS["recall"], held_out=held_out))
    is_held_out = samples.is_held_out
    reported: dict[str, object] = {}
    for of_clicks, share in SHARES.items():
        monkeypatch.setattr(samples, "is_held_out", lambda feed, news, _, share=share: is_held_out(feed, news, share))
        device.sync()
        open_round(backend)
        network.uploads.clear()
        spent = device.ledger.spent_today("training")
        outcome = device.trainer.step()
        charge = device.ledger.spent_today("training") - spent
        reported[of_clicks] = outcome.state, outcome.why, [len(body) for body in network.uploads], charge
        backend.clock.go_on(3_600.0)
        backend.coordinator.step()
    assert reported == dict.fromkeys(reported, reported["some"])
    assert reported["some"] == ("uploaded", None, [len(network.uploads[0])], EPSILON)

"""One process per core. Oracle: one process. Without torch, so that the workers start quickly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from experiments.datasets.samples import TrainingSamples
from experiments.simulation.clients import Clients, ManyProcesses, OneProcess, SimulatedDevice
from experiments.simulation.protections import ElementwiseLaplace
from experiments.simulation.readers import Library
from experiments.simulation.rounds import Rounds, simulate
from experiments.simulation.shared_tensors import SharedTensors
from protocol.protections import LocalLaplace
from tests.doubles.long_form import by_length
from tests.doubles.synthetic_cohort import READERS, made_up, make_device

WEIGHTS = {"w": np.zeros(3, np.float32)}


def run(clients: Clients) -> NDArray[np.float32]:
    plan = Rounds(rounds=3, cohort=READERS, readers=READERS, seed=3)
    return simulate(clients, WEIGHTS, plan, FedAvg(), Sgd(learning_rate=0.3)).weights["w"]


def noisy(samples: TrainingSamples, library: Library) -> SimulatedDevice:
    protect = ElementwiseLaplace(LocalLaplace(clip=0.5, scale=0.1))
    return replace(make_device(samples, library), protect=protect)


@pytest.mark.long_form
@pytest.mark.parametrize("kind", [*by_length([], long=[make_device]), noisy])
def test_many_processes_give_the_weights_of_one(kind: Callable[..., SimulatedDevice]) -> None:
    make = partial(kind, *made_up())
    expected = run(OneProcess(make()))
    assert np.abs(expected).max() > 0.01
    with ManyProcesses(make, processes=2) as many:
        np.testing.assert_array_equal(run(many), expected)
        np.testing.assert_array_equal(run(many), expected, "the second run reuses the shared memory")


def test_partial_sums_add_up_to_the_cohorts_updates() -> None:
    device = make_device(*made_up())
    counts, total = [], np.zeros_like(WEIGHTS["w"], dtype=np.float64)
    for block in OneProcess(device).partial_sums(WEIGHTS, range(5), 1):
        counts.append(block.readers)
        total += block.sums["g.w"]  # valid until the next block
    assert counts == [2, 2, 1]
    wanted = sum(device.update(WEIGHTS, reader, 1).tensors["g.w"].astype(np.float64) for reader in range(5))
    np.testing.assert_allclose(total, wanted, rtol=1e-12)


def test_device_that_fails_in_another_process_ends_the_run_and_frees_the_memory() -> None:
    with ManyProcesses(partial(make_device, *made_up()), processes=2) as many:
        with pytest.raises(KeyError, match="w"):
            list(many.partial_sums({"v": np.zeros(3, np.float32)}, range(5), 0))
        shared = many._shared
        assert shared is not None
        layout = shared.layout
    with pytest.raises(FileNotFoundError):
        SharedTensors.attach(layout)

"""One process per core. Oracle: one process. Without torch, so that the workers start quickly."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from experiments.simulation.clients import Clients, ManyProcesses, OneProcess
from experiments.simulation.rounds import Rounds, simulate
from tests.doubles.synthetic_cohort import READERS, made_up, make_device


def run(clients: Clients) -> NDArray[np.float32]:
    plan = Rounds(rounds=3, cohort=5, readers=READERS, seed=3)
    return simulate(clients, {"w": np.zeros(3, np.float32)}, plan, FedAvg(), Sgd(learning_rate=0.3)).weights["w"]


def test_many_processes_give_the_numbers_of_one() -> None:
    make = partial(make_device, *made_up())
    expected = run(OneProcess(make()))
    assert np.abs(expected).max() > 0.01
    with ManyProcesses(make, processes=2) as many:
        np.testing.assert_array_equal(run(many), expected)

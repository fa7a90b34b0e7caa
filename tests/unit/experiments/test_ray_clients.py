"""Rounds on a Ray cluster of two nodes on this machine. Oracle: one process, bitwise.

Skipped where Ray isn't installed: it is the extra `ray`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -c constraints.txt '.[ray]'")

from ray.cluster_utils import Cluster

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from experiments.simulation.clients import OneProcess
from experiments.simulation.ray_clients import RayClients
from experiments.simulation.rounds import Rounds, simulate
from tests.doubles.synthetic_cohort import READERS, made_up, make_device


def test_two_nodes_compute_the_result_of_one_process() -> None:
    make = partial(make_device, *made_up())
    plan, first = Rounds(rounds=3, cohort=5, readers=READERS, seed=3), {"w": np.zeros(3, np.float32)}
    expected = simulate(OneProcess(make()), first, plan, FedAvg(), Sgd(learning_rate=0.3)).weights["w"]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        with RayClients(make, cluster.address) as clients:
            found = simulate(clients, first, plan, FedAvg(), Sgd(learning_rate=0.3)).weights["w"]
            assert len(set(clients.nodes)) == 2
    finally:
        cluster.shutdown()
    np.testing.assert_array_equal(found, expected)

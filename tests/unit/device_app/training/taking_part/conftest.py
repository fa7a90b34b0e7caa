"""A device and a backend in one process, with a network between them that can be cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.doubles.clock import StillClock
from tests.doubles.flaky_network import FlakyNetwork
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader


@pytest.fixture(scope="module")
def pool() -> SyntheticPool:
    return synthetic_pool(240, dim=DIM)


@pytest.fixture
def backend(tmp_path: Path) -> BackendRig:
    (tmp_path / "backend").mkdir()
    return BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))


@pytest.fixture
def network(backend: BackendRig) -> Iterator[FlakyNetwork]:
    inner = InProcess(backend.app)
    yield FlakyNetwork(inner)
    inner.close()


@pytest.fixture
def device(tmp_path: Path, backend: BackendRig, network: FlakyNetwork, pool: SyntheticPool) -> Iterator[DeviceRig]:
    device = DeviceRig(tmp_path / "device" / "device.sqlite", backend.clock, network)
    device.sync()
    device.read(simulated_reader(pool, np.random.default_rng(1)), pool)
    yield device
    device.stop()

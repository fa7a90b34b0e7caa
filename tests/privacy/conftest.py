"""Fixtures: an honest backend, for what an attacker can't invent, and devices that connect to the attacker's server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.attacked_device import Meets, Victim
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.news import NOW
from tests.doubles.round_rig import BackendRig


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> BackendRig:
    return BackendRig.make(tmp_path_factory.mktemp("backend"), StillClock(NOW + timedelta(days=1)))


@pytest.fixture(scope="module")
def honest(backend: BackendRig) -> Iterator[InProcess]:
    inside = InProcess(backend.app)
    yield inside
    inside.close()


@pytest.fixture
def meets(tmp_path: Path, backend: BackendRig) -> Iterator[Meets]:
    """Make a device that meets a server: `meets(server, seed, **changes of its settings)`."""
    made: list[Victim] = []

    def meet(server: MaliciousServer, seed: int = 0, **changes: object) -> Victim:
        victim = Victim.before(server, backend, tmp_path / f"device-{len(made)}", seed, **changes)
        made.append(victim)
        return victim

    yield meet
    for each in made:
        each.device.stop()

"""A network that can be cut, rounds to take part in, and the charge of each round's upload."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from protocol.protections import LocalLaplace
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.kills import Killed
from tests.doubles.news import NOW, SyntheticPool
from tests.doubles.round_rig import BASIS, DIM, FEATURES, BackendRig, DeviceRig
from tests.doubles.simulated_reader import PlantedReader

EPSILON = LocalLaplace().epsilon_per_upload(2 * BASIS * DIM)
SYSTEMS_TRIED = {
    "uni_fedrec": EPSILON,
    "small_ranker/local/mean": LocalLaplace(clip=0.01, scale=0.1).epsilon_per_upload(1 + len(FEATURES)),
}
"""By name, with the cost of an upload of the small release: the recall model's, and the ranker's with features."""
each_system = pytest.mark.parametrize("system", SYSTEMS_TRIED)


class FlakyNetwork(httpx.BaseTransport):
    """The backend, which can be cut off, or killed just after it accepted an upload."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner, self.cut_off, self.lose_answers, self.kill_at_upload = inner, False, False, False
        self.uploads: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut_off:
            raise httpx.ConnectError("cut off", request=request)
        if request.method == "PUT":
            self.uploads.append(request.read())
            if self.kill_at_upload:
                raise Killed
            response = self.inner.handle_request(request)
            if self.lose_answers:
                raise httpx.ReadError("the answer was lost", request=request)
            return response
        return self.inner.handle_request(request)


@contextmanager
def training_reader(
    folder: Path, reader: PlantedReader, pool: SyntheticPool
) -> Iterator[tuple[BackendRig, DeviceRig, FlakyNetwork]]:
    """A backend, a device whose reader has read for a day and trains, and the network between them."""
    backend = BackendRig.make(folder, StillClock(NOW + timedelta(days=1)))
    inner = InProcess(backend.app)
    network = FlakyNetwork(inner)
    device = DeviceRig(folder / "device.sqlite", backend.clock, network)
    device.read(reader, pool)
    yield backend, device, network
    device.stop()
    inner.close()


def open_round(
    backend: BackendRig,
    system: str = "uni_fedrec",
    *,
    cohort: int = 1,
    minimum: int = 1,
    seconds: float = 60.0,
) -> None:
    backend.coordinator.open_round(system, cohort=cohort, cohort_minimum=minimum, seconds=seconds)


def state_of(device: DeviceRig, round_id: str = "round-1") -> str:
    found = device.stores.participations.get(round_id)
    assert found is not None
    return found.state

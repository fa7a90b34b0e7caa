"""Seven devices in secure rounds of the small ranker over HTTP, and the oracle of their opened sum."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.types import Receive, Scope, Send

from backend.federation.optimizers import Sgd
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.systems import COMPOSED
from device_app.settings import PrivacySettings
from device_app.training.participant import Outcome
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Update
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, FEATURES, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.small_world import serve_app

DEVICES = 7
"""The fewest devices of which two may die: five hold enough shares."""
MODEL = "ranker.features"
LEARNING_RATE = 0.1
"""Large enough for half a fixed-point step of the sum to show in a float32 weight."""
SYSTEM = replace(
    COMPOSED["small_ranker/exact/mean"],
    optimizer=Sgd(learning_rate=LEARNING_RATE),
    protection=SecureSum(clip=1.0, weight_limit=32),
)
EXACT = SYSTEM.protection
COORDINATES = 1 + len(FEATURES)
STAGES = ("keys", "shares", "complaints", "masked", "agree", "unmask")
ALLOWS = PrivacySettings(
    training=True,
    epsilon_per_day_training=100,
    secure_sum="exact",
    smallest_sum=3,
)
Tensors = dict[str, NDArray[np.float64]]


class Wire(httpx.BaseTransport):
    """Real HTTP to the test's server, with every request recorded."""

    def __init__(self, url: str) -> None:
        self.url = httpx.URL(url)
        self.inner = httpx.HTTPTransport()
        self.sent: list[tuple[str, str, bytes]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, request.url.path, request.read()))
        request.url = request.url.copy_with(host=self.url.host, port=self.url.port)
        return self.inner.handle_request(request)

    def close(self) -> None:
        self.inner.close()


@dataclass
class SecureCohort:
    """A server over HTTP and seven devices, each with its reader."""

    backend: BackendRig
    url: str = ""
    devices: list[DeviceRig] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    clear: dict[int, Update] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward to the server process that currently runs."""
        await self.backend.app(scope, receive, send)

    def restart_server(self) -> None:
        old = self.backend
        self.backend = BackendRig.over(old.engine, old.releases, old.folder, old.clock)

    @property
    def coordinator(self) -> Coordinator:
        return self.backend.coordinator

    def open(self, system: str = "small_ranker/exact/mean", *, minimum: int = 3, seconds: float = 60.0) -> RoundStatus:
        return self.coordinator.open_round(system, cohort=DEVICES, cohort_minimum=minimum, seconds=seconds)

    def steps(self, which: range | list[int] = range(DEVICES)) -> list[Outcome]:
        """One step of each device, then one of the server."""
        outcomes = [self.devices[number].trainer.step() for number in which]
        self.coordinator.step()
        return outcomes

    def late(self, seconds: float = 20.0) -> None:
        """Let the stage's time pass, so that a device misses it."""
        self.backend.clock.go_on(seconds)
        self.coordinator.step()

    def status(self) -> RoundStatus:
        return self.coordinator.status("round-1")

    def weights(self, release: str) -> Tensors:
        found = self.backend.releases.weights(self.backend.releases.manifest(release), MODEL)
        return {name: value.astype(np.float64) for name, value in found.items()}

    def mean(self, which: range | list[int]) -> Tensors:
        """The oracle: (1/N) sum of n_u times the clipped g_u of these devices."""
        total: Tensors = {}
        for number in which:
            update = self.clear[number]
            clipped = clipped_gradient(update)
            for name, each in clipped.items():
                total[name] = total.get(name, np.zeros(each.shape)) + update.samples * each
        samples = sum(self.clear[number].samples for number in which)
        return {name: each / samples for name, each in total.items()}

    def moved(self) -> Tensors:
        """The opened mean, as the published weights show it; a step of SGD is linear."""
        before, after = self.weights("r1"), self.weights("r2")
        return {f"g.{name}": (before[name] - after[name]) / LEARNING_RATE for name in before}


def clipped_gradient(update: Update) -> Tensors:
    assert isinstance(EXACT, SecureSum)
    flat = np.concatenate([each.astype(np.float64).ravel() for each in update.tensors.values()])
    factor = min(1.0, EXACT.clip / float(np.linalg.norm(flat)))
    return {name: each.astype(np.float64) * factor for name, each in update.tensors.items()}


@contextmanager
def secure_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureCohort]:
    """A cohort over HTTP until the block ends; what each device computed is kept in `clear`."""
    monkeypatch.setitem(COMPOSED, SYSTEM.name, SYSTEM)
    (tmp_path / "backend").mkdir()
    cohort = SecureCohort(BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1))))
    pool = synthetic_pool(240, dim=DIM)
    rng = np.random.default_rng(4)
    run = FullGradientTask.run
    with ExitStack() as stack:
        cohort.url = stack.enter_context(serve_app(cohort))
        first = tmp_path / "first.sqlite"
        for number in range(DEVICES):
            wire = Wire(cohort.url)
            stack.callback(wire.close)
            path = tmp_path / f"device{number}.sqlite"
            if number:
                shutil.copy(first, path)  # seven migrations and first syncs would only take time
            device = DeviceRig(path, cohort.backend.clock, wire, ALLOWS, number, blob_folder=tmp_path / "blobs")
            if not number:
                device.sync()
                device.stop()
                shutil.copy(path, first)
                device.start()
            device.read(simulated_reader(pool, rng), pool)
            cohort.devices.append(device)
            cohort.wires.append(wire)

        def recording(*args: object) -> Update:
            update = run(*args)  # type: ignore[arg-type]
            # The devices step one after another: whose step it is shows at the stage of its trainer.
            busy = [number for number, one in enumerate(cohort.devices) if one.trainer.stage == "computing"]
            assert len(busy) == 1
            cohort.clear[busy[0]] = update
            return update

        monkeypatch.setattr(FullGradientTask, "run", recording)
        yield cohort
        for device in cohort.devices:
            device.stop()


def check_exact(cohort: SecureCohort, which: range | list[int]) -> None:
    """Check that the opened mean is that of these devices, within half a step of 2^-16 and float32 rounding."""
    assert isinstance(EXACT, SecureSum)
    before, moved = cohort.weights("r1"), cohort.moved()
    expected, fewer = cohort.mean(which), cohort.mean(list(which)[1:])
    noticed = False
    for name, mean in expected.items():
        rounding = np.spacing(np.abs(before[name.removeprefix("g.")]).astype(np.float32)).max() / LEARNING_RATE
        tolerance = 2.0 ** -(EXACT.fraction_bits + 1) + rounding
        np.testing.assert_allclose(moved[name], mean, rtol=0, atol=tolerance)
        noticed = noticed or bool(np.abs(mean - fewer[name]).max() > 10 * tolerance)
    assert noticed, "a device that were missing would show"


def running_sums(cohort: SecureCohort) -> list[str]:
    """Count files, each once, whatever names it has."""
    return list({path.stat().st_ino: path.name for path in (cohort.backend.folder / "sums").iterdir()}.values())


def wire_of(device: DeviceRig, cohort: SecureCohort) -> Wire:
    return cohort.wires[cohort.devices.index(device)]


def sent_masked(device: DeviceRig, cohort: SecureCohort) -> bytes:
    return next(body for method, path, body in wire_of(device, cohort).sent if method == "PUT" and "/masked/" in path)

"""Servers and devices are killed at random points of live rounds, at every stage, with fixed seeds.

Thirty-five points in `make test`, a hundred in `make qa`.

Bar: no round is lost without a reason, none is applied twice, no release is corrupted, no device is charged twice or
sends a second, different message. Oracle of a round's result: the mean of the updates of the devices whose messages the
server accepted, in float64, from what their tasks returned or from the sent bytes.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Literal

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray
from safetensors.numpy import load

from backend.federation.optimizers import Sgd
from backend.federation.systems import COMPOSED
from backend.releases.blobs import blob_refs
from backend.releases.store import ReleaseStore
from backend.storage.object_store import LocalFolder
from device_app.settings import PrivacySettings
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Update
from protocol.protections import SecureSum
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.kills import Killed, KilledSide, Kills, listen
from tests.doubles.long_form import by_length
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.small_release import migrated_engine

DEVICES, PLACES, MINIMUM = 4, 12, 2
"""A device that is killed with its place in hand may come back for another: there are some to spare."""
MODEL = "ranker.features"
LEARNING_RATE = 0.1
"""Large enough for half a fixed-point step of the sum to show in a float32 weight."""
POINTS: dict[KilledSide, int] = {"server": 8, "device": 40}
"""Every stage of a round has at least as many."""
ROUNDS = {
    "small_ranker/exact/mean": by_length(5, long=11),
    "small_ranker/local/mean": by_length(2, long=11),
}
"""The short form has as many as it takes for each side to die at every stage."""
PRIVACY = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
EXACT = replace(
    COMPOSED["small_ranker/exact/mean"],
    optimizer=Sgd(learning_rate=LEARNING_RATE),
    protection=SecureSum(clip=1.0, weight_limit=32),
)
assert isinstance(EXACT.protection, SecureSum)
STAGES = {
    "small_ranker/exact/mean": ("keys", "shares", "masked", "agree", "unmask"),
    "small_ranker/local/mean": ("open", "updates"),
}
Tensors = dict[str, NDArray[np.float64]]


@dataclass
class Network(httpx.BaseTransport):
    """One device's connection to whatever server is running, with everything that was sent and accepted."""

    world: KilledWorld
    sent: dict[str, bytes] = field(default_factory=dict)
    accepted: dict[str, bytes] = field(default_factory=dict)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        kills, path, body = self.world.kills, request.url.path, request.read()
        kills.point("device", "before a request")
        if request.method == "PUT":
            assert self.sent.setdefault(path, body) == body, f"another message at {path}"
        answer: httpx.Response | None = None
        with suppress(Killed, httpx.TransportError):
            answer = self.world.wire.handle_request(request)
            answer.read()
        if kills.dead == "server":
            self.world.restart()
            raise httpx.ConnectError("the server was killed", request=request)
        assert answer is not None
        if request.method == "PUT" and answer.is_success:
            self.accepted[path] = body
        kills.point("device", "before an answer arrives")
        return answer

    def close(self) -> None:
        """Do nothing: the connection belongs to the world."""


@dataclass
class KilledWorld:
    """A server and its devices on their disks, and the kills."""

    folder: Path
    kills: Kills
    clock: StillClock
    backend: BackendRig
    devices: list[DeviceRig] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)
    clear: dict[int, Update] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kills.watch_server(self.backend.engine)
        self.wire = InProcess(self.backend.app)

    def restart(self) -> None:
        """Start a new server process on what the killed one left; it may be killed while starting, too."""
        self.wire.close()
        while self.kills.dead == "server":
            self.backend.engine.dispose()
            self.kills.revived()
            with suppress(Killed):
                self._start()
        self.wire = InProcess(self.backend.app)

    def _start(self) -> None:
        engine = migrated_engine(self.folder / "backend")
        self.kills.watch_server(engine)
        store = ReleaseStore(engine, LocalFolder(self.folder / "backend" / "blobs"), self.backend.releases._key)
        self.backend = BackendRig.over(engine, store, self.folder / "backend", self.clock)

    def server_step(self) -> None:
        with suppress(Killed):
            self.backend.coordinator.step()
        if self.kills.dead == "server":
            self.restart()

    def device_step(self, number: int) -> str:
        device = self.devices[number]
        try:
            return device.trainer.step().state
        except Killed:
            assert self.kills.dead == "device"
            device.stop()
            self.kills.revived()
            device.start()
            return "killed"

    def end(self) -> None:
        for device in self.devices:
            device.stop()
        self.wire.close()
        self.backend.engine.dispose()

    def status(self) -> RoundStatus:
        return self.backend.coordinator.status("round-1")

    def live(self) -> RoundStatus:
        """Step everything until the round has ended; time passes when nothing else happens."""
        for _ in range(80):
            before = (self.status().state, len(self.kills.done), self.taken())
            for number in range(DEVICES):
                self.kills.stage = self.status().state
                self.device_step(number)
                self.server_step()
            status = self.status()
            if status.state in ("applied", "failed"):
                return status
            if before == (status.state, len(self.kills.done), self.taken()):
                self.clock.go_on(31.0)
                self.server_step()
        raise AssertionError(f"the round stays at {self.status().state}")

    def taken(self) -> int:
        return sum(len(one.accepted) for one in self.networks)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a server with its first release and devices that have read, once."""
    folder = tmp_path_factory.mktemp("kills")
    (folder / "backend").mkdir()
    clock = StillClock(NOW + timedelta(days=1))
    backend = BackendRig.make(folder / "backend", clock)
    key = backend.releases._key
    assert isinstance(key, Ed25519PrivateKey)
    (folder / "key").write_bytes(key.private_bytes_raw())
    wire = InProcess(backend.app)
    pool, rng = synthetic_pool(240, dim=DIM), np.random.default_rng(4)
    for number in range(DEVICES):
        device = DeviceRig(
            folder / f"device{number}.sqlite", clock, wire, PRIVACY, number, blob_folder=folder / "blobs"
        )
        device.sync()
        device.read(simulated_reader(pool, rng), pool)
        device.stop()
    wire.close()
    backend.engine.dispose()
    return folder


def play(template: Path, folder: Path, system: str, seed: int, patch: pytest.MonkeyPatch) -> KilledWorld:
    """Run a whole round with kills at points drawn from the seed."""
    shutil.copytree(template, folder)
    rng = random.Random(f"{system} {seed}")
    stages = STAGES[system]
    victims: tuple[KilledSide, ...] = ("server", "server", "server", "device", "device")
    deadly = [
        (victim, stages[(seed + place) % len(stages)], rng.randint(1, POINTS[victim]))
        for place, victim in enumerate(victims)
    ]
    kills = Kills(folder / "backend", deadly)
    clock = StillClock(NOW + timedelta(days=1))
    engine = migrated_engine(folder / "backend")
    key = Ed25519PrivateKey.from_private_bytes((folder / "key").read_bytes())
    store = ReleaseStore(engine, LocalFolder(folder / "backend" / "blobs"), key)
    world = KilledWorld(folder, kills, clock, BackendRig.over(engine, store, folder / "backend", clock))
    for number in range(DEVICES):
        network = Network(world)
        world.networks.append(network)
        path = folder / f"device{number}.sqlite"
        world.devices.append(DeviceRig(path, clock, network, PRIVACY, number, blob_folder=folder / "blobs"))
    run = FullGradientTask.run

    def recording(*args: object) -> Update:
        update = run(*args)  # type: ignore[arg-type]
        (busy,) = [number for number, one in enumerate(world.devices) if one.trainer.stage == "computing"]
        world.clear[busy] = update
        return update

    with patch.context() as patched:
        patched.setattr(FullGradientTask, "run", recording)
        kills.watch_device(patched)
        world.backend.coordinator.open_round(system, cohort=PLACES, cohort_minimum=MINIMUM, seconds=60)
        kills.armed = True
        listen(kills)
        try:
            world.live()
            for _ in range(3):
                for number in range(DEVICES):
                    world.device_step(number)
                world.server_step()
        finally:
            listen(None)
    return world


def weights(world: KilledWorld, release: str) -> Tensors:
    found = world.backend.releases.weights(world.backend.releases.manifest(release), MODEL)
    return {name: value.astype(np.float64) for name, value in found.items()}


def applied_mean(world: KilledWorld) -> Tensors:
    """Return the applied mean, from the weights; a step of SGD is linear."""
    before, after = weights(world, "r1"), weights(world, "r2")
    return {f"g.{name}": (before[name] - after[name]) / LEARNING_RATE for name in before}


def mean_of_clear(world: KilledWorld, which: Iterable[int]) -> Tensors:
    """(1/N) sum of n_u times the clipped g_u."""
    assert isinstance(EXACT.protection, SecureSum)
    total: Tensors = {}
    samples = 0
    for number in which:
        update = world.clear[number]
        flat = np.concatenate([each.astype(np.float64).ravel() for each in update.tensors.values()])
        factor = update.samples * min(1.0, EXACT.protection.clip / float(np.linalg.norm(flat)))
        samples += update.samples
        for name, each in update.tensors.items():
            total[name] = total.get(name, np.zeros(each.shape)) + factor * each.astype(np.float64)
    return {name: each / samples for name, each in total.items()}


def mean_of_sent(bodies: Iterable[bytes]) -> Tensors:
    """Return the mean of noisy updates, from the bytes that were sent."""
    updates = [load(body) for body in bodies]
    return {name: np.mean([one[name].astype(np.float64) for one in updates], axis=0) for name in updates[0]}


def is_close(world: KilledWorld, expected: Tensors, step: float) -> bool:
    """Return whether the mean is equal to half a step of the fixed point and the weights' float32 rounding."""
    before, after, found = weights(world, "r1"), weights(world, "r2"), applied_mean(world)
    coarse = {
        name: np.spacing(np.maximum(np.abs(each), np.abs(after[name])).astype(np.float32)).max()
        for name, each in before.items()
    }
    return all(
        np.abs(found[name] - each).max() <= step / 2 + coarse[name.removeprefix("g.")] / LEARNING_RATE
        for name, each in expected.items()
    )


def messages(world: KilledWorld, which: Literal["sent", "accepted"], stage: str) -> dict[int, bytes]:
    """Return by device the last message of a stage that it sent, or that a server has acknowledged."""
    logs = [network.sent if which == "sent" else network.accepted for network in world.networks]
    return {number: body for number, log in enumerate(logs) for path, body in log.items() if f"/{stage}/" in path}


def check_world(world: KilledWorld, system: str) -> None:
    status = world.status()
    releases = [one.release for one in world.backend.releases.history()]
    assert status.state == "applied", status.reason
    assert releases == ["r2", "r1"], "applied once"
    fresh = ReleaseStore(
        world.backend.engine, LocalFolder(world.folder / "backend" / "blobs"), world.backend.releases._key
    )
    for release in releases:
        for ref in blob_refs(fresh.manifest(release)):
            assert fresh.blob_path(ref.sha256).stat().st_size == ref.size_bytes
    paying = "updates" if system == "small_ranker/local/mean" else "masked"
    for device, network in zip(world.devices, world.networks, strict=True):
        sent = sum(f"/{paying}/" in path for path in network.sent)
        assert device.stores.database.number("SELECT count(*) FROM charge WHERE channel = 'training'") == sent
    summed = status.uploaded if system == "small_ranker/local/mean" else status.survivors
    assert summed is not None
    assert summed >= MINIMUM
    known = set(messages(world, "accepted", paying))
    # A device may have been killed before it heard that its message was taken, or the server before it said so.
    sets = [one for one in combinations(range(DEVICES), summed) if known <= set(one)]
    handed_in = messages(world, "sent", paying)
    if system == "small_ranker/local/mean":
        matching = [one for one in sets if is_close(world, mean_of_sent(handed_in[number] for number in one), 0.0)]
    else:
        assert isinstance(EXACT.protection, SecureSum)
        step = 2.0**-EXACT.protection.fraction_bits
        matching = [one for one in sets if is_close(world, mean_of_clear(world, one), step)]
    assert len(matching) == 1
    assert list((world.folder / "backend" / "rounds").iterdir()) == [], "no update outlives its round"


@pytest.mark.long_form
@pytest.mark.parametrize("system", STAGES)
def test_random_kills_at_every_stage_only_delay_rounds(
    template: Path, tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPOSED, EXACT.name, EXACT)
    done: Counter[tuple[str, str]] = Counter()
    for seed in range(ROUNDS[system]):
        world = play(template, tmp_path / str(seed), system, seed, monkeypatch)
        try:
            check_world(world, system)
            done += world.kills.by_stage()
        finally:
            world.end()
    assert done.total() >= 4.6 * ROUNDS[system], "five are planned for each round"
    for stage in STAGES[system]:
        for victim in ("server", "device"):
            assert done[victim, stage], f"no {victim} died at stage {stage}"

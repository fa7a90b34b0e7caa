"""Two processes on one profile race through rounds.

The server keeps every byte that either sends. The attack: two vectors of one reader under the same masks. Their
difference is the difference of the vectors, and no cohort hides it. The profile's lock is disabled here: each process
has its own connection to one database, and the second one runs while the first is stopped before each request of a
round in turn; in the short form, before every second one of an active round, which is long. In the long form it is
stopped after each answer, too, so every interleaving is tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from backend.federation.systems import COMPOSED
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.reporter import ReportInput
from device_app.reports.reporters import BasisLaplaceReporter
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import ReportMemo
from protocol.protections import SecureSum
from protocol.releases import RecallProtocol
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.journey import PAPER
from tests.doubles.long_form import by_length
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.sealing import allowing, sealed_by
from tests.doubles.simulated_reader import simulated_reader

OTHERS, PLACES, MINIMUM = 1, 8, 2
PRIVACY = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
EXACT = COMPOSED["small_ranker/exact/mean"]
assert isinstance(EXACT.protection, SecureSum)
ACTIVE = replace(
    EXACT,
    name="small_ranker_active",
    protection=EXACT.protection.model_copy(update={"mode": "active", "graph": "complete"}),
)
STEPS_LIMIT = 40
EACH = {"small_ranker_active": by_length(4, long=1), "small_ranker/local/mean": by_length(2, long=1)}
"""Points of a round from one stop to the next."""
ENDED = ("applied", "failed")


@dataclass
class Stopped(httpx.BaseTransport):
    """The recording server; one process can be stopped before a request or after its answer."""

    inner: httpx.BaseTransport
    sent: dict[str, list[bytes]]
    points: int = 0
    stop_at: int = -1
    meanwhile: Callable[[], object] = lambda: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._point()
        if request.method == "PUT":
            self.sent[request.url.path].append(request.read())
        answer = self.inner.handle_request(request)
        answer.read()
        self._point()
        return answer

    def _point(self) -> None:
        self.points += 1
        if self.points == self.stop_at:
            self.meanwhile()

    def close(self) -> None:
        """Do nothing: the connection belongs to the world."""


@dataclass
class TwoProcesses:
    """A server, two processes of one reader, and other readers."""

    backend: BackendRig
    first: DeviceRig
    second: DeviceRig
    others: list[DeviceRig]
    way: Stopped
    sent: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    def everybody_else(self) -> None:
        for device in self.others:
            device.trainer.step()
        self.backend.coordinator.step()

    def meanwhile(self, steps: int) -> None:
        for _ in range(steps):
            self.second.trainer.step()
            self.everybody_else()

    def play(self, system: str, stop_at: int, steps: int) -> str:
        """Run a whole round in which the first process is stopped once, for this many steps of the second."""
        for device in (self.first, *self.others):
            device.sync()
        self.sent.clear()
        self.way.points, self.way.stop_at, self.way.meanwhile = 0, stop_at, lambda: self.meanwhile(steps)
        opened = self.backend.coordinator.open_round(system, cohort=PLACES, cohort_minimum=MINIMUM, seconds=60)
        for _ in range(STEPS_LIMIT):
            before = sum(map(len, self.sent.values())), self.status(opened.round)
            self.first.trainer.step()
            self.second.trainer.step()
            self.everybody_else()
            if self.status(opened.round) in ENDED:
                return opened.round
            if before == (sum(map(len, self.sent.values())), self.status(opened.round)):
                self.backend.clock.go_on(31.0)
                self.backend.coordinator.step()
        raise AssertionError(f"the round stays at {self.status(opened.round)}")

    def status(self, round_id: str) -> str:
        return self.backend.coordinator.status(round_id).state


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TwoProcesses]:
    (tmp_path / "backend").mkdir()
    clock = StillClock(NOW + timedelta(days=1))
    backend = BackendRig.make(tmp_path / "backend", clock)
    wire = InProcess(backend.app)
    pool, rng = synthetic_pool(240, dim=DIM), np.random.default_rng(4)
    sent: dict[str, list[bytes]] = defaultdict(list)
    ways = [Stopped(wire, sent), Stopped(wire, sent), *(Stopped(wire, defaultdict(list)) for _ in range(OTHERS))]
    paths = [tmp_path / "reader.sqlite", tmp_path / "reader.sqlite", *(tmp_path / f"{n}.sqlite" for n in range(OTHERS))]
    devices = [
        DeviceRig(path, clock, way, PRIVACY, seed, blob_folder=tmp_path / "blobs")
        for seed, (path, way) in enumerate(zip(paths, ways, strict=True))
    ]
    for device in (devices[0], *devices[2:]):
        device.sync()
        device.read(simulated_reader(pool, rng), pool)
    yield TwoProcesses(backend, devices[0], devices[1], devices[2:], ways[0], sent)
    for device in devices:
        device.stop()
    wire.close()
    backend.engine.dispose()


@pytest.mark.long_form
@pytest.mark.parametrize(("system", "steps"), [("small_ranker_active", 1), ("small_ranker/local/mean", 2)])
def test_two_processes_send_and_pay_one_upload_a_round(
    world: TwoProcesses, system: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPOSED, ACTIVE.name, ACTIVE)
    stop_at = 1
    while True:
        charges = charged(world)
        round_id = world.play(system, stop_at, steps)
        where = f"stopped at point {stop_at}, {round_id} {world.status(round_id)}"
        uploads = [path for path in world.sent if "/masked/" in path or "/updates/" in path]
        assert len(uploads) <= 1, f"{where}: uploads under {len(uploads)} pseudonyms"
        for path, bodies in world.sent.items():
            assert len(set(bodies)) == 1, f"{where}: {len(set(bodies))} different messages at {path}"
        assert charged(world) - charges == len(uploads), where
        if world.way.points < stop_at:
            break
        stop_at += EACH[system]
    assert stop_at > 12, "a round has more points than that"


def charged(world: TwoProcesses) -> int:
    return world.first.stores.database.number("SELECT count(*) FROM charge")


def test_two_processes_pay_for_one_report_and_send_the_same(tmp_path: Path) -> None:
    paper = RecallProtocol(basis_size=30, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2)
    reporter = BasisLaplaceReporter(mechanism=BasisLaplace.under(paper))
    reader = ReportInput(np.ones((1, 4), dtype=np.float32), np.linspace(-3, 3, 60).reshape(2, 30), (6, 4))
    settings = PrivacySettings.model_validate(PAPER)
    databases = [Database(tmp_path / "device.sqlite") for _ in range(2)]
    ledgers = [Ledger(LedgerRepository(database), allowing(settings), StillClock()) for database in databases]
    memos = [ReportMemo(database) for database in databases]
    assert [memo.latest() for memo in memos] == [None, None], "both have looked, and for both a report is due"
    sent = [sealed_by(reporter, reader, ledger, memo, clicks=10) for ledger, memo in zip(ledgers, memos, strict=True)]
    assert sent[0].payload == sent[1].payload
    assert ledgers[0].repository.entries().total == 1
    for database in databases:
        database.close()

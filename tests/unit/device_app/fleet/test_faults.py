"""Simulated faults of a fleet: their rates, and their effect on real rounds.

The rounds are real: routes, coordinator, masks and trainers in one process, each device behind a faulty network.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest
from rich.console import Console

from device_app.fleet.faults import FaultRates
from device_app.fleet.run import RoundTable
from device_app.settings import PrivacySettings
from device_app.uplink.faulty_transport import Crashed, Fault, FaultyTransport
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.long_form import by_length
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.round_rig import DIM, BackendRig, DeviceRig
from tests.doubles.simulated_reader import simulated_reader

ALLOWS = PrivacySettings(training=True, epsilon_per_day_training=1e9, secure_sum="exact", smallest_sum=2)
DEVICES = 6


def test_simulated_faults_occur_at_their_rates_and_one_at_a_time() -> None:
    rates, rng = FaultRates(dropout=0.2, straggler=0.1, crash=0.05, malicious=0.15), np.random.default_rng(0)
    drawn = Counter(injected.fault if (injected := rates.draw(rng)) else None for _ in range(20_000))

    for fault, rate in rates.all().items():
        # Four standard deviations: one run in 16,000 would fail by chance.
        assert drawn[fault] / 20_000 == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 20_000))
    assert FaultRates().draw(rng) is None
    injected = FaultRates(crash=1.0).draw(rng)
    assert injected is not None
    assert injected.fault == "crash"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["dropout"], "'dropout' is not one of dropout, straggler, crash, malicious"),
        (["fire=0.1"], "'fire=0.1' is not one of"),
        (["malicious=much"], "malicious: 'much' is not a number"),
        (["malicious=1.5"], "malicious: must be a share from 0 to 1"),
        (["malicious=nan"], "malicious: must be a share from 0 to 1"),
        (["malicious=0.6", "crash=0.6"], r"add up to 1\.2"),
    ],
)
def test_invalid_rate_is_named_in_the_error(words: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FaultRates.parse(words)


def test_rates_of_simulated_faults_are_parsed_from_text() -> None:
    assert FaultRates.parse(["dropout=0.1", "malicious=0.02"]) == FaultRates(dropout=0.1, malicious=0.02)


class FaultyRounds:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        (folder / "backend").mkdir()
        self.backend = BackendRig.make(folder / "backend", StillClock(NOW + timedelta(days=1)))
        network = InProcess(self.backend.app)
        stack.callback(network.close)
        pool = synthetic_pool(240, dim=DIM)
        self.devices: list[DeviceRig] = []
        self.networks: list[FaultyTransport] = []
        self.crashes = 0
        for number in range(DEVICES):
            away = FaultyTransport(network, straggle_sec=0.05)
            device = DeviceRig(
                folder / f"device-{number}" / "device.sqlite", self.backend.clock, away, ALLOWS, seed=number
            )
            stack.callback(device.stop)
            device.sync()
            device.read(simulated_reader(pool, np.random.default_rng(number)), pool)
            self.devices.append(device)
            self.networks.append(away)

    def run(self, system: str, faults: Mapping[int, tuple[Fault, int] | tuple[Fault, int, int]]) -> RoundStatus:
        for number, network in enumerate(self.networks):
            network.expect(*faults.get(number, (None,)))
        status = self.backend.coordinator.open_round(system, cohort=DEVICES, cohort_minimum=3, seconds=80.0)
        for _ in range(40):
            for device in self.devices:
                try:
                    device.trainer.step()
                except Crashed:
                    self.crashes += 1
                    device.stop()
                    device.start()
            self.backend.clock.go_on(2.0)
            self.backend.coordinator.step()
            status = self.backend.coordinator.status(status.round)
            if status.state in ("applied", "failed"):
                break
        return status


@pytest.fixture
def world(tmp_path: Path) -> Iterator[FaultyRounds]:
    with ExitStack() as stack:
        yield FaultyRounds(tmp_path, stack)


@pytest.mark.long_form
@pytest.mark.parametrize("message", by_length([0, 2], long=[*range(5)]))
def test_secure_round_survives_a_dropout_a_straggler_and_a_crash(world: FaultyRounds, message: int) -> None:
    status = world.run(
        "small_ranker/exact/mean", {0: ("dropout", message), 1: ("straggler", message), 2: ("crash", message)}
    )

    assert (status.state, status.reason, world.crashes) == ("applied", None, 1)
    assert all(network.struck for network in world.networks[:3])
    assert not any(network.struck for network in world.networks[3:])
    # Who vanishes before its masked vector (message 3) is not in the sum; who crashed is, and once.
    assert status.survivors == (DEVICES if message > 3 else DEVICES - 1)


def test_malicious_updates_are_refused_and_the_round_continues(world: FaultyRounds) -> None:
    status = world.run("small_ranker/local/mean", {0: ("malicious", 0), 1: ("malicious", 0), 2: ("crash", 0)})

    assert (status.state, status.uploaded) == ("applied", DEVICES - 2)
    for malicious in world.devices[:2]:
        mine = malicious.stores.participations.get(status.round)
        assert mine is not None
        assert (mine.state, mine.detail is not None) == ("failed", True)


def test_malicious_masked_vector_fails_the_round_and_publishes_nothing(world: FaultyRounds) -> None:
    status = world.run("small_ranker/exact/mean", {0: ("malicious", 3)})

    assert status.state == "failed"
    assert status.reason is not None
    assert status.published is None
    assert [each.release for each in world.backend.releases.history()] == ["r1"]
    assert world.run("small_ranker/exact/mean", {}).state == "applied"


def test_undetectable_malicious_vector_is_summed(
    world: FaultyRounds,
) -> None:
    status = world.run("small_ranker/exact/mean", {0: ("malicious", 3, 3)})

    assert (status.state, status.survivors) == ("applied", DEVICES), status.reason
    assert world.networks[0].struck


def test_half_of_malicious_clients_poison_masked_vectors_by_varied_amounts() -> None:
    rng = np.random.default_rng(1)
    strikes = [injected for _ in range(2_000) if (injected := FaultRates(malicious=1.0).draw(rng)) is not None]
    offsets = np.array([injected.offset_steps for injected in strikes])

    assert np.mean([injected.message == 3 for injected in strikes]) == pytest.approx(0.6, abs=0.05)
    assert (np.abs(offsets) >= 2**8).all()
    assert (np.abs(offsets) <= 2**30).all()
    assert np.mean(np.abs(offsets) < 2**19) == pytest.approx(0.5, abs=0.05)
    assert np.mean(offsets > 0) == pytest.approx(0.5, abs=0.05)


def test_only_round_messages_get_simulated_faults() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(204)

    network = FaultyTransport(httpx.MockTransport(answer))
    network.expect("dropout", 0)
    with httpx.Client(transport=network, base_url="http://backend") as client:
        client.put("/v1/recall", content=b"x")
        client.get("/v1/rounds/current")
        client.get("/v1/rounds/round-1")
        with pytest.raises(httpx.ConnectError):
            client.put("/v1/rounds/round-1/keys/abc", content=b"x")
        with pytest.raises(httpx.ConnectError):
            client.get("/v1/rounds/round-1/keys/abc")
    assert asked == ["/v1/recall", "/v1/rounds/current", "/v1/rounds/round-1"]


def test_table_shows_how_and_why_each_round_ended() -> None:
    ended = RoundStatus(
        round="round-4", system="small_ranker/secure/median", state="failed", reason="2 of 3 came", release="r1",
        cohort=9, cohort_minimum=3, joined=5, uploaded=2, received_bytes=1_250_000, opened_at=NOW, closes_at=NOW,
    )  # fmt: skip
    table, page = RoundTable(FaultRates(dropout=0.5)), io.StringIO()
    table.print(Console(file=page))
    assert page.getvalue() == ""
    table.add(ended, {"waiting": 3}, {"dropout": 3}, 7.25)
    table.print(Console(file=page, width=160))
    for words in (
        "round-4",
        "small_ranker/secure/median",
        "failed",
        "2 of 3 came",
        "1.2",
        "7.2",
        "dropout",
        "0 of 1 rounds",
    ):
        assert words in page.getvalue()

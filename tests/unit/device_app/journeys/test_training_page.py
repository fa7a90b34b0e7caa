"""What the training page says of a round that this device has seen open. Oracle: the server's own answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

import device_app.device as of_device
from device_app.wire.rounds import RoundState, RoundStatus
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import Make
from tests.doubles.news import NOW


@dataclass
class WithRound(FakeBackend):
    """Has one round, under way while it is open; forgotten ones are unknown."""

    state: RoundState = "open"
    forgotten: bool = False

    def answer(self, request: httpx.Request) -> httpx.Response:
        path, done = request.url.path, self.state in ("applied", "failed")
        if self.down or not path.startswith("/v1/rounds/") or (path.endswith("/current") and done) or self.forgotten:
            return super().answer(request)
        self.requests.append((request.method, path, request.content))
        status = RoundStatus(
            round="round-1", system="count", task="a task of a later version", state=self.state, release="r1",
            cohort=20, cohort_minimum=10, joined=3, uploaded=0, received_bytes=0,
            opened_at=NOW, closes_at=NOW + timedelta(minutes=5),
        )  # fmt: skip
        return httpx.Response(200, content=status.model_dump_json(by_alias=True))


@pytest.fixture
def backend() -> WithRound:
    return WithRound()


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_device, "ROUND_LOOK_SEC", 0.0)


def test_a_round_that_ended_is_not_said_to_be_under_way(make: Make, backend: WithRound, clock: StillClock) -> None:
    device = make()
    device.sync()
    assert device.training().round is not None
    device.train_step()
    backend.state = "applied"
    backend.requests.clear()
    shown = [device.training().round for _ in range(3)]
    assert [one.state if one else None for one in shown] == ["applied"] * 3
    assert backend.paths().count("/v1/rounds/round-1") == 1, "how it ended is asked for once"


def test_a_round_the_server_no_longer_knows_is_shown_no_more(make: Make, backend: WithRound) -> None:
    device = make()
    device.sync()
    assert device.training().round is not None
    backend.forgotten = True
    assert device.training().round is None


def test_out_of_reach_the_last_one_seen_stays_in_sight(make: Make, backend: WithRound) -> None:
    device = make()
    device.sync()
    assert device.training().round is not None
    backend.down = True
    kept = device.training().round
    assert kept is not None
    assert kept.state == "open"

"""How the training page shows a round that this device has seen open. Oracle: the server's own answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from device_app.device import Device
from protocol.rounds import OpenRounds, RoundState, RoundStatus
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import Make
from tests.doubles.news import NOW


@dataclass
class WithRound(FakeBackend):
    """A backend with one round, running while it is open; forgotten ones are unknown."""

    state: RoundState = "open"
    number: int = 1

    def answer(self, request: httpx.Request) -> httpx.Response:
        path, done = request.url.path, self.state in ("applied", "failed")
        if self.down or not path.startswith("/v1/rounds/") or (path.endswith("/current") and done):
            return super().answer(request)
        self.requests.append((request.method, path, request.content))
        status = RoundStatus(
            round=f"round-{self.number}", system="count", task="a task of a later version", state=self.state,
            release="r1", cohort=20, cohort_minimum=10, joined=3, uploaded=0, received_bytes=0,
            opened_at=NOW, closes_at=NOW + timedelta(minutes=5),
        )  # fmt: skip
        shown = OpenRounds(rounds=(status,)) if path.endswith("/current") else status
        return httpx.Response(200, content=shown.model_dump_json())


@pytest.fixture
def backend() -> WithRound:
    return WithRound()


def poll_once(device: Device, clock: StillClock) -> None:
    """Run the background's next poll, at its own pace."""
    clock.go_on(device.settings.performance.training_poll_sec)
    device.train_step()


def test_training_page_shows_background_results_without_requests(
    make: Make, backend: WithRound, clock: StillClock
) -> None:
    device = make()
    device.sync()
    backend.requests.clear()
    before = [device.training() for _ in range(3)]
    assert [(one.round, one.looked_at) for one in before] == [(None, None)] * 3
    poll_once(device, clock)
    seen_at = clock()
    backend.requests.clear()
    clock.go_on(40.0)
    shown = device.training()
    assert shown.round is not None
    assert (shown.round.state, shown.seen_at, shown.looked_at, shown.gone) == ("open", seen_at, seen_at, False)
    assert backend.requests == []


def test_ended_round_is_not_shown_as_running(make: Make, backend: WithRound, clock: StillClock) -> None:
    device = make()
    device.sync()
    poll_once(device, clock)
    seen_at = clock()
    backend.state = "applied"
    poll_once(device, clock)
    backend.requests.clear()
    shown = device.training()
    assert shown.round is not None
    assert (shown.gone, shown.round.state, shown.seen_at) == (True, "open", seen_at)
    assert shown.looked_at == clock()
    poll_once(device, clock)
    assert "/v1/rounds/round-1" not in backend.paths(), "who had no part in it would tell by that which round it saw"


def test_superseded_round_is_no_longer_shown(make: Make, backend: WithRound, clock: StillClock) -> None:
    device = make()
    device.sync()
    poll_once(device, clock)
    backend.number = 2
    poll_once(device, clock)
    shown = device.training()
    assert shown.round is not None
    assert (shown.round.round, shown.gone, shown.seen_at) == ("round-2", False, clock())


def test_last_seen_round_stays_visible_with_its_age_while_offline(
    make: Make, backend: WithRound, clock: StillClock
) -> None:
    device = make()
    device.sync()
    poll_once(device, clock)
    seen_at = clock()
    backend.down = True
    poll_once(device, clock)
    kept = device.training()
    assert kept.round is not None
    assert (kept.round.state, kept.seen_at, kept.gone) == ("open", seen_at, False)

"""A fleet on a busy backend waits as long as the server asks, and doesn't fail."""

from __future__ import annotations

import io
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from rich.console import Console

import device_app.fleet.fleet as fleet_module
from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import BackendRefused, BackendUnreachable, DeviceError
from device_app.fleet.fleet import WAIT_LIMIT_SEC, patiently, pause_sec
from device_app.fleet.run import run_fleet
from device_app.settings import DeviceSettings, PerformanceSettings
from device_app.uplink.http import retry_after_sec
from protocol.fleet_figures import read_fleet_figures
from protocol.ids import PROBLEM_MEDIA_TYPE, Problem
from protocol.rounds import OpenRounds, RoundState, RoundStatus
from tests.doubles.backend import FakeBackend

BUSY = Problem(type="urn:ownfeed:problem:busy", title="Busy", status=503, detail="Too much to do.")
NOW = datetime(2026, 11, 21, tzinfo=UTC)


class BusyBackend:
    """Refuses every request the first time, and later every second one under /v1/rounds."""

    def __init__(self) -> None:
        self.backend = FakeBackend()
        self.asked: Counter[tuple[str, str]] = Counter()
        self.refused = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        key = (request.method, request.url.path)
        self.asked[key] += 1
        rounds = request.url.path.startswith("/v1/rounds/")
        if self.asked[key] == 1 or (rounds and self.asked[key] % 2):
            self.refused += 1
            headers = {"content-type": PROBLEM_MEDIA_TYPE, "retry-after": "0"}
            return httpx.Response(503, content=BUSY.model_dump_json(), headers=headers)
        if request.url.path == "/v1/rounds/current":
            return httpx.Response(200, content=OpenRounds(rounds=(_status("open"),)).model_dump_json())
        if request.url.path == "/v1/rounds/round-1":
            return httpx.Response(200, content=_status("failed").model_dump_json())
        return self.backend.answer(request)


def _status(state: RoundState) -> RoundStatus:
    return RoundStatus(
        round="round-1", system="s", task="recall", state=state, release="r1", cohort=9, cohort_minimum=1, joined=1,
        uploaded=0, received_bytes=0, opened_at=NOW, closes_at=NOW,
    )  # fmt: skip


def test_fleet_reads_and_joins_a_round_despite_503_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = BusyBackend()

    def with_backend(settings: DeviceSettings, **shared: object) -> Device:
        return build_device(settings, **{**shared, "transport": httpx.MockTransport(busy.answer)})  # type: ignore[arg-type]

    monkeypatch.setattr(fleet_module, "build_device", with_backend)
    said = Console(file=io.StringIO(), width=200)
    settings = DeviceSettings(data_dir=tmp_path, performance=PerformanceSettings(training_poll_sec=0.01))
    figures = tmp_path / "figures.json"
    run_fleet(settings, devices=3, replay=None, seed=3, rounds=1, console=said, figures=figures)
    reported = said.file.getvalue()  # type: ignore[attr-defined]
    assert busy.refused >= 5
    assert "round-1 failed" in reported
    assert "releases {'r1': 3}" in reported
    assert "had trouble" not in reported
    known = read_fleet_figures(figures)
    assert known is not None
    became = known.rounds[0].became
    assert known.rounds[0].devices == sum(became.values()) == 3
    assert became["off"] >= 1, "nobody has switched training on"
    assert became.keys() <= {"off", "unreachable"}
    assert known.curves == (), "three readers are too few for an interval"


def test_retry_waits_as_long_as_the_server_asks() -> None:
    asked: list[float] = []
    answers: list[DeviceError | str] = [BackendRefused(BUSY, 7.0), BackendRefused(BUSY, 7.0), "done"]

    def step() -> str:
        answer = answers.pop(0)
        if isinstance(answer, DeviceError):
            raise answer
        return answer

    assert patiently(step, sleep=asked.append, chance=random.Random(1)) == "done"
    assert len(asked) == 2
    assert all(7.0 <= seconds <= 10.5 for seconds in asked)
    assert len(set(asked)) == 2, "a fleet would come back all at once"


def test_retry_without_a_given_time_backs_off_to_a_limit() -> None:
    waits = [pause_sec(BackendRefused(BUSY), tries, random.Random(1)) for tries in (0, 1, 2, 40, 5_000)]
    assert waits == sorted(waits)
    assert waits[-1] <= 1.5 * WAIT_LIMIT_SEC


def test_retry_gives_up_in_the_end_and_at_once_on_permanent_errors() -> None:
    asked: list[float] = []

    def refused() -> None:
        raise BackendRefused(BUSY, 0.0)

    def away() -> None:
        raise BackendUnreachable("http://backend", "refused")

    with pytest.raises(BackendRefused):
        patiently(refused, tries=4, sleep=asked.append)
    assert len(asked) == 3
    with pytest.raises(BackendUnreachable):
        patiently(away, sleep=asked.append)
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0", 0.0), (" 12 ", 12.0), ("999999999999999", 3_600.0), ("", None), ("-1", None), ("١٢", None),
     ("Sun, 22 Nov 2026 12:00:00 GMT", None)],
)  # fmt: skip
def test_retry_after_is_read_in_seconds_and_has_a_limit(header: str, seconds: float | None) -> None:
    assert retry_after_sec(header) == seconds

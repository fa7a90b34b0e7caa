"""The loop of `ownfeed fleet`: which rounds it joins, and how often."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import get_args

import pytest
from rich.console import Console

from device_app.fleet import run as module
from device_app.fleet.run import RoundTable
from device_app.settings import DeviceSettings, PerformanceSettings
from protocol.rounds import RoundState, RoundStatus

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def status(number: int, state: RoundState) -> RoundStatus:
    return RoundStatus(
        round=f"round-{number}", system="s", state=state, release="r1", cohort=9, cohort_minimum=1, joined=1,
        uploaded=0, received_bytes=0, opened_at=NOW, closes_at=NOW,
    )  # fmt: skip


@pytest.mark.parametrize("state", module.TAKES_DEVICES)
def test_fleet_joins_a_round_already_under_way_once(state: RoundState, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = (status(4, "open"), status(5, "keys"))
    seen: Iterator[tuple[RoundStatus, ...]] = iter(
        [(), (status(1, "unmask"),), (status(2, state),), (status(2, state),), (status(3, "applied"),), beside]
    )
    uplink = SimpleNamespace(open_rounds=lambda: next(seen))
    device = SimpleNamespace(parts=SimpleNamespace(uplink=uplink), sync=lambda: False)
    fleet = SimpleNamespace(members=[SimpleNamespace(device=device)])
    joined: list[str] = []

    def take_part(fleet: object, fresh: list[RoundStatus], *_: object) -> int:
        joined.extend(each.round for each in fresh)
        return len(fresh)

    monkeypatch.setattr(module, "_take_part", take_part)
    monkeypatch.setattr("device_app.fleet.run.time.sleep", lambda seconds: None)
    settings = DeviceSettings(performance=PerformanceSettings(training_poll_sec=0.1))
    reported = module.FleetFigureWriter(None, 1)
    module._live(fleet, settings, 3, Console(file=io.StringIO()), RoundTable(), reported, visits=False)  # type: ignore[arg-type]
    assert joined == ["round-2", "round-4", "round-5"]
    assert set(module.TAKES_DEVICES) < set(get_args(RoundState))

"""Simulated readers measure a real server end to end. Oracles: the server's own log of the same requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.measurements import end_to_end
from protocol.server_timing import DEVICE_STAGES, SERVER_STAGES
from tests.doubles.small_world import SmallWorld


def test_simulated_readers_measure_every_stage_of_a_real_server(
    idle_world: SmallWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_to_end, "READERS", 2)
    monkeypatch.setattr(end_to_end, "PAGES", 3)
    with idle_world.backend() as world:
        assert world.services is not None
        thread = end_to_end.start(tmp_path, world.url)
        assert thread is not None
        assert end_to_end.start(tmp_path, world.url) is None, "one at a time"
        thread.join()
        last = end_to_end.last(tmp_path)
        assert last is not None
        assert (last.state, last.reason) == ("done", None)
        found = last.found
        assert found is not None
        assert (found.readers, found.pages) == (2, 6)
        assert [each.name for each in found.stages if each.place == "server"] == list(SERVER_STAGES)
        named = {each.name for each in found.stages if each.place in ("device", "network")}
        assert named == set(DEVICE_STAGES)
        assert all(each.p50_ms <= each.p95_ms for each in found.stages)
        logged = world.services.latency.last("recall", 6)
        searched = next(each for each in found.stages if (each.place, each.name) == ("server", "search"))
        assert searched.p95_ms <= max(entry["search"] for entry in logged) + 0.01
    total, before = found.stages[-1], found.stages[:-1]
    assert total.place == "whole"
    assert total.p50_ms >= max(each.p50_ms for each in before)

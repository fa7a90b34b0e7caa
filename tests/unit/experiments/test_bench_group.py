"""Running several benches in turn. Oracle: a script in their place that measures, fails, lacks data or hangs."""

from __future__ import annotations

import io
import os

import psutil
import pytest
from rich.console import Console

from experiments.bench import run
from experiments.bench.run import BENCHES, GROUPS, Bench, run_group

SCRIPT = """
import json, sys, time
name = sys.argv[1]
if name == "index":
    sys.exit(3)
if name == "endpoint":
    time.sleep(600)
print(json.dumps({} if name == "recall" else {name: [{"title": sys.argv[2:]}]}))
"""


def test_failing_or_hanging_benches_do_not_affect_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(run.BENCHES, "endpoint", Bench("none", 0.01))
    monkeypatch.setattr(run, "QUIET_LOAD", 0.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (3.1, 0.0, 0.0))
    said = Console(file=io.StringIO(), width=200)
    found = run_group(["embed", "index", "endpoint", "recall", "graphs"], ["--record"], said, ("-c", SCRIPT))
    assert found.tables == {name: [{"title": ["--record", "--json"]}] for name in ("embed", "graphs")}
    assert found.failed == {"index": "exit code 3", "endpoint": "stopped after 0.01 min"}
    running = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    assert [each for each in running if SCRIPT in each.cmdline()] == []
    lines = said.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "This machine is busy (load 3.1): times will be too long."
    assert lines[1] == "[1 of 5: embed, at most 20 min; 0 min so far]"
    assert "  index failed: exit code 3" in lines
    assert lines[-1] == "2 of 5 measured in 0 min; skipped: recall; failed: index, endpoint"


def test_timings_group_has_only_timing_benches_and_all_group_has_every_bench() -> None:
    assert set(GROUPS["short"]) < set(GROUPS["timings"]) < set(GROUPS["all"]) == set(BENCHES)
    assert "recall" not in GROUPS["timings"]
    assert "latency" in GROUPS["timings"]

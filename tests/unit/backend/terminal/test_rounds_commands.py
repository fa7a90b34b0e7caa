"""`ownfeed rounds`. Oracle: the coordinator behind the server that the commands contact."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.operations.admin_client import OperatorRefused
from backend.settings import load_settings
from backend.terminal.round_commands import rounds_app
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.round_rig import TOKEN, BackendRig
from tests.doubles.small_world import serve_app

Run = Callable[..., tuple[str, str]]
"""Standard output and standard error; raises what the command raises."""


@pytest.fixture
def rig(tmp_path: Path) -> BackendRig:
    return BackendRig.make(tmp_path, StillClock(NOW))


@pytest.fixture
def run(rig: BackendRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    settings = load_settings(data_dir=tmp_path / "operator")
    settings.admin_token_file.parent.mkdir(parents=True)
    settings.admin_token_file.write_text(TOKEN, encoding="utf-8")
    monkeypatch.setattr("ownfeed.says.width", 300)
    with serve_app(rig.app) as url:

        def call(*words: str) -> tuple[str, str]:
            where = ("--backend", url, "--data-dir", str(settings.data_dir))
            done = CliRunner().invoke(rounds_app, [*words, *where], catch_exceptions=False)
            assert done.exit_code == 0, done.output
            return done.stdout, done.stderr

        yield call


def test_pause_keeps_rounds_from_opening_until_lifted(rig: BackendRig, run: Run) -> None:
    assert json.loads(run("pause", "--json")[0])["paused"] is True
    assert rig.coordinator.scheduler.status().paused
    assert "Rounds are paused; none opens by itself." in run("pause")[1]
    assert "Rounds are on; none opens by itself." in run("resume")[1]
    assert not rig.coordinator.scheduler.status().paused


def test_schedule_is_set_shown_and_removed(rig: BackendRig, run: Run) -> None:
    said = run("schedule", "--every", "30", "--waiting", "5", "--system", "uni_fedrec", "--cohort", "8")[1]
    assert "uni_fedrec every 30 minutes and when 5 devices wait" in said
    plan = rig.coordinator.scheduler.status().schedule
    assert plan is not None
    assert (plan.every_minutes, plan.waiting, plan.order.cohort, plan.order.cohort_minimum) == (30.0, 5, 8, 8)
    run("schedule", "--every", "30", "--system", "uni_fedrec")
    plan = rig.coordinator.scheduler.status().schedule
    assert plan is not None
    assert (plan.order.cohort, plan.order.cohort_minimum) == (60, 10)
    assert json.loads(run("unschedule", "--json")[0])["schedule"] is None
    assert rig.coordinator.scheduler.status().schedule is None


def test_schedule_without_a_time_or_device_number_is_refused(rig: BackendRig, run: Run) -> None:
    with pytest.raises(OperatorRefused, match="needs a time or a number of devices"):
        run("schedule", "--system", "uni_fedrec")
    assert rig.coordinator.scheduler.status().schedule is None


def test_rounds_are_listed_and_a_running_one_is_cancelled(rig: BackendRig, run: Run) -> None:
    opened = rig.coordinator.open_round("uni_fedrec", cohort=3, cohort_minimum=2, seconds=30)
    assert "round-1 failed: cancelled by the operator" in run("cancel", opened.round)[1]
    with pytest.raises(OperatorRefused, match="failed can't change to failed"):
        run("cancel", opened.round)
    listed = json.loads(run("list", "--json")[0])
    assert [(one["round"], one["state"]) for one in listed["rounds"]] == [("round-1", "failed")]
    assert listed["timetable"]["waiting"] == 0
    shown = run("list")[1]
    assert "cancelled by the operator" in shown
    assert f"{NOW:%Y-%m-%d %H:%M}" in shown

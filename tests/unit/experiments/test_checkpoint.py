"""Files of finished runs. Oracles: what was written, and invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.study import RunCheckpoint

RUNS = [{"seed": 0, "auc": 0.61}, {"seed": 1, "auc": 0.62}]


def test_finished_runs_are_restored_from_a_file_and_a_missing_file_has_none(tmp_path: Path) -> None:
    results = RunCheckpoint(tmp_path / "far" / "study.json", {"rounds": 3})
    assert results.read() == []
    results.write(RUNS)
    assert results.read() == RUNS
    assert [each.name for each in (tmp_path / "far").iterdir()] == ["study.json"]


def test_two_studies_do_not_share_a_file(tmp_path: Path) -> None:
    RunCheckpoint(tmp_path / "study.json", {"rounds": 3}).write(RUNS)
    with pytest.raises(ValueError, match=r"settings \{'rounds': 3\}, not \{'rounds': 4\}; choose another file"):
        RunCheckpoint(tmp_path / "study.json", {"rounds": 4}).read()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"settings": {}}', "7"])
def test_invalid_results_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(ValueError, match=r"study\.json contains no results"):
        RunCheckpoint(tmp_path / "study.json", {}).read()


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    results = RunCheckpoint(tmp_path / "study.json", {})
    results.write(RUNS)
    with pytest.raises(TypeError, match="not JSON serializable"):
        results.write([{"seed": object()}])
    assert results.read() == RUNS

"""`ownfeed evaluate ranking` when something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ownfeed import app


def test_command_without_its_data_prints_one_line_and_no_table(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["evaluate", "ranking", "--data", str(tmp_path / "nowhere")])
    assert found.exit_code == 1
    assert "news.tsv does not exist" in found.stderr
    assert not found.stdout


def test_unknown_model_is_refused_with_the_known_names(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["evaluate", "ranking", "--data", str(tmp_path), "--model", "nobody"])
    assert found.exit_code == 1
    assert "models: 'nobody' is not one of" in found.stderr
    assert "candidate attention 384" in found.stderr


@pytest.mark.parametrize("rows", [{"settings": {"steps": 9}, "runs": []}, {"runs": []}])
def test_results_of_another_study_are_not_mixed_into_a_study(tmp_path: Path, rows: dict[str, object]) -> None:
    kept = tmp_path / "results.json"
    kept.write_text(json.dumps(rows))
    found = CliRunner().invoke(app, ["evaluate", "ranking", "--data", str(tmp_path), "--out", str(kept)])
    assert found.exit_code == 1
    assert "choose another file" in found.stderr
    assert json.loads(kept.read_text()) == rows


def test_file_without_results_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    kept.write_text("half a file")
    found = CliRunner().invoke(app, ["evaluate", "ranking", "--data", str(tmp_path), "--out", str(kept)])
    assert found.exit_code == 1
    assert "contains no results" in found.stderr

"""The study of MovieLens: what is resumed, what is refused, what its tables contain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.papers.fl_mv_dssm.rounds import Choices
from experiments.papers.fl_mv_dssm.study import PUBLISHED, MovieLensStudy, tables, wanted
from experiments.papers.fl_mv_dssm.training import ALL, HELD_OUT, TRAININGS, Figures, MovieLensRun, MovieLensSettings
from ownfeed import app


def run(row: str, build: int, precision: float) -> MovieLensRun:
    return MovieLensRun(row, build, Figures(precision, 0.1, 0.2, 0.9, 943), 12.0)


def test_command_without_its_data_prints_one_line_and_no_table(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["evaluate", "fl-mv-dssm", "--data", str(tmp_path / "nowhere")])
    assert found.exit_code == 1
    assert "u.occupation does not exist" in found.stderr
    assert not found.stdout


def test_system_is_found_by_its_name_or_a_part() -> None:
    assert wanted(["semi-fl-mv-dssm"]) == ["SEMI-FL-MV-DSSM"]
    assert wanted(["CS-"]) == ["CS-Users", "CS-Items", "CS-Users-Items"]
    assert wanted([]) == list(TRAININGS)
    with pytest.raises(ValueError, match="'nobody' is not one of Central"):
        wanted(["nobody"])


def test_rows_are_restored_as_runs_and_settings_change_with_every_choice() -> None:
    study = MovieLensStudy(Path("nowhere"))
    runs = {
        ("FCF", 0): [run("FCF", 0, 0.3)],
        ("CS-Items", 1): [run(f"CS-Items, {HELD_OUT}", 1, 0.1), run(f"CS-Items, {ALL}", 1, 0.1)],
    }
    assert study.runs([row for each in runs.items() for row in study.rows(*each)]) == runs
    assert study.settings != MovieLensStudy(Path("nowhere"), choices=Choices(gamma=9)).settings


def test_every_row_of_the_papers_tables_is_trained_and_compared() -> None:
    assert set(PUBLISHED) <= set(TRAININGS)
    assert (
        len(MovieLensStudy(Path("nowhere")).jobs) == 3 * (len(PUBLISHED) + 8) + 6
    )  # Table III on two splits; noise and scale once
    runs = [run("SEMI-FL-MV-DSSM", build, 0.3 + build / 100) for build in range(3)] + [run(f"CS-Items, {ALL}", 0, 0.1)]
    first, warm, cold = tables([*runs, run("FCF, u1", 0, 0.4)], MovieLensSettings(), Choices())
    asked = first.columns.index("10P/R")
    assert first.rows[0][:3] == ("FCF, u1", "0.4000", "0.3010+-0.0032")
    assert first.rows[0][asked : asked + 2] == (40.0, 29.6)  # 10 x 0.4 / 0.1, 10 x 0.3010 / 0.1017
    assert warm.rows[0][:3] == ("SEMI-FL-MV-DSSM", "0.3100+-0.0100", "0.3512+-0.0070")
    assert cold.rows[0][:3] == ("CS-Items, all films", "0.1000", "0.1586+-0.0002")
    assert json.dumps(warm.as_json())

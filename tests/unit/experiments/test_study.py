"""Running a study: resumed, in one process or several, reported and tabulated. Oracle: a study that squares numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.records import DataMissing, Table, required
from experiments.study import Study, conduct


@dataclass
class SquaresStudy(Study[int, int]):
    numbers: Sequence[int]
    power: int = 2
    folder: Path | None = None
    ran: list[int] = field(default_factory=list)

    @property
    def jobs(self) -> Sequence[int]:
        return self.numbers

    @property
    def seeds(self) -> tuple[int, ...]:
        return (3, 4)

    @property
    def settings(self) -> Mapping[str, int]:
        return {"power": self.power}

    def prepare(self) -> None:
        if self.folder is not None:
            required(self.folder)

    def run(self, job: int) -> int:
        self.ran.append(job)
        if job < 0:
            raise ValueError(f"{job}: none below 0")
        return job**self.power

    def line(self, job: int, run: int) -> str:
        return f"{job} -> {run}"

    def tables(self, runs: Mapping[int, int]) -> list[Table]:
        return [Table("Squares", ("number", "square"), list(runs.items()))]

    def rows(self, job: int, run: int) -> list[dict[str, Any]]:
        return [{"number": job, "square": run}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[int, int]:
        return {row["number"]: row["square"] for row in rows}


class StudyWithoutRows(SquaresStudy):
    def rows(self, job: int, run: int) -> list[dict[str, Any]]:
        return Study.rows(self, job, run)


def quiet_console() -> Console:
    return Console(file=StringIO(), width=200)


def test_tables_list_every_run_in_job_order_with_its_seed() -> None:
    console = quiet_console()
    [table] = conduct(SquaresStudy([3, 1, 2]), console=console)
    assert table.rows == [(3, 9), (1, 1), (2, 4)]
    assert table.seeds == (3, 4)
    assert "  1 -> 1" in console.file.getvalue()  # type: ignore[attr-defined]


def test_several_processes_give_the_same_results() -> None:
    assert conduct(SquaresStudy(range(5)), console=quiet_console(), processes=2) == conduct(
        SquaresStudy(range(5)), console=quiet_console()
    )


def test_stored_runs_are_not_repeated_and_stay_in_the_tables(tmp_path: Path) -> None:
    out = tmp_path / "squares.json"
    conduct(SquaresStudy([1, 2]), console=quiet_console(), out=out)
    again = SquaresStudy([2, 3])
    [table] = conduct(again, console=quiet_console(), out=out)
    assert again.ran == [3]
    assert table.rows == [(1, 1), (2, 4), (3, 9)]
    with pytest.raises(ValueError, match="choose another file"):
        conduct(SquaresStudy([1], power=3), console=quiet_console(), out=out)


def test_failed_run_keeps_earlier_ones_in_the_file(tmp_path: Path) -> None:
    out = tmp_path / "squares.json"
    for processes in (1, 2):
        with pytest.raises(ValueError, match="none below 0"):
            conduct(SquaresStudy([1, 2, -1]), console=quiet_console(), out=out, processes=processes)
    kept = [row["number"] for row in json.loads(out.read_text(encoding="utf-8"))["runs"]]
    assert kept == [1, 2]


def test_study_without_results_writes_no_file_and_missing_data_stops_it_first(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="out: runs of StudyWithoutRows can't be written to a file"):
        conduct(StudyWithoutRows([1]), console=quiet_console(), out=tmp_path / "squares.json")
    study = SquaresStudy([1], folder=tmp_path / "nowhere")
    with pytest.raises(DataMissing, match="nowhere does not exist"):
        conduct(study, console=quiet_console())
    assert study.ran == []

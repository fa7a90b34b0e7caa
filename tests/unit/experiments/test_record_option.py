"""`--record`: the records that a command writes for the documents. Oracle: an empty study under a test command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from experiments import records
from experiments.commands.studies import Data, study_command
from experiments.records import Table
from experiments.study import Study


class NothingMeasured(Study[int, int]):
    @property
    def jobs(self) -> Sequence[int]:
        return ()

    def run(self, job: int) -> int:
        return job

    def line(self, job: int, run: int) -> str:
        return ""

    def tables(self, runs: Mapping[int, int]) -> list[Table]:
        return [Table("Nothing", ("what",), [("x",)])]


app = typer.Typer()


@app.callback()
def front() -> None:
    """Keep the command's name."""


@study_command(app, "toy")
def toy(
    data: Data = Path("data"), models: list[str] | None = None, rounds: int = 3, tune: bool = False
) -> Study[int, int]:
    """Measure nothing."""
    return NothingMeasured()


def test_record_names_the_command_with_its_options_and_no_machine_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    given = ["--data", str(tmp_path), "--models", "a b", "--models", "c", "--tune", "--record"]
    done = CliRunner().invoke(app, ["toy", *given], prog_name="ownfeed")
    assert done.exit_code == 0, done.output
    assert records.read("toy", tmp_path).command == 'ownfeed toy --models "a b" --models c --tune'
    assert "x" in done.stdout
    assert "toy.json is written" in done.stderr


def test_without_the_option_no_record_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path / "results")
    assert CliRunner().invoke(app, ["toy"]).exit_code == 0
    assert not (tmp_path / "results").exists()

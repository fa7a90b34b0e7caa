"""`ownfeed evaluate movielens`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.bench.table import Table
from experiments.datasets.movielens import FOLDER, load_movielens
from experiments.movielens.report import tables
from experiments.movielens.study import TRAININGS, MovieLensSettings, count, read_runs, run_study, trained, write_runs
from experiments.movielens.systems import Choices


def run_movielens(
    *,
    data: Path,
    systems: Sequence[str],
    builds: int,
    settings: MovieLensSettings,
    choices: Choices,
    processes: int,
    out: Path | None,
    console: Console,
) -> list[Table]:
    """Run the study and return its tables. Every finished training is in `out` at once, and is not repeated.

    systems: names of rows, or parts of names; none means all. Raises DataMissing, MalformedRow and ValueError.
    """
    names = wanted(systems)
    runs = read_runs(out, settings, choices) if out is not None else []
    load_movielens(data / FOLDER)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        trainings = bar.add_task("Trainings", total=count(names, builds))
        done = sum(name in names and build < builds for name, build in trained(runs))
        bar.update(trainings, completed=done)
        for found in run_study(data, names, builds, settings, choices, list(runs), processes):
            runs.extend(found)
            bar.advance(trainings)
            for run in found:
                bar.console.print(
                    f"  {run.row}, build {run.build}: P@10 {run.figures.precision:.4f}, AUC {run.figures.auc:.4f}, "
                    f"{run.seconds:.0f} core s"
                )
            if out is not None:
                write_runs(out, settings, choices, runs)
    return tables(runs, settings, choices)


def wanted(systems: Sequence[str]) -> list[str]:
    """Rows by their names, or by parts of them. Raises ValueError, with the names there are, for any other."""
    names: set[str] = set()
    for part in systems or TRAININGS:
        found = [name for name in TRAININGS if name.lower() == part.lower()]
        found = found or [name for name in TRAININGS if part.lower() in name.lower()]
        if not found:
            raise ValueError(f"systems: {part!r} is in none of {', '.join(TRAININGS)}")
        names.update(found)
    return [name for name in TRAININGS if name in names]

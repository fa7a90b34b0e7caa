"""`ownfeed evaluate ranking`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from experiments.bench.table import Table
from experiments.datasets.mind import FOLDER, load_mind
from experiments.ranking.choices import choices
from experiments.ranking.models import CONTESTANTS
from experiments.ranking.report import table
from experiments.ranking.study import SCHEDULES, RankingSettings, Schedule, Workbench, read_runs, run_study, write_runs
from experiments.ranking.untrained import untrained_table


def run_ranking(
    *,
    data: Path,
    models: Sequence[str],
    schedules: Sequence[Schedule] = SCHEDULES,
    seeds: int,
    settings: RankingSettings,
    out: Path | None,
    console: Console,
) -> list[Table]:
    """Run the study and return its tables. Every finished run is in `out` at once, and is not repeated another time.

    models: parts of contestants' names; none trains nothing. Raises DataMissing, MalformedRow and ValueError.
    """
    names = [name for name in CONTESTANTS if any(part.lower() in name.lower() for part in models)]
    unknown = [part for part in models if not any(part.lower() in name.lower() for name in CONTESTANTS)]
    if unknown:
        raise ValueError(f"models: {unknown[0]!r} is in none of {', '.join(CONTESTANTS)}")
    runs = read_runs(out, settings) if out is not None else []
    bench = Workbench(load_mind(data / FOLDER))
    console.print("Scorers without training ...", style="bold")
    untrained = untrained_table(bench.mind, bench.vectors, seed=0)
    for run in run_study(bench, names, schedules, range(seeds), settings, runs):
        runs.append(run)
        console.print(
            f"  {run.study_model}, {run.schedule}, seed {run.seed}: AUC {run.start.auc:.4f} -> {run.end.auc:.4f}, "
            f"loss {run.first_loss:.3f} -> {run.last_loss:.3f}, {run.seconds:.0f} s"
        )
        if out is not None:
            write_runs(out, settings, runs, untrained)
    if out is not None:
        write_runs(out, settings, runs, untrained)
    return [table(untrained, runs, settings), choices(bench.mind, bench.vectors)]

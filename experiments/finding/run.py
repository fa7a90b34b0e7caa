"""`ownfeed evaluate finding`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from experiments.bench.table import Cell, DataMissing, Table
from experiments.datasets.mind import FOLDER
from experiments.finding.methods import BASES, CHOSEN, GRIDS, methods_of
from experiments.finding.study import METRICS, VALIDATION_SEED, FindingSizes, Job, Result, best, run_jobs

AGAINST = "vanilla"
COLUMNS = (
    "method",
    "AUC",
    "sd",
    *METRICS[1:],
    "known AUC",
    "cold AUC",
    "AUC - vanilla",
    "known - vanilla",
    "cold - vanilla",
    "models",
    "s",
)


def run_finding(
    *,
    data: Path,
    bases: Sequence[str],
    methods: Sequence[str],
    seeds: int,
    sizes: FindingSizes,
    tune: bool,
    processes: int,
    console: Console,
) -> list[Table]:
    """The table of each base; with `tune`, the grids on the validation impressions instead.

    methods: names; none is all. Raises DataMissing, MalformedRow, and ValueError for an unknown name.
    """
    unknown = [name for name in bases if name not in BASES]
    if unknown:
        raise ValueError(f"model: {unknown[0]!r} is none of {', '.join(BASES)}")
    names = {base: methods_of(base, methods) for base in bases}
    if not (data / FOLDER).is_dir():
        raise DataMissing(f"{data / FOLDER} is not there (name the folder with --data or OWNFEED_DATA)")
    told = _tuned if tune else _compared
    return [told(data, base, names[base], seeds, sizes, processes, console) for base in bases]


def _compared(
    data: Path, base: str, names: Sequence[str], seeds: int, sizes: FindingSizes, processes: int, console: Console
) -> Table:
    asked = names if AGAINST in names else [AGAINST, *names]
    jobs = [Job.of(base, name, seed, CHOSEN[base].get(name, {})) for seed in range(seeds) for name in asked]
    results: dict[str, list[Result]] = {name: [] for name in asked}
    for result in run_jobs(data, sizes, jobs, "test", processes):
        results[result.job.method].append(result)
        _tell(result, console)
    return table(base, results, sizes)


def table(base: str, results: dict[str, list[Result]], sizes: FindingSizes) -> Table:
    """Means over seeds; differences are paired by seed and impression, with their standard error over impressions."""
    against = results[AGAINST]
    known = against[0].known
    rows = [_row(name, runs, against) for name, runs in results.items()]
    notes = (
        f"{BASES[base].study_model}; {sizes.rounds} rounds of {sizes.cohort} readers; {len(against)} seeds. Means over "
        f"{len(known)} impressions: {int(known.sum())} of readers who trained, {int((~known).sum())} of cold ones.",
        "Hyper-parameters were chosen on earlier impressions of train (--tune). sd: of AUC over seeds. Differences are "
        "paired by seed and impression, +- one standard error over impressions.",
        "models: how many different ones the known readers rank with. s: seconds a run.",
        *(
            f"{run.job.method}, seed {run.job.seed}: {run.note}."
            for runs in results.values()
            for run in runs
            if run.note
        ),
    )
    return Table(f"FINDING and its baselines, MIND subset, {base}", COLUMNS, rows, notes)


def _row(name: str, runs: Sequence[Result], against: Sequence[Result]) -> tuple[Cell, ...]:
    metrics = np.mean([run.metrics for run in runs], axis=0)  # [impressions, 4]
    known = runs[0].known
    aucs = [run.auc() for run in runs]
    gains = metrics[:, 0] - np.mean([run.metrics for run in against], axis=0)[:, 0]
    parts = (np.ones_like(known), known, ~known)
    compared = [None] * 3 if name == AGAINST else [_difference(gains[part]) for part in parts]
    return (
        name,
        *(f"{metrics[:, 0].mean():.4f}", f"{np.std(aucs, ddof=1):.4f}" if len(aucs) > 1 else None),
        *(f"{each:.4f}" for each in metrics[:, 1:].mean(axis=0)),
        *(f"{metrics[part, 0].mean():.4f}" for part in parts[1:]),
        *compared,
        round(float(np.mean([run.models for run in runs]))),
        round(float(np.mean([run.seconds for run in runs]))),
    )


def _difference(gains: np.ndarray) -> str:
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else float("nan")
    return f"{gains.mean():+.4f} +- {error:.4f}"


def _tuned(
    data: Path, base: str, names: Sequence[str], seeds: int, sizes: FindingSizes, processes: int, console: Console
) -> Table:
    grid = [(name, values) for name in names for values in GRIDS[base].get(name, ({},))]
    jobs = [Job.of(base, name, VALIDATION_SEED, values) for name, values in grid]
    results = []
    for result in run_jobs(data, sizes, jobs, "validation", processes):
        results.append(result)
        _tell(result, console)
    chosen = {id(result) for result in best(results).values()}
    rows: list[tuple[Cell, ...]] = [
        (
            result.job.method,
            ", ".join(f"{name} {value:g}" for name, value in result.job.values) or None,
            *(f"{result.auc(part):.4f}" for part in (None, result.known, ~result.known)),
            result.models,
            "chosen" if id(result) in chosen else None,
        )
        for result in results
    ]
    notes = (f"Validation impressions, seed {VALIDATION_SEED}; chosen: the greatest AUC, the first of equals.",)
    columns = ("method", "values", "AUC", "known AUC", "cold AUC", "models", "")
    return Table(f"Hyper-parameters, {base}", columns, rows, notes)


def _tell(result: Result, console: Console) -> None:
    job = result.job
    values = "".join(f", {name} {value:g}" for name, value in job.values)
    console.print(
        f"  {job.base}, {job.method}, seed {job.seed}{values}: AUC {result.auc():.4f}, {result.seconds:.0f} s"
        + (f"; {result.note}" if result.note else "")
    )

"""Runs studies, which compare runs: with progress, resumable from a file of finished runs, and ending in tables."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.records import Table


@dataclass(frozen=True)
class RunCheckpoint:
    """The file of one study's runs. settings: those that every run in it shares, as JSON values."""

    path: Path
    settings: Mapping[str, Any]

    def read(self) -> list[dict[str, Any]]:
        """Return the stored runs; none if there is no such file.

        Raises ValueError if its settings differ, because results of two studies don't belong in one file, or if it is
        not a file of results.
        """
        if not self.path.is_file():
            return []
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            theirs, runs = kept.get("settings"), list(kept["runs"])
        except (ValueError, AttributeError, KeyError, TypeError) as broken:
            raise ValueError(f"{self.path} contains no results: {broken}") from None
        if theirs != dict(self.settings):
            raise ValueError(
                f"{self.path} contains a study with settings {theirs}, not {dict(self.settings)}; choose another file"
            )
        return runs

    def write(self, runs: Sequence[Mapping[str, Any]]) -> None:
        """Write the runs as JSON, atomically."""
        kept = {"settings": dict(self.settings), "runs": [dict(run) for run in runs]}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_suffix(".part")
        scratch.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        os.replace(scratch, self.path)


Job = TypeVar("Job", bound=Hashable)
Run = TypeVar("Run")


class Study(ABC, Generic[Job, Run]):
    """One comparison: its jobs, how to run a job, and the tables of all runs.

    Jobs and the study can be sent to another process. The result of `run` depends only on the job and on `settings`, so
    a stored run need not be repeated.
    """

    @property
    @abstractmethod
    def jobs(self) -> Sequence[Job]:
        """Return the jobs, in order."""

    @abstractmethod
    def run(self, job: Job) -> Run:
        """Run one job."""

    @abstractmethod
    def line(self, job: Job, run: Run) -> str:
        """Return a run's result as a line of progress."""

    @abstractmethod
    def tables(self, runs: Mapping[Job, Run]) -> list[Table]:
        """Return the tables of these runs, and tables that need no run."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return everything that runs depend on besides the job, as JSON values."""
        return {}

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of the runs."""
        return ()

    def prepare(self) -> None:
        """Check the data before the first run. Raises DataMissing or MalformedRow."""

    def rows(self, job: Job, run: Run) -> list[dict[str, Any]]:
        """Return a run as rows of the file. Raises ValueError if the study has no file."""
        raise ValueError(f"out: runs of {type(self).__name__} can't be written to a file; omit --out")

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, Run]:
        return {}


def conduct(study: Study[Job, Run], *, console: Console, out: Path | None = None, processes: int = 1) -> list[Table]:
    """Run the jobs that `out` lacks, store each run there at once, and return the tables.

    Stored runs of other jobs appear in the tables, too. Results do not depend on the number of processes. Raises
    ValueError for a file with other settings, and what `prepare` and `run` raise.
    """
    kept = RunCheckpoint(out, study.settings) if out is not None else None
    runs = study.runs(kept.read()) if kept is not None else {}
    jobs = [job for job in study.jobs if job not in runs]
    if jobs:
        study.prepare()
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(TextColumn("{task.description}"), *columns, console=console) as bar:
            task = bar.add_task("Runs", total=len(study.jobs), completed=len(study.jobs) - len(jobs))
            for job, run in _each(study, jobs, processes):
                runs[job] = run
                bar.advance(task)
                bar.console.print(f"  {study.line(job, run)}", markup=False)
                if kept is not None:
                    kept.write([row for each in runs.items() for row in study.rows(*each)])
    return [table if table.seeds else replace(table, seeds=study.seeds) for table in study.tables(_sorted(study, runs))]


def _sorted(study: Study[Job, Run], runs: Mapping[Job, Run]) -> dict[Job, Run]:
    """Return the runs in the order of the jobs, after runs of other jobs."""
    return {job: run for job, run in runs.items() if job not in study.jobs} | {
        job: runs[job] for job in study.jobs if job in runs
    }


def _each(study: Study[Job, Run], jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Run]]:
    """Yield jobs with their runs as they end; several processes take one job each."""
    if processes == 1:
        torch.set_num_threads(1)
        yield from ((job, study.run(job)) for job in jobs)
        return
    with ProcessPoolExecutor(
        min(processes, len(jobs)), mp_context=get_context("spawn"), initializer=_start, initargs=(study,)
    ) as pool:
        waiting = {pool.submit(_run_here, job): job for job in jobs}
        try:
            for ended in as_completed(waiting):
                yield waiting[ended], ended.result()
        finally:
            pool.shutdown(cancel_futures=True)


_study_here: Study[Any, Any] | None = None
"""This worker process's study, set once by `_start`."""


def _start(study: Study[Any, Any]) -> None:
    global _study_here
    torch.set_num_threads(1)
    _study_here = study


def _run_here(job: Hashable) -> Any:
    if _study_here is None:
        raise RuntimeError("this process has no study")
    return _study_here.run(job)

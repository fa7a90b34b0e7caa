"""A study: runs that are compared. Every study is conducted alike: resumed from its file, counted, told, tabled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.checkpoint import RunCheckpoint
from experiments.table import Table

Job = TypeVar("Job", bound=Hashable)
Run = TypeVar("Run")


class Study(ABC, Generic[Job, Run]):
    """One comparison: its jobs, how one of them is run, and the tables that come of all.

    A job is a value that can be sent to another process, and so is the study. What `run` makes depends on the job and
    on `settings` alone, so that a run in a file stands for a repetition.
    """

    @property
    @abstractmethod
    def jobs(self) -> Sequence[Job]:
        """What is to be run, in order."""

    @abstractmethod
    def run(self, job: Job) -> Run:
        """Run one."""

    @abstractmethod
    def line(self, job: Job, run: Run) -> str:
        """What came out of one run, for who waits."""

    @abstractmethod
    def tables(self, runs: Mapping[Job, Run]) -> list[Table]:
        """The tables of these runs, and of what needs none."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that runs depend on besides the job, as JSON has it."""
        return {}

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of what the runs draw."""
        return ()

    def prepare(self) -> None:
        """Raise DataMissing or MalformedRow, where the data is not as it must be, before the first run."""

    def rows(self, job: Job, run: Run) -> list[dict[str, Any]]:
        """A run as rows of the file. Raises ValueError where a study has no file."""
        raise ValueError(f"out: runs of {type(self).__name__} can't be kept")

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, Run]:
        """The runs of rows that `rows` made."""
        return {}


def conduct(study: Study[Job, Run], *, console: Console, out: Path | None = None, processes: int = 1) -> list[Table]:
    """Run what is not in `out` yet, each run written there at once, and return the tables.

    Runs in the file that aren't among the jobs stand in the tables, too. Results don't depend on the number of
    processes. Raises ValueError for a file of other settings, and what `prepare` and `run` raise.
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
    """In the order of the jobs, whichever ended first; others before them."""
    return {job: run for job, run in runs.items() if job not in study.jobs} | {
        job: runs[job] for job in study.jobs if job in runs
    }


def _each(study: Study[Job, Run], jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Run]]:
    """Each job with its run, as it ends; several processes take a job each."""
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
"""This worker's study, set once by `_start` in a process that does nothing else; what it loads it keeps."""


def _start(study: Study[Any, Any]) -> None:
    global _study_here
    torch.set_num_threads(1)
    _study_here = study


def _run_here(job: Hashable) -> Any:
    if _study_here is None:
        raise RuntimeError("this process has no study")
    return _study_here.run(job)

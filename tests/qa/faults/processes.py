"""Processes that are killed at their points."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.doubles.forked import forked
from tests.qa.faults.points import DeadlyPoint, FullFor, PointCounts, watch
from tests.qa.faults.scarce_space import make_scarce


@dataclass
class WatchedProcess:
    """A process, running or ended, whose points are counted."""

    process: BaseProcess
    counts: PointCounts
    output: Path

    @property
    def killed(self) -> bool:
        """Return whether it died at its deadly point."""
        return self.process.exitcode == -signal.SIGKILL and bool(self.counts.what())

    def ended(self) -> WatchedProcess:
        """Wait for its end. Raises AssertionError with its output if it neither succeeded nor was killed."""
        self.process.join()
        exit_code = self.process.exitcode
        reported = self.output.read_text(errors="replace")[-4_000:]
        assert exit_code in (0, -signal.SIGKILL), f"it has ended with {exit_code} and said {reported or 'nothing'}"
        return self

    def kill(self) -> None:
        """Kill it if it has not ended."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def started(
    work: Callable[..., None],
    *arguments: Any,
    watched: Path,
    notes: Path,
    deadly: DeadlyPoint | None = None,
    full: FullFor | None = None,
) -> WatchedProcess:
    """Start a process that does the work.

    watched: the folder whose files are points; notes: a new folder for its output; full: when it is refused space on
    that folder's disk; None: never, and requests for space aren't counted either.
    """
    notes.mkdir(parents=True)
    output = notes / "output"
    counts = PointCounts(notes / "points")
    if full is not None:
        counts.refuse(full)
    process = forked(_run, work, arguments, watched, notes / "points", output, deadly, full is not None)
    return WatchedProcess(process, counts, output)


def _run(
    work: Callable[..., None],
    arguments: tuple[Any, ...],
    watched: Path,
    counts: Path,
    output: Path,
    deadly: DeadlyPoint | None,
    is_scarce: bool,
) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    passed = PointCounts(counts)
    if is_scarce:
        make_scarce(watched, passed)
    else:
        watch(watched, passed, deadly)
    work(*arguments)

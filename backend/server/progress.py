"""Progress of long work: the work reports how far it is, and a terminal displays it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Advance = Callable[[int, int | None], None]
"""Called with (done, total), total None if unknown."""
LINE_EVERY_SEC = 15.0
"""Seconds between two lines of one step if no progress bar can be drawn."""


class Steps(Protocol):
    """Displays long steps, one after another."""

    def step(self, title: str) -> AbstractContextManager[Advance]:
        """Show `title` while the block runs; the block calls the yielded function as it progresses."""


class TerminalSteps:
    """Progress bars on standard error; plain lines if it isn't a terminal. clock: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = Console(stderr=True), clock

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        """A bar that stays, finished, when the block ends."""
        if not self._console.is_terminal:
            self._console.print(f"{title} ...", highlight=False)
            yield self._in_lines(title)
            return
        columns = (
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as bars:
            task = bars.add_task(title.ljust(34), total=None)

            def advance(done: int, total: int | None) -> None:
                bars.update(task, completed=done, total=total)

            yield advance
            finished = bars.tasks[0].completed or 1
            bars.update(task, completed=finished, total=finished)

    def _in_lines(self, title: str) -> Advance:
        printed_at = self._clock()

        def advance(done: int, total: int | None) -> None:
            nonlocal printed_at
            if self._clock() - printed_at >= LINE_EVERY_SEC:
                printed_at = self._clock()
                of = "" if total is None else f" of {total:,}"
                self._console.print(f"{title}: {done:,}{of}", highlight=False)

        return advance


class SilentSteps:
    """Displays nothing: for tests and for --json."""

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        """Run the block and display nothing."""
        yield _ignore


def steps(*, silent: bool) -> Steps:
    """Progress for a person, or none for a script."""
    return SilentSteps() if silent else TerminalSteps()


def _ignore(done: int, total: int | None) -> None:
    """Ignore the progress."""

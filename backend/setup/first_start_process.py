"""Runs `backend.setup.first_start` in a separate process: `python -m backend.setup.first_start_process`.

Torch, and what a first run's embedding allocated, stay in the memory of the process that used them. A process that
starts others and then waits for hours, such as the demo or `ownfeed read`, should not hold it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TextIO

from backend.errors import OwnfeedError
from backend.server.local_processes import StartRefused
from backend.server.progress import Advance, Steps
from backend.settings import BackendSettings

COMMAND = (sys.executable, "-m", "backend.setup.first_start_process")
WAITS, NEWS = "--wait-for-news", "news"
"""The argument that makes the process wait, and the line on its standard input that ends the wait."""
STEP, DONE, END, REFUSED = "step", "done", "end", "refused"
"""Messages of the process, a JSON array per line: [STEP, title], then [DONE, number, total or null]..., then [END]; and
[REFUSED, reason] as its last."""


class FirstStartProcess:
    """The running process; `follow` shows its progress and waits for its end.

    waits: it waits for `news_are_here` after making what needs no articles. command: of the process; tests pass their
    own. Other output of the process goes to our standard error.
    """

    def __init__(self, settings: BackendSettings, *, waits: bool = False, command: Sequence[str] = COMMAND) -> None:
        self._folder = settings.data_dir
        self._process = subprocess.Popen(
            [*command, WAITS] if waits else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches us, and we end it
        )
        self._tell(settings.model_dump_json())
        if not waits:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is not None:
            self.terminate()
        self._close()
        self._process.__exit__(None, None, None)

    def news_are_here(self) -> None:
        """Let it continue with what needs articles."""
        self._tell(NEWS)
        self._close()

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def terminate(self) -> None:
        """End it; `follow` then raises StartRefused."""
        self._process.terminate()

    def follow(self, steps: Steps) -> None:
        """Show its progress until it ends.

        Raises StartRefused with the reason as a sentence. What was prepared by then stays, and the next start continues
        from there.
        """
        assert self._process.stdout is not None
        refused = _shown(map(json.loads, self._process.stdout), steps)
        if code := self._process.wait():
            raise StartRefused(refused or f"Preparing {self._folder} ended with code {code}.")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended; its exit code shows that
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()


def _shown(lines: Iterator[list[Any]], steps: Steps) -> str | None:
    """Show messages until the end; return the reason of a refusal, if there is one."""
    for kind, text in lines:
        if kind == REFUSED:
            return str(text)
        with steps.step(text) as advance:
            for within, *values in lines:
                if within == REFUSED:
                    return str(values[0])
                if within == END:
                    break
                advance(*values)
    return None


class StepWriter:
    """Steps reported to another process, one line each."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, *values: object) -> None:
        """Write one message as a line."""
        self._out.write(f"{json.dumps(values)}\n")
        self._out.flush()

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        """Report the step, its progress, and its end."""
        self.write(STEP, title)
        yield lambda done, total: self.write(DONE, done, total)
        self.write(END)


def main() -> int:
    """Run the process: settings on standard input, on one line.

    Exit code 1 after a reported refusal.
    """
    from backend.setup.first_start import make_servable

    settings = BackendSettings.model_validate_json(sys.stdin.readline())
    steps = StepWriter(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # exporters print
    try:
        make_servable(settings, steps, _wait_for_news if WAITS in sys.argv else None)
    except OSError as failed:
        steps.write(
            REFUSED, f"Preparing {settings.data_dir} failed: {failed.strerror}. The next start continues from here."
        )
        return 1
    except OwnfeedError as refused:
        steps.write(REFUSED, str(refused))
        return 1
    return 0


def _wait_for_news() -> None:
    """Wait for the line; raises OwnfeedError if the other process has ended without sending it."""
    if sys.stdin.readline().strip() != NEWS:
        raise OwnfeedError("The preparation was cancelled before the articles arrived.")


if __name__ == "__main__":
    sys.exit(main())

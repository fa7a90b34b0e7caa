"""`backend.first_start` in a process of its own, `python -m backend.first_start_process`, which ends when all is there.

Torch, and what a first run's embedding took, stay in the memory of the process that used them. Whoever starts others
and then waits for hours, as the demo and the reader of own feeds do, needs none of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TextIO

from backend.errors import OwnfeedError
from backend.local_processes import StartRefused
from backend.progress import Advance, Steps
from backend.settings import BackendSettings

COMMAND = (sys.executable, "-m", "backend.first_start_process")
WAITS, NEWS = "--wait-for-news", "news"
"""The argument that has the process wait, and the line on its standard input that ends that."""
STEP, DONE, END, REFUSED = "step", "done", "end", "refused"
"""What the process tells, a JSON array a line: [STEP, title], then [DONE, number, in all or null]..., then [END]; and
[REFUSED, why] as its last."""


class FirstStartProcess:
    """The process at work, from the start on; `follow` shows it and waits for its end.

    waits: for `news_are_here`, before which it makes what needs no news. command: of the process; tests bring their
    own. What the process writes besides what it tells goes to our standard error.
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
            self._process.terminate()
        self._close()
        self._process.__exit__(None, None, None)

    def news_are_here(self) -> None:
        """Let it go on with what needs news."""
        self._tell(NEWS)
        self._close()

    def follow(self, steps: Steps) -> None:
        """Show what it does until it ends.

        Raises StartRefused with a sentence that says why. What was prepared by then stays, and the next time goes on
        from there.
        """
        assert self._process.stdout is not None
        refused = _shown(map(json.loads, self._process.stdout), steps)
        if code := self._process.wait():
            raise StartRefused(refused or f"Preparing {self._folder} ended with code {code}.")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended; its code says so
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()


def _shown(lines: Iterator[list[Any]], steps: Steps) -> str | None:
    """Show what is told as it comes, to the end; why it was refused, if it was."""
    for kind, text in lines:
        if kind == REFUSED:
            return str(text)
        with steps.step(text) as advance:
            for within, *told in lines:
                if within == REFUSED:
                    return str(told[0])
                if within == END:
                    break
                advance(*told)
    return None


class ToldSteps:
    """Steps told to another process, a line each."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def tell(self, *told: object) -> None:
        """Write one line."""
        self._out.write(f"{json.dumps(told)}\n")
        self._out.flush()

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        """Tell of the step, of how far it is, and of its end."""
        self.tell(STEP, title)
        yield lambda done, total: self.tell(DONE, done, total)
        self.tell(END)


def main() -> int:
    """The process: settings on standard input, a line; exit code 1 after a refusal that was told."""
    from backend.first_start import make_servable

    settings = BackendSettings.model_validate_json(sys.stdin.readline())
    steps = ToldSteps(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # exporters print
    try:
        make_servable(settings, steps, _wait_for_news if WAITS in sys.argv else None)
    except OSError as failed:
        steps.tell(
            REFUSED, f"Preparing {settings.data_dir} failed: {failed.strerror}. The next start goes on from here."
        )
        return 1
    except OwnfeedError as refused:
        steps.tell(REFUSED, str(refused))
        return 1
    return 0


def _wait_for_news() -> None:
    """Raises OwnfeedError if whoever would bring them has ended without."""
    if sys.stdin.readline().strip() != NEWS:
        raise OwnfeedError("Preparing was given up before the news came.")


if __name__ == "__main__":
    sys.exit(main())

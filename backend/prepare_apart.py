"""`backend.prepare` by a process of its own, `python -m backend.prepare_apart`, which ends when everything is there.

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
from typing import Any, TextIO

from backend.errors import OwnfeedError
from backend.local_processes import StartRefused
from backend.progress import Advance, Steps
from backend.settings import BackendSettings

COMMAND = (sys.executable, "-m", "backend.prepare_apart")
STEP, DONE, END, REFUSED = "step", "done", "end", "refused"
"""What the process tells, a JSON array a line: [STEP, title], then [DONE, number, in all or null]..., then [END]; and
[REFUSED, why] as its last."""


def prepare_apart(settings: BackendSettings, steps: Steps, command: Sequence[str] = COMMAND) -> None:
    """As `prepare`, shown on `steps`. What the process writes besides goes to our standard error.

    command: of the process; tests bring their own. Raises StartRefused with a sentence that says why. What was prepared
    by then stays, and the next time goes on from there.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches us, and we end it
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # it has ended; its code says so
                process.stdin.write(settings.model_dump_json())
                process.stdin.close()
            refused = _shown(map(json.loads, process.stdout), steps)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise StartRefused(refused or f"Preparing {settings.data_dir} ended with code {process.returncode}.")


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
    """The process: settings on standard input; exit code 1 after a refusal that was told."""
    from backend.prepare import prepare

    settings = BackendSettings.model_validate_json(sys.stdin.read())
    steps = ToldSteps(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # exporters print
    try:
        prepare(settings, steps)
    except OSError as failed:
        steps.tell(
            REFUSED, f"Preparing {settings.data_dir} failed: {failed.strerror}. The next start goes on from here."
        )
        return 1
    except OwnfeedError as refused:
        steps.tell(REFUSED, str(refused))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

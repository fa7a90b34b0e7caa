"""Measures this server end to end by simulated readers, in a separate process, and stores the last result.

The result, and whether a measurement is running, are in one file of the data folder, so that all processes of a server
show the same.
"""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from protocol.fleet_figures import MeasuredLatency
from protocol.private_files import write_file

COMMAND = (sys.executable, "-m", "device_app.fleet.latency")
READERS, PAGES = 4, 10
LIMIT_SEC = 240.0
REASON_CHARS = 300


class EndToEndLatency(BaseModel):
    """The last measurement: running, done with its figures, or failed with its reason."""

    model_config = ConfigDict(frozen=True)

    state: Literal["running", "done", "failed"]
    at: AwareDatetime
    found: MeasuredLatency | None = None
    reason: str | None = Field(default=None, max_length=REASON_CHARS)


def last(data_dir: Path, now: datetime | None = None) -> EndToEndLatency | None:
    """Return the last measurement, or None; one whose process must have ended long ago with its server has failed."""
    try:
        found = EndToEndLatency.model_validate_json(_file(data_dir).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    if found.state == "running" and (now or datetime.now(UTC)) - found.at > timedelta(seconds=LIMIT_SEC + 10):
        return EndToEndLatency(state="failed", at=found.at, reason="The server stopped before the measurement ended.")
    return found


def start(data_dir: Path, url: str, command: Sequence[str] = COMMAND) -> threading.Thread | None:
    """Start a measurement of the server at this URL in a new thread and return the thread; None if one is running."""
    before = last(data_dir)
    if before is not None and before.state == "running":
        return None
    _keep(data_dir, EndToEndLatency(state="running", at=datetime.now(UTC)))
    thread = threading.Thread(target=_measure, args=(data_dir, url, command), name="end-to-end", daemon=True)
    thread.start()
    return thread


def _measure(data_dir: Path, url: str, command: Sequence[str]) -> None:
    def ended(
        state: Literal["done", "failed"], found: MeasuredLatency | None = None, reason: str | None = None
    ) -> None:
        _keep(data_dir, EndToEndLatency(state=state, at=datetime.now(UTC), found=found, reason=reason))

    with tempfile.TemporaryDirectory(prefix="ownfeed-latency-") as folder:
        try:
            done = subprocess.run(
                [*command, url, str(READERS), str(PAGES), folder],
                capture_output=True,
                text=True,
                timeout=LIMIT_SEC,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as failed:
            ended("failed", reason=str(failed)[:REASON_CHARS])
            return
    try:
        ended("done", MeasuredLatency.model_validate_json(done.stdout))
    except ValidationError:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        ended("failed", reason=words[-1][:REASON_CHARS] if words else f"It ended with code {done.returncode}.")


def _keep(data_dir: Path, found: EndToEndLatency) -> None:
    write_file(_file(data_dir), found.model_dump_json())


def _file(data_dir: Path) -> Path:
    return data_dir / "end-to-end-latency.json"

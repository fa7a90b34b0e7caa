"""Runs server and device as processes of this machine: one start per folder, watched, and stopped in order.

The demo and the reader of own feeds share this. All data of a start are in one folder, guarded by one lock.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import httpx
from filelock import FileLock, Timeout

from backend.errors import OwnfeedError

NEEDED_BYTES = 700 * 1024 * 1024
START_SEC = 600.0
"""A process that ends is reported at once; a slow one, with 100,000 articles on a busy machine, is given this time."""
STOP_SEC = 10.0
LOOPBACK = "127.0.0.1"


class StartRefused(OwnfeedError):
    """A start on this machine failed or can't continue.

    The message is one line that says what to do.
    """

    code, status, title = "start-refused", 500, "Ownfeed can't run here"


@dataclass(frozen=True)
class LocalPlan:
    """The folder and the ports of a start on this machine.

    name: the lock's name in the folder, also used in messages.
    """

    name: ClassVar[str]
    data_dir: Path
    backend_port: int = 8400
    device_port: int = 8401

    @property
    def feed_url(self) -> str:
        """The address of the reader's feed."""
        return f"http://{LOOPBACK}:{self.device_port}/"

    @property
    def backend_url(self) -> str:
        """The server's address for devices."""
        return f"http://{LOOPBACK}:{self.backend_port}"


@contextmanager
def single_start(plan: LocalPlan) -> Iterator[None]:
    """Hold the folder's lock.

    Raises StartRefused if another start holds it, a port is taken or the disk is too full.
    """
    try:
        plan.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as failed:
        raise StartRefused(f"{plan.data_dir} can't be made: {failed.strerror}.", field="data_dir") from failed
    note = plan.data_dir / f"{plan.name}.pid"
    lock = FileLock(plan.data_dir / f"{plan.name}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as held:
        who = note.read_text(encoding="utf-8").strip() if note.is_file() else "another process"
        raise StartRefused(
            f"A {plan.name} already runs in {plan.data_dir} ({who}). Stop it first, or use another --data-dir."
        ) from held
    except OSError as failed:
        raise StartRefused(f"{plan.data_dir} can't be written: {failed.strerror}.", field="data_dir") from failed
    try:
        _check_ports(plan)
        free = shutil.disk_usage(plan.data_dir).free
        if free < NEEDED_BYTES:
            raise StartRefused(
                f"{plan.data_dir} has {free // 2**20} MiB free; the {plan.name} needs {NEEDED_BYTES // 2**20} MiB. "
                "Nothing was written.",
                field="data_dir",
            )
        note.write_text(f"pid {os.getpid()}, feed at {plan.feed_url}\n", encoding="utf-8")
        yield
    finally:
        if lock.is_locked:
            note.unlink(missing_ok=True)
        lock.release()


def _check_ports(plan: LocalPlan) -> None:
    for option, port in (("--backend-port", plan.backend_port), ("--device-port", plan.device_port)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError as taken:
                raise StartRefused(
                    f"Port {port} is taken. Free it, or choose another with {option}.", field=option
                ) from taken


@dataclass
class LocalProcesses:
    """The processes of one start; each writes its output to its own log file."""

    log_dir: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        """Start `ownfeed <arguments>` in its own process group: Ctrl-C reaches only us, and we stop it in order."""
        self.log_dir.mkdir(parents=True, exist_ok=True)
        with (self.log_dir / f"{name}.log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "ownfeed", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | environment,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise StartRefused if one of them has ended."""
        for name, process in self.running.items():
            if (code := process.poll()) is not None:
                raise StartRefused(f"The {name} exited with code {code}: {self._last_line(name)}")

    def wait_until_served(
        self, name: str, url: str, *, answers: int = httpx.codes.OK, within_sec: float = START_SEC
    ) -> None:
        """Wait until `url` answers with that status.

        Raises StartRefused if the process ends or the time is up.
        """
        deadline = time.monotonic() + within_sec
        with httpx.Client(timeout=2.0, follow_redirects=True) as client:
            while time.monotonic() < deadline:
                self.check()
                try:
                    if client.get(url).status_code == answers:
                        return
                except httpx.TransportError:
                    pass  # not listening yet; the deadline decides
                time.sleep(0.05)
        raise StartRefused(f"The {name} did not answer within {within_sec:g} s: {self._last_line(name)}")

    def stop(self) -> None:
        """Stop the last started first; kill what does not end in time."""
        for process in reversed(self.running.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SEC
        for process in reversed(self.running.values()):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _last_line(self, name: str) -> str:
        path = self.log_dir / f"{name}.log"
        lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return f"{lines[-1].strip()} (all of it: {path})" if lines else f"it said nothing (see {path})"


def link_of(data_dir: Path, pages: str, profile: str = "reader") -> str:
    """The link that opens a device's pages: their address with the key that the device stores in its profile."""
    key = (data_dir / "devices" / profile / "page.key").read_text(encoding="utf-8").strip()
    return f"{pages}enter?key={key}"


def watch(processes: LocalProcesses) -> None:
    """Block until a process ends (raises StartRefused) or the caller is interrupted."""
    while True:
        processes.check()
        time.sleep(0.5)

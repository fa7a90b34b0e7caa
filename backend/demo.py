"""One command, the whole loop: prepare what is missing, then run backend, the reader's device and a simulated fleet.

The three run as processes of their own, as they would anywhere; this one starts them in order, watches them and stops
them. Everything lies in one folder, guarded by one lock.
"""

from __future__ import annotations

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

import httpx
from filelock import FileLock, Timeout

from backend.errors import OwnfeedError
from backend.prepare import prepare, refresh_newsroom
from backend.progress import Steps
from backend.settings import BackendSettings, load_settings

NEEDED_BYTES = 700 * 1024 * 1024
START_SEC = 60.0
STOP_SEC = 10.0
LOOPBACK = "127.0.0.1"


class DemoRefused(OwnfeedError):
    """The demo can't start or go on; the message is one line that says what to do."""

    code, status, title = "demo-refused", 500, "The demo can't run"


@dataclass(frozen=True)
class DemoPlan:
    """What to run and where."""

    data_dir: Path
    backend_port: int = 8400
    device_port: int = 8401
    devices: int = 60
    articles: int = 6_000
    seed: int = 7

    @property
    def feed_url(self) -> str:
        """Where the reader reads."""
        return f"http://{LOOPBACK}:{self.device_port}/"

    @property
    def backend_url(self) -> str:
        """Where devices ask."""
        return f"http://{LOOPBACK}:{self.backend_port}"

    def backend_settings(self) -> BackendSettings:
        """The server's settings for this demo."""
        # NRMS is what `ownfeed round --system efficient_fedrec` trains together with the news model.
        return load_settings(
            data_dir=self.data_dir / "backend", host=LOOPBACK, port=self.backend_port, rankers=("nrms",)
        )


@contextmanager
def single_demo(plan: DemoPlan) -> Iterator[None]:
    """Hold the folder's lock. Raises DemoRefused if another demo has it, a port is taken or the disk is too full."""
    try:
        plan.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as failed:
        raise DemoRefused(f"{plan.data_dir} can't be made: {failed.strerror}.", field="data_dir") from failed
    note = plan.data_dir / "demo.pid"
    lock = FileLock(plan.data_dir / "demo.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as held:
        who = note.read_text(encoding="utf-8").strip() if note.is_file() else "another process"
        raise DemoRefused(
            f"A demo already runs in {plan.data_dir} ({who}). Stop it first, or use another --data-dir."
        ) from held
    except OSError as failed:
        raise DemoRefused(f"{plan.data_dir} can't be written: {failed.strerror}.", field="data_dir") from failed
    try:
        _check_ports(plan)
        free = shutil.disk_usage(plan.data_dir).free
        if free < NEEDED_BYTES:
            raise DemoRefused(
                f"{plan.data_dir} has {free // 2**20} MiB free; the demo needs {NEEDED_BYTES // 2**20} MiB. "
                "Nothing was written.",
                field="data_dir",
            )
        note.write_text(f"pid {os.getpid()}, feed at {plan.feed_url}\n", encoding="utf-8")
        yield
    finally:
        if lock.is_locked:
            note.unlink(missing_ok=True)
        lock.release()


def _check_ports(plan: DemoPlan) -> None:
    for option, port in (("--backend-port", plan.backend_port), ("--device-port", plan.device_port)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError as taken:
                raise DemoRefused(
                    f"Port {port} is taken. Free it, or choose another with {option}.", field=option
                ) from taken


@dataclass
class DemoProcesses:
    """The demo's processes; their output goes to a log file each."""

    log_dir: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        """Start `ownfeed <arguments>` in a group of its own: Ctrl-C reaches us, and we stop it in order."""
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
        """Raise DemoRefused if one of them has ended."""
        for name, process in self.running.items():
            if (code := process.poll()) is not None:
                raise DemoRefused(f"The {name} ended with exit code {code}: {self._last_line(name)}")

    def wait_until_served(
        self, name: str, url: str, *, answers: int = httpx.codes.OK, within_sec: float = START_SEC
    ) -> None:
        """Wait until `url` answers with that status. Raises DemoRefused if the process ends or the time is over."""
        deadline = time.monotonic() + within_sec
        while time.monotonic() < deadline:
            self.check()
            try:
                if httpx.get(url, timeout=2.0, follow_redirects=True).status_code == answers:
                    return
            except httpx.TransportError:
                pass  # not listening yet; the deadline decides
            time.sleep(0.05)
        raise DemoRefused(f"The {name} did not answer within {within_sec:g} s: {self._last_line(name)}")

    def stop(self) -> None:
        """Ask the last started first; kill what does not end in time."""
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


DEMO_DEVICE = {
    # On one machine nobody wants to wait a minute for a round or a release to be noticed. Nothing of privacy stands
    # here: the demo's own reader has the product's defaults.
    "OWNFEED_DEVICE_PERFORMANCE__TRAINING_POLL_SEC": "2",
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "5",
}

DEMO_READERS = {
    **DEMO_DEVICE,
    # Simulated readers take part in training under the papers' noise, whose honest price is 4.9 million an upload: the
    # ledger has to be told so in as many words. Their noisy sums are many a day as well.
    "OWNFEED_DEVICE_PRIVACY__TRAINING": "true",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_TRAINING": "1e9",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_ALONE": "1e9",
    # Sums without noise too, which no epsilon bounds: Efficient-FedRec's rounds are such.
    "OWNFEED_DEVICE_PRIVACY__SECURE_SUM": "exact",
    # Counts come every few minutes here; the budget of a real device pays for one or two a day.
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_COUNTS": "1000",
}

DEMO_COUNTS = {"OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "5"}

# The fleet's devices all come from this machine; elsewhere one address gets a few places in a round and no more.
DEMO_ADDRESSES = {"OWNFEED_BACKEND_UNBOUNDED_ADDRESSES": '["127.0.0.0/8", "::1/128"]'}


def start_demo(plan: DemoPlan, processes: DemoProcesses, steps: Steps) -> tuple[str, str]:
    """Prepare and start everything; return the links that open the feed and the console. The caller stops the crew."""
    settings = plan.backend_settings()
    at = {"OWNFEED_DEVICE_BACKEND_URL": plan.backend_url}
    home = str(plan.data_dir)
    # A device serves what it has without a backend, so it need not wait for one.
    processes.start(
        "device",
        ["device", "--profile", "reader", "--data-dir", home, "--port", str(plan.device_port)],
        at | DEMO_DEVICE,
    )
    try:
        refresh_newsroom(settings, articles=plan.articles, seed=plan.seed, steps=steps)
        prepare(settings, steps)
    except OSError as failed:
        raise DemoRefused(
            f"Preparing {plan.data_dir} failed: {failed.strerror}. The next start goes on from here."
        ) from failed
    with steps.step("Starting the backend and your device"):
        backend = {"OWNFEED_BACKEND_DATA_DIR": str(settings.data_dir), **DEMO_COUNTS, **DEMO_ADDRESSES}
        processes.start("backend", ["serve", "--host", LOOPBACK, "--port", str(plan.backend_port)], backend)
        processes.wait_until_served("backend", f"{plan.backend_url}/v1/health")
        processes.wait_until_served("device", plan.feed_url, answers=httpx.codes.FORBIDDEN)  # it asks for its key
    if plan.devices:
        processes.start("fleet", ["fleet", "--devices", str(plan.devices), "--data-dir", home], at | DEMO_READERS)
    token = settings.admin_token_file.read_text(encoding="utf-8").strip()
    return link_of(plan.data_dir, plan.feed_url), f"{plan.backend_url}/console?token={token}"


def link_of(data_dir: Path, pages: str, profile: str = "reader") -> str:
    """The link that opens a device's pages: their address, with the key that the device keeps in its profile."""
    key = (data_dir / "devices" / profile / "page.key").read_text(encoding="utf-8").strip()
    return f"{pages}enter?key={key}"


def watch(processes: DemoProcesses) -> None:
    """Block until something ends (DemoRefused) or the caller is interrupted."""
    while True:
        processes.check()
        time.sleep(0.5)

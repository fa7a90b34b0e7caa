"""Two versions of this repository side by side, and processes that run the code of one of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ANSWER_WITHIN_SEC = 240.0
OPEN: dict[str, Any] = {
    "host": "127.0.0.1",
    "round_tick_sec": 0.05,
    "pool_poll_sec": 0.2,
    "gate": False,
    "counts_every_minutes": 0,
    "unbounded_addresses": ["127.0.0.0/8"],
    "requests_per_minute": 0,
    "requests_per_minute_in_all": 0,
}
"""Settings of every server here: rounds are told one by one, and all devices have one address."""


class SkewFailed(Exception):
    """What the old and the new version do together is not what it should be."""


@dataclass(frozen=True)
class Tree:
    """A checkout. name: 'old' or 'new'."""

    name: str
    folder: Path

    def environment(self) -> dict[str, str]:
        """Of a process that imports this tree's code and no other's, with the libraries of this environment."""
        libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        path = os.pathsep.join([str(self.folder), *sorted(libraries)])
        return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def command(self, *arguments: str) -> list[str]:
        """Without `site`, whose .pth file names the new tree."""
        return [sys.executable, "-S", "-P", *arguments]

    def child(self, name: str) -> str:
        """A program of this folder, which either tree's code can run."""
        return str(HERE / f"child_{name}.py")

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """To its end. Raises SkewFailed with its last lines where it fails."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise SkewFailed(f"{self.name}: {arguments[0]} ended with {done.returncode}: {done.stderr[-2_000:]}")
        return done

    def world(self, folder: Path, cache: Path, database: str | None = None, *, every: int = 1) -> Path:
        """A backend's data folder, made by this tree. Raises SkewFailed."""
        url = database or f"sqlite:///{folder / 'ownfeed.sqlite'}"
        self.run(self.child("world"), str(folder), url, str(cache / self.name), str(every))
        return folder


def exported(revision: str, folder: Path) -> Tree:
    """The old tree, written into a folder. Raises CalledProcessError for a revision that isn't here."""
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return Tree("old", folder)


@dataclass
class SkewedServer:
    """A backend process of one of the trees."""

    tree: Tree
    url: str
    process: subprocess.Popen[bytes]
    log: Path
    _heard: Path
    _opened: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def heard(self) -> list[dict[str, Any]]:
        """Its requests so far, with `body` and `answer` as bytes."""
        lines = self._heard.read_text(encoding="utf-8").splitlines() if self._heard.exists() else []
        found = [json.loads(line) for line in lines]
        return [each | {"body": b64decode(each["body"]), "answer": b64decode(each["answer"])} for each in found]

    def opened(self) -> list[list[float]]:
        """The sums of its private counts so far."""
        lines = self._opened.read_text(encoding="utf-8").splitlines() if self._opened.exists() else []
        return [json.loads(line) for line in lines]

    def wrong(self) -> list[str]:
        """What it answered with a fault of its own, and what it wrote on standard error."""
        faults = [f"{each['method']} {each['path']} was answered {each['status']}" for each in self.heard()]
        found = [each for each in faults if each.endswith(("answered 500", "answered 0"))]
        if "Traceback" in (said := self.log.read_text(encoding="utf-8", errors="replace")):
            found.append(said[-2_000:])
        return [f"the {self.tree.name} server: {each}" for each in found]

    def kill(self) -> None:
        """As a machine that loses its power."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class SkewedDevices:
    """A process with devices of one of the trees."""

    tree: Tree
    process: subprocess.Popen[str]
    failures: list[str] = field(default_factory=list)

    def ask(self, do: str, name: str = "", **others: Any) -> dict[str, Any]:
        """Have something done by the devices of a fleet. Raises SkewFailed for a fault of theirs."""
        written, read = self.process.stdin, self.process.stdout
        assert written is not None
        assert read is not None
        written.write(json.dumps({"do": do, "name": name, **others}) + "\n")
        written.flush()
        line = read.readline()
        if not line:
            raise SkewFailed(f"{self.tree.name}: the devices' process has ended while asked to {do}")
        answer: dict[str, Any] = json.loads(line)
        if "fault" in answer:
            raise SkewFailed(f"{self.tree.name} devices, asked to {do}: {answer['fault']}")
        self.failures += answer.get("failures", [])
        return answer

    def make(self, name: str, count: int, url: str, folder: Path, *, seed: int = 7, **privacy: Any) -> None:
        """Devices of a backend."""
        self.ask("make", name, count=count, url=url, folder=str(folder), seed=seed, privacy=privacy)

    def facts(self, name: str) -> list[dict[str, Any]]:
        """What they hold."""
        found: list[dict[str, Any]] = self.ask("facts", name)["devices"]
        return found

    def given(self) -> list[str]:
        """What they gave to sums since the last time, as hexadecimal digits."""
        found: list[str] = self.ask("heard")["given"]
        return found


@contextmanager
def devices_of(tree: Tree, log: Path) -> Iterator[SkewedDevices]:
    """A process with devices, until the block ends."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            tree.command(tree.child("devices")),
            env=tree.environment(),
            cwd=tree.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
        try:
            yield SkewedDevices(tree, process)
        finally:
            process.kill()
            process.wait()


@contextmanager
def server_of(
    tree: Tree, folder: Path, port: int, notes: Path, *, build: str = "", **settings: Any
) -> Iterator[SkewedServer]:
    """A backend over a data folder, answering when the block begins; notes: a folder for what it hears and logs."""
    notes.mkdir(parents=True, exist_ok=True)
    log, heard, opened = notes / "log", notes / "heard", notes / "opened"
    chosen = OPEN | {"data_dir": str(folder), "port": port} | settings
    arguments = [json.dumps(chosen), str(heard), str(opened), *([build] if build else [])]
    with log.open("ab") as file:
        process = subprocess.Popen(
            tree.command(tree.child("server"), *arguments),
            env=tree.environment(),
            cwd=tree.folder,
            stdout=file,
            stderr=file,
        )
    server = SkewedServer(tree, f"http://127.0.0.1:{port}", process, log, heard, opened)
    try:
        _answering(server)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


def _answering(server: SkewedServer) -> None:
    """Wait for it. Raises SkewFailed where it has ended."""
    until = time.monotonic() + ANSWER_WITHIN_SEC
    while time.monotonic() < until:
        if server.process.poll() is not None:
            said = server.log.read_text(encoding="utf-8", errors="replace")[-2_000:]
            raise SkewFailed(f"the {server.tree.name} server ended while starting: {said}")
        try:
            if httpx.get(f"{server.url}/v1/health", timeout=2.0).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise SkewFailed(f"the {server.tree.name} server did not answer in time")

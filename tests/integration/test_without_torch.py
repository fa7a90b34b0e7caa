"""`demo`, `serve`, `device` and `read` start without torch. Oracle: a Python that refuses to import it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.doubles.small_world import free_port

ROOT = Path(__file__).parents[2]
START_SEC = 240.0
REFUSES = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "onnx", "onnxscript", "sentence_transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of processes, and of those they start, that can't import torch."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REFUSES, encoding="utf-8")
    paths = os.pathsep.join((str(tmp_path / "site"), str(ROOT)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OWNFEED_")}
    return kept | {"PYTHONPATH": paths, "COLUMNS": "300"}


@contextmanager
def started(
    folder: Path, environment: dict[str, str], until: str, *arguments: str
) -> Iterator[tuple[re.Match[str], Path]]:
    """Run a command until it prints what matches `until`; yield the match, and the file of its output."""
    said = folder / f"{arguments[0]}.txt"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "ownfeed", *arguments], cwd=folder, env=environment, stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + START_SEC
        while (found := re.search(until, said.read_text(encoding="utf-8"))) is None:
            assert process.poll() is None, said.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, said.read_text(encoding="utf-8")
            time.sleep(0.2)
        yield found, said
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_until_served(url: str) -> None:
    deadline = time.monotonic() + START_SEC
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            assert httpx.get(url).status_code == httpx.codes.OK
            return
        time.sleep(0.2)
    pytest.fail(f"nothing answers at {url}")


def ports() -> tuple[str, ...]:
    return ("--backend-port", str(free_port()), "--device-port", str(free_port()))


@pytest.mark.timeout(600)
def test_demo_then_serve_and_device_on_its_folder(tmp_path: Path, environment: dict[str, str]) -> None:
    home = str(tmp_path / "demo")
    demo = ("demo", "--data-dir", home, "--devices", "0", "--articles", "500", *ports())
    with started(tmp_path, environment, r"Your feed\s+(\S+)[\s\S]*until you switch that on", *demo) as (feed, said):
        assert httpx.get(feed[1], follow_redirects=True).status_code == httpx.codes.OK
        assert "need torch, which is not installed" in " ".join(said.read_text(encoding="utf-8").split())
        assert "pip install 'ownfeed[train]'" in said.read_text(encoding="utf-8")
    port, backend = str(free_port()), f"{home}/backend"
    with started(tmp_path, environment, "", "serve", "--data-dir", backend, "--port", port):
        wait_until_served(f"http://127.0.0.1:{port}/v1/health")
        named = ("--data-dir", str(tmp_path / "other"), "--backend", f"http://127.0.0.1:{port}")
        with started(tmp_path, environment, "http://127", "device", *named, "--port", str(free_port())):
            pass


def test_read_starts(tmp_path: Path, environment: dict[str, str]) -> None:
    home = tmp_path / "read"
    with started(tmp_path, environment, "Ownfeed is running", "read", "--data-dir", str(home), *ports()):
        pass
    logs = "".join(path.read_text(encoding="utf-8", errors="replace") for path in home.rglob("*.log"))
    assert "torch" not in logs

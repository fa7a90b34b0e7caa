"""Browser devices that a test steps: one Node process holds them all, each with its own store, ledger and trainer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from device_app.settings import PrivacySettings
from device_app.store.rows import to_us
from tests.doubles.news import SyntheticPool
from tests.doubles.simulated_reader import PlantedReader

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "web"
WASM = (
    WEB / "node_modules" / "@sqlite.org" / "sqlite-wasm" / "dist" / "sqlite3.wasm",
    WEB / "node_modules" / "onnxruntime-web" / "dist" / "ort-wasm-simd-threaded.wasm",
)
LIMIT_S = 1_200.0


class BrowserDevices:
    """The Python end of the process: it writes a line and reads a line."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process, self._url = process, url

    def ask(self, what: str, given: Any) -> Any:
        """Return the answer; fails with the error from Node."""
        written, read = self._process.stdin, self._process.stdout
        assert written is not None
        assert read is not None
        written.write(json.dumps([what, given]) + "\n")
        written.flush()
        line = read.readline()
        assert line, "the browser devices' process has ended"
        reported = json.loads(line)
        assert "fault" not in reported, reported["fault"]
        return reported["answer"]

    def make(
        self, number: int, privacy: PrivacySettings, now: datetime, *, noise: bytes | None = None, send_sec: float = 0.0
    ) -> None:
        """Make a synced device with this number.

        noise: the key of its noise; None: the system's. send_sec: from getting a place to sending the update.
        """
        given = {"number": number, "url": self._url, "privacy": privacy.model_dump(), "now": _ms(now)}
        self.ask("device", given | {"noise": None if noise is None else noise.hex(), "sendSec": send_sec})

    def read(self, number: int, reader: PlantedReader, pool: SyntheticPool, now: datetime) -> None:
        """Create the reader's past: feeds shown, all of them seen, and articles clicked."""
        named = {news_id for feed in reader.feeds for news_id in feed.shown}
        rows = [row for row, card in enumerate(pool.cards) if card.id in named]
        given = {
            "number": number,
            "cards": [pool.cards[row].model_dump_json() for row in rows],
            "vectors": pool.vectors[rows].astype("<f4").tobytes().hex(),
            "width": pool.vectors.shape[1],
            "feeds": [{"id": feed.feed_id, "shown": feed.shown, "at": _ms(feed.at)} for feed in reader.feeds],
            "clicks": [
                {"news": click.news_id, "feed": click.feed_id or None, "at": _ms(click.at)} for click in reader.clicks
            ],
            "now": _ms(now),
        }
        self.ask("read", given)

    def step(self, number: int, now: datetime, *, left: int | None = None) -> dict[str, Any]:
        """Step the device's trainer; left: it is killed after this many commits and requests, and starts again."""
        reported: dict[str, Any] = self.ask("step", {"number": number, "now": _ms(now), "left": left})
        return reported

    def kept(self, number: int) -> dict[str, Any]:
        """Return what its disk holds, and what it has sent."""
        reported: dict[str, Any] = self.ask("kept", number)
        return reported


@contextmanager
def browser_devices(folder: Path, url: str) -> Iterator[BrowserDevices]:
    """Run the process until the block ends; folder: of the bundle. Fails if Node or npm packages are missing."""
    node = shutil.which("node")
    if node is None or not all(path.exists() for path in WASM):
        pytest.fail("Node.js 20 or the npm packages of web/package-lock.json are missing; `make test` gets both")
    bundle = folder / "training_end.mjs"
    subprocess.run(
        [node, WEB / "bundling.mjs", HERE / "training_end.ts", bundle],
        env=os.environ | {"PYTHON": sys.executable},
        check=True,
        timeout=LIMIT_S,
    )
    process = subprocess.Popen(
        [node, "--no-warnings", HERE / "run_browser_devices.mjs", bundle, *WASM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    overdue = threading.Timer(LIMIT_S, process.kill)
    overdue.start()
    try:
        yield BrowserDevices(process, url)
    finally:
        overdue.cancel()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def _ms(at: datetime) -> float:
    return to_us(at) / 1_000

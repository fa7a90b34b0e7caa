"""A real Chromium, and a way to serve an app to it. Where there is no Chromium the tests that need it skip by name."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from filelock import FileLock
from playwright.sync_api import Browser, Error, Playwright, expect, sync_playwright

from tests.conformance.node_end import WEB
from tests.doubles.small_world import shared_cache

SYSTEM_CHROMIUM = (Path("/usr/bin/chromium"), Path("/usr/bin/chromium-browser"), Path("/usr/bin/google-chrome"))
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
START_WITHIN_SEC = 10.0
BUILT_WITHIN_SEC = 300.0
SHOWN_WITHIN_SEC = 30.0
"""An expectation is waited for so long, as an action is; Playwright's own 5 s are few beside other programs."""

Serve = Callable[[Callable[[int], FastAPI]], str]


def find_chromium(playwright: Playwright) -> Path | None:
    """OWNFEED_CHROMIUM, then the system's, then Playwright's own; None if there is none of them."""
    named = os.environ.get("OWNFEED_CHROMIUM")
    places = (Path(named),) if named else (*SYSTEM_CHROMIUM, Path(playwright.chromium.executable_path))
    return next((place for place in places if place.is_file()), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for the session; every test opens its own context."""
    expect.set_options(timeout=1_000 * SHOWN_WITHIN_SEC)
    with sync_playwright() as playwright:
        program = find_chromium(playwright)
        if program is None:
            pytest.skip("no Chromium: set OWNFEED_CHROMIUM, or install it with `playwright install chromium`")
        try:
            browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        except Error as broken:
            pytest.fail(f"Chromium at {program} does not start: {broken.message.splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def reader_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The browser's device, built from this checkout once a run; no test writes into it."""
    node, cache = shutil.which("node"), shared_cache(tmp_path_factory)
    if node is None:
        pytest.fail("node is missing: install Node.js 20 or newer; `make test` says so too")
    folder, making = cache / "reader-build", cache / "reader-build-making"
    with FileLock(cache / "reader-build.lock"):
        if not folder.is_dir():
            told = subprocess.run(
                [node, str(WEB / "build.mjs"), str(making)],
                env=os.environ | {"PYTHON": sys.executable},
                capture_output=True,
                text=True,
                check=False,
                timeout=BUILT_WITHIN_SEC,
            )
            assert told.returncode == 0, told.stderr[-3_000:]
            making.rename(folder)
    return folder


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Serve an app, made for the port it gets, on this machine; returns its address without a slash."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(make: Callable[[int], FastAPI]) -> str:
        client = socket.socket()
        client.bind(("127.0.0.1", 0))
        port = client.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make(port), log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [client]}, daemon=True)
        thread.start()
        running.append((server, thread))
        until = time.monotonic() + START_WITHIN_SEC
        while not server.started:
            assert time.monotonic() < until, "the app under test did not start"
            time.sleep(0.02)
        return f"http://127.0.0.1:{port}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(START_WITHIN_SEC)

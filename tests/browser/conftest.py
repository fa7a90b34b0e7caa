"""Chromium for the tests, and a server for the app that it opens.

Tests that need Chromium are skipped where it is missing, and say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, Error, Page, Playwright, expect, sync_playwright

from tests.doubles.built_device import built_device
from tests.doubles.small_world import free_port, serve_app, shared_cache

SHELL = Path("/usr/bin/chromium-headless-shell")
"""Chromium without windows: draws the same pages, and starts none of its own."""
SYSTEM_CHROMIUM = (Path("/usr/bin/chromium"), Path("/usr/bin/chromium-browser"), Path("/usr/bin/google-chrome"))
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
QUICK_ARGUMENTS = (*ARGUMENTS, "--js-flags=--liftoff-only")
"""For tests, not for measurements: V8 compiles WebAssembly once and doesn't optimise what a test runs for a moment."""
SHOWN_WITHIN_SEC = 30.0
"""Expectations wait as long as actions; Playwright's own 5 s are too short on a busy machine."""

BEGIN = "main button[name=skip]"
"""On the page of a browser's first visit: submits that nothing was here before, and chooses no section."""

Serve = Callable[[Callable[[int], FastAPI]], str]


def begin_first_visit(page: Page) -> None:
    """Submit the first visit's page without choosing sections; the response may still be under way."""
    page.locator(BEGIN).click()


def find_chromium(playwright: Playwright, *, shell: bool = False) -> Path | None:
    """Return OWNFEED_CHROMIUM, or the system's Chromium, or Playwright's own; None if there is none.

    shell: whether Chromium's shell is preferred.
    """
    named = os.environ.get("OWNFEED_CHROMIUM")
    found = (SHELL, *SYSTEM_CHROMIUM) if shell else (*SYSTEM_CHROMIUM, SHELL)
    places = (Path(named),) if named else (*found, Path(playwright.chromium.executable_path))
    return next((place for place in places if place.is_file()), None)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=1_000 * SHOWN_WITHIN_SEC)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium_program(playwright: Playwright) -> Path:
    program = find_chromium(playwright, shell=True)
    if program is None:
        pytest.skip("no Chromium: set OWNFEED_CHROMIUM, or install it with `playwright install chromium`")
    return program


@pytest.fixture(scope="session")
def chromium(playwright: Playwright, chromium_program: Path) -> Iterator[Browser]:
    """One browser for the session; every test opens its own context."""
    try:
        browser = playwright.chromium.launch(executable_path=chromium_program, args=list(QUICK_ARGUMENTS))
    except Error as broken:
        pytest.fail(f"Chromium at {chromium_program} does not start: {broken.message.splitlines()[0]}")
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def reader_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the browser's device, built from this checkout once per run; no test writes into it."""
    return built_device(shared_cache(tmp_path_factory))


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Serve an app, made for the port it gets, on this machine.

    Return its address without a trailing slash.
    """
    with ExitStack() as stack:

        def start(make: Callable[[int], FastAPI]) -> str:
            port = free_port()
            return stack.enter_context(serve_app(make(port), port))

        yield start

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
from tests.doubles.small_world import free_port, serving, shared_cache

SYSTEM_CHROMIUM = (Path("/usr/bin/chromium"), Path("/usr/bin/chromium-browser"), Path("/usr/bin/google-chrome"))
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SHOWN_WITHIN_SEC = 30.0
"""Expectations wait as long as actions; Playwright's own 5 s are too short on a busy machine."""

BEGIN = "main button[name=skip]"
"""On the page of a browser's first visit: submits that nothing was here before, and chooses no section."""

Serve = Callable[[Callable[[int], FastAPI]], str]


def begin_first_visit(page: Page) -> None:
    """Submit the first visit's page without choosing sections; the response may still be under way."""
    page.locator(BEGIN).click()


def find_chromium(playwright: Playwright) -> Path | None:
    """Return OWNFEED_CHROMIUM, or the system's Chromium, or Playwright's own; None if there is none."""
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
            return stack.enter_context(serving(make(port), port))

        yield start

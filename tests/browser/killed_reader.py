"""A reader in Chromium whose tab is killed at seeded points, and what its pages had confirmed by then.

A point is a write, truncation or flush of the device's files, a request that leaves, or an answer that arrives. The
worker waits at that point until its renderer gets SIGKILL. A tab that doesn't reach its point is killed where it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import BrowserContext, BrowserType, Error, Page, Route, expect
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.browser.conftest import ARGUMENTS, BEGIN, begin_first_visit
from tests.conformance.node_end import WEB
from tests.doubles.small_world import Received, SmallWorld

DIE = "/reader/die"
WITHIN_MS = 60_000
READING = {"file": 600, "request": 16, "answer": 16}
"""The kinds of points, and the last one of each that is drawn, from the start of a tab."""
SUMMING = {"file": 160, "request": 12, "answer": 12}
"""The same from the first request on by which a round is joined or gone on with."""
SUMS = "/v1/rounds/(?!current)"
IN_ROUND_SEC = 90.0
"""Longer than a round, whose beginning the tab may have missed."""


def kill_renderers(profile: Path) -> int:
    """Send SIGKILL to every renderer of the browser with this profile."""
    every = [(each, command_of(each)) for each in psutil.Process().children(recursive=True)]
    browsers = [
        each
        for each, command in every
        if f"--user-data-dir={profile}" in command and not any(one.startswith("--type=") for one in command)
    ]
    theirs = {each for one in browsers for each in one.children(recursive=True)}
    found = [each for each, command in every if each in theirs and "--type=renderer" in command]
    for each in found:
        each.kill()
    psutil.wait_procs(found)
    return len(found)


def command_of(process: psutil.Process) -> list[str]:
    """Return the process's command line; empty for a process that has ended."""
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


class KillPathMiddleware:
    """ASGI middleware: a page that requests the kill path gets its renderer killed."""

    def __init__(self, app: ASGIApp, profile: Path) -> None:
        self.app, self.profile = app, profile
        self.killed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == DIE:
            self.killed += kill_renderers(self.profile)
        await self.app(scope, receive, send)


def deadly_script(folder: Path) -> str:
    """Return the worker script of the browser's device, with kill points."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("node is missing: install Node.js 20 or newer")
    entry, made = Path(__file__).with_name("killed_worker.ts"), folder / "worker.js"
    environment = os.environ | {"PYTHON": sys.executable}
    subprocess.run([node, str(WEB / "bundling.mjs"), str(entry), str(made)], env=environment, check=True)
    return made.read_text(encoding="utf-8")


@dataclass
class KilledReader:
    """A reader whose tab is killed again and again, with the actions its pages have confirmed."""

    world: SmallWorld
    profile: Path
    context: BrowserContext
    script: str
    rng: np.random.Generator
    opened: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    deaths: list[tuple[str, str]] = field(default_factory=list)
    point: tuple[str, int, str] = ("", 0, "")
    doing: str = ""

    def __post_init__(self) -> None:
        self.context.route("**/reader/files/worker.*.js", self._answer)

    def _answer(self, route: Route) -> None:
        kind, left, within = self.point
        deadly = f"globalThis.deadly = {{ kind: '{kind}', left: {left}, within: '{within}' }};\n"
        route.fulfill(response=route.fetch(), body=deadly + self.script)

    def life(self, *, summing: bool = False, deadly: bool = True) -> None:
        """Run one visit until the kill: while the reader reads, or during a sum."""
        points, within = (SUMMING, SUMS) if summing else (READING, "")
        kind = str(self.rng.choice(list(points)))
        self.point = (kind, int(self.rng.integers(1, points[kind] + 1)) if deadly else 0, within)
        page = self.context.new_page()
        page.set_default_timeout(WITHIN_MS)
        crashed: list[bool] = []
        page.on("crash", lambda _: crashed.append(True))
        try:
            self._visit(page)
            if summing:
                self.doing = "in a round"
                self._wait_in_round(page)
        except (Error, AssertionError) as ended:
            if not crashed and "crash" not in str(ended):
                raise
            self.deaths.append((f"{kind} {self.point[1]}", self.doing))
        else:
            if deadly:
                kill_renderers(self.profile)
                self.deaths.append(("where it was", self.doing))
        page.close()

    def _visit(self, page: Page) -> None:
        self.doing = "opening"
        page.goto(f"{self.world.url}/reader/")
        begin, card = page.locator(BEGIN), page.locator("article.card[id]")
        expect(begin.or_(card).first).to_be_visible(timeout=WITHIN_MS)
        if begin.is_visible():
            self.doing = "beginning"
            begin_first_visit(page)
            expect(card.first).to_be_visible(timeout=WITHIN_MS)
        for _ in range(2):
            self._read(page)
        self.doing = "asking for a new page"
        shown = page.locator("main[data-feed]").get_attribute("data-feed")
        page.get_by_role("button", name="Refresh").first.click()
        page.wait_for_selector(f"main[data-feed]:not([data-feed='{shown}'])")
        self._read(page)

    def _wait_in_round(self, page: Page) -> None:
        """Wait until the device's last message to a sum has arrived, up to a limit."""
        until = time.monotonic() + IN_ROUND_SEC
        while not self.sent("unmask") and time.monotonic() < until:
            page.wait_for_timeout(200)

    def received(self) -> list[Received]:
        """Return what the server received from this reader's device, without the files of the app."""
        mark = f"user-agent: {self.profile.name}".encode()
        mine = [one for one in self.world.requests() if mark in one.headers.split(b"\n")]
        return [one for one in mine if not one.path.startswith("/reader")]

    def sent(self, stage: str) -> bool:
        """Return whether a message for this stage of a sum has arrived."""
        return any(one.method == "PUT" and f"/{stage}/" in one.path for one in self.received())

    def _read(self, page: Page) -> None:
        """Open a story and save it; note each action once the page has confirmed it."""
        cards = page.locator("article.card[id]:not(.read)")
        card = cards.nth(int(self.rng.integers(0, min(6, cards.count()))))
        link, story = card.locator(".headline a"), card.get_attribute("id")
        named = (link.get_attribute("href") or "").removeprefix("/reader/#/story/").partition("?")[0]
        assert story is not None
        assert named
        self.doing = "reading"
        link.click()
        page.wait_for_selector(".story h1")
        self.opened.add(named)
        self.doing = "saving"
        save = page.locator("main button[value=save]").first
        if save.get_attribute("aria-pressed") != "true":  # saved already where the tab died before it was said
            save.click()
            expect(save).to_have_attribute("aria-pressed", "true", timeout=WITHIN_MS)
        self.saved.add(named)
        self.doing = "going back"
        page.get_by_role("link", name="Back to the feed").click()
        page.wait_for_selector(f"[id='{story}'].read")


@contextmanager
def killed_reader(
    chromium: BrowserType, program: Path | None, world: SmallWorld, folder: Path, script: str, seed: int
) -> Iterator[KilledReader]:
    """Run a reader on a new profile, with the server that triggers the kills."""
    profile = folder / f"killed-{seed}"
    assert world.ears is not None
    former = world.ears.app
    world.ears.app = KillPathMiddleware(former, profile)
    context = chromium.launch_persistent_context(
        profile,
        executable_path=program,
        args=list(ARGUMENTS),
        user_agent=profile.name,
        service_workers="block",
    )
    try:
        yield KilledReader(world, profile, context, script, np.random.default_rng(seed))
    finally:
        context.close()
        world.ears.app = former

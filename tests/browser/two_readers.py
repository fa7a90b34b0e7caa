"""Tries to distinguish an idle reader in Chromium from an active one by the times of their pages' requests.

`python -m tests.browser.two_readers --sessions 200 --minutes 25`: each kind has up to 200 sessions of half a minute,
some of them side by side in one Chromium. The device has short pauses (hurried_worker.ts), drawn as usual. The real
backend is kind, busy, slow or all of these, and keeps a private count open (per_reader_front.py). Times are those at
which the server gets a request. Classifier and limit are those of `tests.privacy.two_readers`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, Route, TimeoutError, sync_playwright

from tests.browser.conftest import ARGUMENTS, begin_first_visit, find_chromium
from tests.browser.per_reader_front import PerReaderFront, Visit
from tests.doubles.read_sessions import TROUBLE_KINDS, ReceivedRequest
from tests.doubles.small_world import SmallWorld, first_folder, hand_made_news, serve_app, small_world
from tests.privacy.two_readers import BAR, report, weights

SESSION_SEC = 30.0
ACT_SEC = 1.0
SIDE_BY_SIDE = 4
"""Pairs at a time."""
WITHIN_MS = 60_000
PRESSED_MS = 2_000
SETTLED_MS = 6_000
"""The rest of a start has come by then."""
WEB = Path(__file__).parents[2] / "web"
CARD = "main[data-feed] article.card[id]"


def hurried_script(folder: Path) -> bytes:
    """Return the worker of the browser's device with short pauses."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("node is missing: install Node.js 20 or newer")
    entry, made = Path(__file__).with_name("hurried_worker.ts"), folder / "worker.js"
    environment = os.environ | {"PYTHON": sys.executable}
    subprocess.run([node, str(WEB / "bundling.mjs"), str(entry), str(made)], env=environment, check=True)
    return made.read_bytes()


def with_script(route: Route, script: bytes) -> None:
    """Serve this script in place of the worker's."""
    route.fulfill(response=route.fetch(), body=script)


def per_reader_front(stack: ExitStack, world: SmallWorld, script: bytes) -> tuple[PerReaderFront, int]:
    """Serve a world behind the front; return the front and its port until the stack ends."""
    assert world.services is not None
    assert world.ears is not None
    news = [each.id for each in hand_made_news(datetime.now(UTC))]
    front = PerReaderFront(world.ears, script, news, world.services.releases.signing_key)
    return front, int(stack.enter_context(serve_app(front)).rpartition(":")[2])


@dataclass
class Session:
    """One reader's page, and its requests to the server."""

    context: BrowserContext
    page: Page
    visit: Visit

    @classmethod
    def at(cls, browser: Browser, front: PerReaderFront, port: int, name: str) -> Session:
        """Return a page that has begun to load."""
        context = browser.new_context(service_workers="block")
        context.set_default_timeout(WITHIN_MS)
        visit, page = front.visit(name), context.new_page()
        page.goto(f"http://{name}.localhost:{port}/reader/", wait_until="commit")
        return cls(context, page, visit)

    def enter(self) -> None:
        """Pass the first visit without choices, until the first page shows."""
        begin_first_visit(self.page)
        self.page.wait_for_selector(CARD)


@dataclass
class Pair:
    """An idle and an active session at the same time, and the times of the active reader's actions."""

    idle: Session
    reading: Session
    acts: list[float] = field(default_factory=list)
    received: tuple[list[ReceivedRequest], ...] = ()

    @property
    def both(self) -> tuple[Session, Session]:
        return self.idle, self.reading

    def end(self, seconds: float) -> None:
        """Keep the recorded requests and close the pages."""
        self.received = tuple([each for each in one.visit.received if each.at_sec < seconds] for one in self.both)
        for one in self.both:
            one.context.close()


def read_on(page: Page, act: int) -> None:
    """One thing that a reader does: a story, the way back, a new page, a search or a like."""
    if page.locator(".story").count():
        page.locator(".story form[action$='/react'] button").first.click()
        page.get_by_role("link", name="Back to the feed").click()
        page.wait_for_selector(CARD)
    elif act % 3 == 1:
        shown = page.locator("main[data-feed]").get_attribute("data-feed")
        page.get_by_role("button", name="Refresh").first.click()
        with suppress(TimeoutError):  # out of reach, it is the previous page
            page.wait_for_selector(f"main[data-feed]:not([data-feed='{shown}'])", timeout=PRESSED_MS)
    else:
        page.locator(f"{CARD} .headline a").nth(act % 5).click()
        page.wait_for_selector(".story")


def pairs(
    browser: Browser,
    front: PerReaderFront,
    port: int,
    seeds: Sequence[int],
    seconds: float = SESSION_SEC,
    act: float = ACT_SEC,
) -> list[Pair]:
    """Sessions side by side, a pair a seed; which page of a pair came first is drawn from it, too.

    act: the pause between two actions of a reader, in seconds.
    """
    found = []
    for seed in seeds:
        kinds = ("idle", "reading") if seed // len(TROUBLE_KINDS) % 2 else ("reading", "idle")
        opened = {kind: Session.at(browser, front, port, f"{kind}-{seed}") for kind in kinds}
        found.append(Pair(opened["idle"], opened["reading"]))
    for pair in found:
        for one in pair.both:
            one.enter()
    found[-1].reading.page.wait_for_timeout(SETTLED_MS)
    for pair, seed in zip(found, seeds, strict=True):
        for one in pair.both:
            one.visit.begin(seed, TROUBLE_KINDS[seed % len(TROUBLE_KINDS)], seconds)
    began_sec = time.monotonic()
    while time.monotonic() - began_sec < seconds:
        for pair in found:
            pair.acts.append(time.monotonic() - pair.reading.visit.began_sec)
            read_on(pair.reading.page, len(pair.acts))
        found[-1].reading.page.wait_for_timeout(1_000 * act)
    for pair in found:
        pair.end(seconds)
    return found


def plain(received: Sequence[ReceivedRequest]) -> list[tuple[float, str]]:
    """As it is written down."""
    return [(one.at_sec, one.asked) for one in received]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sessions, print the classifier's result, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200, help="of each kind, at most")
    parser.add_argument("--minutes", type=float, default=25.0, help="no session begins later")
    parser.add_argument("--side-by-side", type=int, default=SIDE_BY_SIDE, help="pairs of sessions at a time")
    parser.add_argument("--cache", type=Path, help="folder that keeps the first world and all sessions, which count on")
    chosen = parser.parse_args(argv)
    until_sec = time.monotonic() + 60 * chosen.minutes
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cache = chosen.cache or folder
        kept = cache / "sessions.jsonl"
        kept.touch()
        script = hurried_script(folder)
        world = stack.enter_context(small_world(first_folder(cache), folder / "world"))
        stack.enter_context(world.backend())
        front, port = per_reader_front(stack, world, script)
        playwright = stack.enter_context(sync_playwright())
        while (n := len(kept.read_text().splitlines())) < chosen.sessions and time.monotonic() < until_sec:
            seeds = range(n, min(n + chosen.side_by_side, chosen.sessions))
            chromium = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(ARGUMENTS))
            try:
                found = pairs(chromium, front, port, seeds)
            except TimeoutError as slow:  # on a machine with too much to do: the same sessions again, all of them
                sys.stderr.write(f"sessions {seeds}: {slow.message.splitlines()[0]}\n")
                continue
            finally:
                chromium.close()
            with kept.open("a") as lines:
                lines.writelines(f"{json.dumps([pair.acts, *map(plain, pair.received)])}\n" for pair in found)
        rows = [json.loads(line) for line in kept.read_text().splitlines()]
    acts = [row[0] for row in rows]
    idle, reading = ([[ReceivedRequest(*one) for one in row[kind]] for row in rows] for kind in (1, 2))
    value, line = report(idle, reading, acts, SESSION_SEC)
    sys.stdout.write(f"{line}\n{weights(idle, reading, acts, SESSION_SEC)}\n")
    return int(value > BAR)


if __name__ == "__main__":
    sys.exit(main())

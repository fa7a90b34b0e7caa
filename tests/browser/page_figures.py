"""`python -m tests.browser.page_figures`: measures the size and speed of a page of the feed in Chromium.

Starts a demo, or opens the link of a running one (`--link`). Prints, for a first load of For you with an empty cache,
compressed bytes with headers, requests, largest contentful paint and layout shift; and the median times from a click on
a headline to the first paint of the story, and from "Refresh" to the first paint of the new page.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, StorageState, ViewportSize, sync_playwright

from tests.browser.conftest import ARGUMENTS, find_chromium
from tests.browser.feed_picture import choose
from tests.browser.living_demo import running_demo

SIZE: ViewportSize = {"width": 1440, "height": 900}
SETTLE_MS = 1_500
"""After the load: when Chromium has told of the last paint and the last byte."""
HEADLINE = "main article h2 a[href^='/story/'], main article h3 a[href^='/story/']"
PAINTS = """() => new Promise(told => {
  let largest = null, shift = 0;
  new PerformanceObserver(list => { largest = list.getEntries().at(-1).startTime; })
    .observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver(list => list.getEntries().forEach(one => { shift += one.value; }))
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => told([largest, shift]), 300);
})"""
NOTE_CLICKS = """addEventListener("click", event =>
  sessionStorage.setItem("clicked", String(performance.timeOrigin + event.timeStamp)), { capture: true });"""
ANEW = "before => performance.timeOrigin !== before && document.readyState === 'complete'"
SINCE_CLICK = """() => new Promise(told => {
  const since = paint => told(performance.timeOrigin + paint.startTime - Number(sessionStorage.getItem("clicked")));
  new PerformanceObserver(list => list.getEntriesByName("first-contentful-paint").forEach(since))
    .observe({ type: "paint", buffered: true });
})"""


def cold_load(browser: Browser, let_in: StorageState, home: str) -> dict[str, float]:
    """Load For you once with an empty cache; return KB, requests, LCP in seconds, CLS."""
    context = browser.new_context(storage_state=let_in, viewport=SIZE)
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    sizes: dict[str, float] = {}

    def asked(said: dict[str, Any]) -> None:
        sizes.setdefault(said["requestId"], 0.0)

    def loaded(said: dict[str, Any]) -> None:
        sizes[said["requestId"]] = said["encodedDataLength"]

    wire.on("Network.requestWillBeSent", asked)
    wire.on("Network.loadingFinished", loaded)
    page.goto(home, wait_until="load")
    page.wait_for_timeout(SETTLE_MS)
    largest, shift = page.evaluate(PAINTS)
    context.close()
    return {
        "compressed KB": sum(sizes.values()) / 1_000,
        "requests": len(sizes),
        "LCP s": largest / 1_000,
        "CLS": shift,
    }


def reading(page: Page, home: str, times: int) -> dict[str, list[float]]:
    """Return the seconds from a click to the first paint: of a story, and of a refreshed page."""
    page.context.add_init_script(NOTE_CLICKS)
    found: dict[str, list[float]] = {"click to story s": [], "refresh s": []}
    page.goto(home)
    for number in range(times):
        page.wait_for_timeout(SETTLE_MS / 3)
        page.locator(HEADLINE).nth(number % 12).click(no_wait_after=True)
        page.wait_for_url("**/story/**", wait_until="load")
        found["click to story s"].append(page.evaluate(SINCE_CLICK) / 1_000)
        page.go_back(wait_until="load")
        page.wait_for_timeout(SETTLE_MS / 3)
        before = page.evaluate("performance.timeOrigin")
        page.get_by_role("button", name="Refresh").click(no_wait_after=True)
        page.wait_for_function(ANEW, arg=before)
        found["refresh s"].append(page.evaluate(SINCE_CLICK) / 1_000)
    return found


@contextmanager
def one_demo(link: str | None) -> Iterator[str]:
    """Yield the link to the feed of a running demo, or of a new one."""
    if link is not None:
        yield link
        return
    with tempfile.TemporaryDirectory() as home, running_demo(Path(home), 0, 1.0) as (_, made):
        yield made


def tell(name: str, values: list[float]) -> None:
    """Print one line: median, minimum, maximum, and the machine's load."""
    middle, load = statistics.median(values), os.getloadavg()[0]
    print(f"{name:18} median {middle:.3f}, {min(values):.3f} to {max(values):.3f}, n {len(values)}, load {load:.1f}")  # noqa: T201


def measure(link: str, loads: int, clicks: int) -> None:
    """Open the link, pick sections if asked, and print the figures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(ARGUMENTS))
        context = browser.new_context(viewport=SIZE)
        page = context.new_page()
        page.goto(link)
        if page.url.endswith("/welcome"):
            choose(page)
        home = page.url
        let_in = context.storage_state()
        found = [cold_load(browser, let_in, home) for _ in range(loads)]
        for name in found[0]:
            tell(name, [one[name] for one in found])
        for name, values in reading(page, home, clicks).items():
            tell(name, values)
        browser.close()


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--link", help="The first link that a running demo has printed.")
    wanted.add_argument("--loads", type=int, default=10)
    wanted.add_argument("--clicks", type=int, default=20)
    chosen = wanted.parse_args()
    with one_demo(chosen.link) as shown:
        measure(shown, chosen.loads, chosen.clicks)
    sys.exit(0)

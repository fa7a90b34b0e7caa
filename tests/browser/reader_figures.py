"""`python -m tests.browser.reader_figures LINK`: measures the browser's device in Chromium.

LINK is the address of a running demo "in a browser", or /reader/ of any backend. Prints, over several new profiles: a
first visit, from the link to a readable feed, with its one question answered at once; the same with the processor
slowed four times; a visit in a new tab and a reload; the device's work on a new page after a click, from its own export
and without the wait for the server; and gradients of rankers in wasm.

Below each time stands the processor time of the renderers' threads (`processor_time`), which is the figure to compare
on a busy machine. DevTools can slow the page's own thread but no worker, so "slowed 4 times" stops every renderer for
three quarters of the time, while "page slowed" is what DevTools do. Times are from the start of the page's navigation
to the frame after the feed is complete, by the page's clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright

from tests.browser.conftest import ARGUMENTS, BEGIN, find_chromium
from tests.browser.gradient_page import gradients
from tests.browser.processor_time import ran_ms, renderers
from tests.browser.slowed_renderers import SLOWED, SlowedRenderers

WITHIN_SEC = 120.0
SETTLE_SEC = 5.0
"""After a visit: its texts come, the files of the build are kept."""
TURN_SEC = 1.5
"""Between a return to the feed and the look for the next page; it is asked for in the middle."""
PRESS_LATER = f"(button) => void setTimeout(() => button.click(), {TURN_SEC * 500:g})"
NOTE_FEED = """(() => {
  const look = () => {
    const begin = document.querySelector("BEGIN");
    if (begin && !globalThis.begun) { globalThis.begun = true; begin.click(); }
    if (globalThis.stood || !document.querySelector("main[data-feed] article")) return;
    globalThis.stood = true;
    requestAnimationFrame(() => setTimeout(() => { globalThis.readable = performance.now(); }));
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
})()""".replace("BEGIN", BEGIN)


@contextmanager
def profile(playwright: Playwright) -> Iterator[BrowserContext]:
    """Open Chromium on a new profile; every page records when its feed can be read."""
    with tempfile.TemporaryDirectory() as folder:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=find_chromium(playwright), args=list(ARGUMENTS)
        )
        context.add_init_script(NOTE_FEED)
        yield context
        context.close()


def readable(page: Page) -> float:
    """Return the milliseconds from the start of navigation to a readable feed. Raises RuntimeError."""
    until = time.monotonic() + WITHIN_SEC
    while (found := page.evaluate("globalThis.readable ?? null")) is None:
        if time.monotonic() > until:
            raise RuntimeError(page.inner_text("body")[:1_000])
        time.sleep(0.05)
    return float(found)


@dataclass(frozen=True)
class Visit:
    """took_ms: until the feed. ran: milliseconds of processor time until then, by kind of thread."""

    took_ms: float
    ran: Counter[str]


def visit(context: BrowserContext, link: str, *, page_slowed: bool = False) -> tuple[Page, Visit]:
    """Open a new tab and return its figures."""
    page = context.new_page()
    if page_slowed:
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
    before = ran_ms(renderers())
    page.goto(link, wait_until="commit")
    took_ms = readable(page)
    return page, Visit(took_ms, ran_ms(renderers()) - before)


def reload_page(page: Page) -> Visit:
    """Reload the same page and return its figures."""
    before = ran_ms(renderers())
    page.reload(wait_until="commit")
    took_ms = readable(page)
    return Visit(took_ms, ran_ms(renderers()) - before)


def visits(playwright: Playwright, link: str, loads: int) -> dict[str, list[Visit]]:
    """Return the figures by kind of visit."""
    found: defaultdict[str, list[Visit]] = defaultdict(list)
    for _ in range(loads):
        with profile(playwright) as context:
            page, first = visit(context, link)
            found["first visit"].append(first)
            time.sleep(SETTLE_SEC)
            page.close()
            page, new = visit(context, link)
            found["visit in a new tab"].append(new)
            time.sleep(SETTLE_SEC)
            found["reload"].append(reload_page(page))
        for name, slowed in (("first, slowed 4 times", True), ("first, page slowed", False)):
            with profile(playwright) as context, SlowedRenderers() if slowed else nullcontext():
                found[name].append(visit(context, link, page_slowed=not slowed)[1])
    return found


def click_to_feed(playwright: Playwright, link: str, clicks: int) -> list[float]:
    """Return the device's milliseconds for each page after a click, without the wait for the server."""
    with profile(playwright) as context:
        page, _ = visit(context, link)
        for number in range(clicks):
            page.locator("article.card[id] .headline a").nth(number % 12).click()
            page.get_by_role("link", name="Back to the feed").click()
            shown = page.locator("main[data-feed]").get_attribute("data-feed")
            # pressed by the page itself, later: what drives this browser takes a core of its own while it presses
            page.get_by_role("button", name="Refresh").first.evaluate(PRESS_LATER)
            time.sleep(TURN_SEC)
            page.wait_for_selector(f"main[data-feed]:not([data-feed='{shown}'])")
        page.goto(f"{link}#/settings")
        with page.expect_download() as got:
            page.locator("a[href$='/privacy/export']").first.click()
        reported = json.loads(Path(got.value.path()).read_text(encoding="utf-8"))
    timings = [each["device_ms"] for each in reported["tables"]["timing"] if each["kind"] == "feed"][-clicks:]
    return [sum(ms for stage, ms in stages.items() if stage != "network") for stages in timings]


def tell(name: str, values: list[float]) -> None:
    """Print one line: median, minimum, maximum, and the machine's load."""
    middle, load = statistics.median(values), os.getloadavg()[0]
    least, most = min(values), max(values)
    print(f"{name:24} ms: median {middle:.1f}, {least:.1f} to {most:.1f}, n {len(values)}, load {load:.1f}")  # noqa: T201


def tell_threads(ran: list[Counter[str]]) -> None:
    """Print the line below it: processor time in all and by kind of thread, as medians."""
    by_kind = {kind: statistics.median(each[kind] for each in ran) for kind in sorted(set().union(*ran))}
    parts = ", ".join(f"{kind} {ms:.0f}" for kind, ms in by_kind.items())
    print(f"{'':24} threads ran {statistics.median(each.total() for each in ran):.0f} ms: {parts}")  # noqa: T201


def measure(link: str, loads: int, clicks: int) -> None:
    """Print the figures of the device at this link."""
    with sync_playwright() as playwright:
        if loads:
            for name, found in visits(playwright, link, loads).items():
                tell(name, [each.took_ms for each in found])
                tell_threads([each.ran for each in found])
        tell("click to feed", click_to_feed(playwright, link, clicks))
        with profile(playwright) as context:
            for name, values in gradients(context, link, clicks).items():
                tell(name, values)


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("link", help="The address of the reader's own app at a running backend.")
    wanted.add_argument("--loads", type=int, default=5)
    wanted.add_argument("--clicks", type=int, default=20)
    chosen = wanted.parse_args()
    measure(chosen.link, chosen.loads, chosen.clicks)
    sys.exit(0)

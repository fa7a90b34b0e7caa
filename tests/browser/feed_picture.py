"""`python -m tests.browser.feed_picture LINK`: takes the README's picture of a feed from a running demo.

LINK is the first link that `make demo` prints. In a fresh profile the program picks a few sections first, as the
README's first step says. It then takes the top of the page in Chromium's light scheme.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.browser.conftest import ARGUMENTS, find_chromium

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "feed.jpg"
SIZE: ViewportSize = {"width": 1280, "height": 1100}
SECTIONS = ("Science", "Technology", "Football", "World")
QUALITY = 80
"""Of the JPEG: the picture stays under 200 KB."""
WITHIN_SEC, EVERY_MS = 120.0, 500


def choose(page: Page) -> None:
    """Pick sections as soon as the default list has arrived, and open the feed."""
    for _ in range(int(WITHIN_SEC * 1_000 / EVERY_MS)):
        if page.get_by_role("checkbox").count():
            break
        page.wait_for_timeout(EVERY_MS)
        page.reload()
    for section in SECTIONS:
        if (box := page.get_by_label(section, exact=True)).count():
            box.check()
    page.locator("form[action='/welcome'] button.main").click()
    page.wait_for_selector("h2 a[href^='/story/'], h3 a[href^='/story/']")


def take(link: str, target: Path = PICTURE) -> Path:
    """Return the picture's bytes. Raises RuntimeError if there is no Chromium."""
    with sync_playwright() as playwright:
        program = find_chromium(playwright)
        if program is None:
            raise RuntimeError("no Chromium: set OWNFEED_CHROMIUM, or install it with `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(link)
        if page.url.endswith("/welcome"):
            choose(page)
        page.wait_for_load_state("networkidle")
        target.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=target, type="jpeg", quality=QUALITY)
        browser.close()
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{take(sys.argv[1])}\n")

"""What the browser keeps while Ownfeed doesn't run, and how large a page is, in Chromium over a real device.

Oracles: the stories that the device has, its own record of clicks, and the bytes that the browser says it received.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import Serve
from tests.browser.served_home import ServedHome, serve_home
from tests.doubles.backend import FakeBackend

pytestmark = pytest.mark.browser

WITHIN_SEC = 30.0
REQUESTS, BYTES = 16, 60_000
"""Up to ten are pictures in view, half a kilobyte each, which a device serves to itself."""


@pytest.fixture(scope="module")
def home(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServedHome:
    return serve_home(serve, tmp_path_factory.mktemp("kept"))


def wait_until(page: Page, true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WITHIN_SEC
    while not true():
        assert time.monotonic() < end, what
        page.wait_for_timeout(100)


def test_first_page_load_takes_few_requests_and_few_bytes(chromium: Browser, home: ServedHome) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    home.let_in(context)
    page = context.new_page()
    received: list[tuple[str, int]] = []
    page.on("requestfinished", lambda one: received.append((one.url, one.sizes()["responseBodySize"])))
    page.goto(home.address + "/", wait_until="networkidle")
    context.close()
    assert len(received) <= REQUESTS, received
    assert 10_000 < sum(size for _, size in received) <= BYTES, received


def test_last_page_and_its_stories_are_readable_while_the_app_is_stopped(chromium: Browser, home: ServedHome) -> None:
    own, start = home.device, home.address + "/"
    context = chromium.new_context(viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    page = home.enter(context)
    keys = "caches.open('ownfeed-kept').then(cache => cache.keys()).then(keys => keys.length)"
    wait_until(page, lambda: page.evaluate(keys) == 1, "the worker keeps the page")

    first, second = [
        item.card for item in own.reading.feed().items if own.reading.open(item.card.id, clicked=False).paragraphs
    ][:2]
    page.goto(start)
    page.locator(f"[id='n-{first.id}'] .headline a").first.click()
    page.wait_for_url("**/story/**")
    assert [click.news_id for click in own.library.history().entries] == [first.id], (
        "a followed link, seen through the worker"
    )

    page.goto(start)
    context.set_offline(True)
    expect(page.locator("[data-pulse]")).to_have_text("Ownfeed isn't running on this device", timeout=WITHIN_SEC * 1000)
    page.locator(f"[id='n-{second.id}'] .headline a").first.click()
    page.wait_for_url("**/kept#n-*")
    expect(page.locator(f"[id='n-{second.id}'] .prose")).to_contain_text(
        own.reading.open(second.id, clicked=False).paragraphs[0]
    )
    expect(page.locator(".contents")).to_be_hidden()
    assert broken_rules(page) == []
    page.goto(start)
    expect(page.locator("h1")).to_have_text("Your last page")
    assert broken_rules(page) == []
    context.set_offline(False)
    assert [click.news_id for click in own.library.history().entries] == [first.id], "what was read so is not recorded"
    beside = context.new_page()
    beside.goto(start)
    page.goto(home.address + "/settings")
    page.get_by_label("Type erase to confirm").fill("erase")
    page.get_by_role("button", name="Erase").click()
    page.wait_for_url("**/welcome**")
    beside.wait_for_url("**/welcome")
    wait_until(page, lambda: page.evaluate("caches.keys().then(keys => keys.length)") == 0, "an erase takes it")
    context.close()


def test_welcome_page_adds_sections_that_arrive_late(chromium: Browser, serve: Serve, tmp_path: Path) -> None:
    over = FakeBackend(down=True)
    new = serve_home(serve, tmp_path, over, first_page=False)
    context = chromium.new_context()
    page = new.enter(context)
    page.wait_for_url("**/welcome")
    expect(page.locator("#picks")).to_contain_text("No sections yet: this device can't reach")
    page.locator("#privacy-details > summary").click()
    page.get_by_label("Anonymous counts of what is read").uncheck()
    over.down = False
    new.device.sync()
    sections = {each.section for each in new.device.reading.explore()}
    assert sections
    expect(page.locator("#picks").get_by_role("checkbox")).to_have_count(len(sections))
    expect(page.get_by_label("Anonymous counts of what is read")).not_to_be_checked()
    expect(page.locator("#announced")).to_have_text("The sections have come")
    context.close()

"""More at the end, in a real browser over a real device: nothing above it moves, and it is there after Back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from device_app.feed.more import ADDED
from tests.browser.conftest import Serve
from tests.browser.served_home import ServedHome, serve_home

pytestmark = pytest.mark.browser
PLACES = """() => [...document.querySelectorAll("main [data-story][id]")].map((card) => {
  const box = card.getBoundingClientRect();
  return [card.id, ...[box.x, box.y + scrollY, box.width, box.height].map(Math.round)].join(" ");
})"""


@pytest.fixture
def home(serve: Serve, tmp_path: Path) -> ServedHome:
    return serve_home(serve, tmp_path)


def places(page: Page) -> list[str]:
    found: list[str] = page.evaluate(PLACES)
    return found


def test_more_is_put_below_moves_nothing_and_stays_after_back(chromium: Browser, home: ServedHome) -> None:
    page = home.enter(chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce"))
    page.locator("form[data-more] button").scroll_into_view_if_needed()
    before = places(page)
    page.locator("form[data-more] button").click()
    cards = page.locator("main [data-story][id]")
    expect(cards).to_have_count(len(before) + ADDED)
    assert places(page)[: len(before)] == before
    assert page.url == home.address + "/", "in place"
    page.locator("[data-batch] .headline a").nth(ADDED - 1).click()
    page.wait_for_url("**/story/**")
    page.go_back()
    expect(cards).to_have_count(len(before) + ADDED)
    expect(page.locator("[data-batch] .read .read-mark")).to_be_in_viewport()


def test_without_script_more_is_a_page_that_leads_to_what_was_added(chromium: Browser, home: ServedHome) -> None:
    page = home.enter(chromium.new_context(java_script_enabled=False))
    page.locator("form[data-more] button").click()
    expect(page.locator("main [data-story][id]")).to_have_count(30 + ADDED)
    first = page.locator("[data-batch] [data-story]").first.get_attribute("id")
    assert page.url == f"{home.address}/#{first}"

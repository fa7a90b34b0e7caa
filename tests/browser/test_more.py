"""Loading more stories at the end of a list in Chromium: nothing above moves, and they are there after Back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from device_app.feed.more import ADDED
from device_app.pages.feed_pages import LIST_PAGE
from protocol.popularity import POPULAR_LIMIT, Popularity
from tests.browser.conftest import Serve
from tests.browser.served_home import ServedHome, serve_home
from tests.doubles.backend import FakeBackend

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


def test_more_adds_stories_below_and_keeps_them_after_back(chromium: Browser, home: ServedHome) -> None:
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


@pytest.fixture
def lists(serve: Serve, tmp_path: Path) -> ServedHome:
    """A home with two hundred popular stories, and all sections followed."""
    backend = FakeBackend()
    newest = sorted(backend.pool.cards, key=lambda card: card.published_at, reverse=True)
    order = tuple(card.id for card in newest[:POPULAR_LIMIT])
    backend.popularity = Popularity(release=backend.releases[-1], rounds=0, devices=0, news=(), lifts=(), popular=order)
    made = serve_home(serve, tmp_path, backend)
    made.device.sync()
    for section in {card.section for card in backend.pool.cards}:
        made.device.interests.stance("section", section, "follow")
    return made


@pytest.mark.parametrize("path", ["/popular", "/following"])
def test_long_list_loads_below_and_keeps_its_place_after_back(chromium: Browser, lists: ServedHome, path: str) -> None:
    page = lists.enter(chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce"))
    page.goto(lists.address + path)
    cards = page.locator("main [data-list] [data-story][id]")
    expect(cards).to_have_count(LIST_PAGE)
    for shown in (2 * LIST_PAGE, 3 * LIST_PAGE):
        before = places(page)
        page.locator("a[data-more]").click()
        expect(cards).to_have_count(shown)
        assert places(page)[: len(before)] == before
    assert page.url == lists.address + path, "in place"
    opened = cards.nth(LIST_PAGE + 17)
    opened.scroll_into_view_if_needed()
    top = opened.bounding_box()
    opened.locator(".headline a").click()
    page.wait_for_url("**/story/**")
    page.go_back()
    expect(cards).to_have_count(3 * LIST_PAGE)
    expect(opened.locator(".read-mark")).to_be_in_viewport()
    again = opened.bounding_box()
    assert top is not None
    assert again is not None
    assert abs(again["y"] - top["y"]) <= 1, "and at the same place"


def test_button_for_more_without_scripts_opens_a_page_at_the_first_added_story(
    chromium: Browser, home: ServedHome
) -> None:
    page = home.enter(chromium.new_context(java_script_enabled=False))
    page.locator("form[data-more] button").click()
    expect(page.locator("main [data-story][id]")).to_have_count(30 + ADDED)
    first = page.locator("[data-batch] [data-story]").first.get_attribute("id")
    assert page.url == f"{home.address}/#{first}"

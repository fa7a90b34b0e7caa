"""What a reader does with an open story in Chromium: text size, theme, sharing, and the stories beside it.

Oracles: computed styles, the feed's order, and the requests that Chromium made.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from device_app.pages.renderer import WORDS
from tests.browser.conftest import Serve
from tests.browser.standing_devices import StandInDevices, enter

pytestmark = pytest.mark.browser

TOOLS = WORDS.table("tools")
SIZE = "parseFloat(getComputedStyle(document.querySelector('.prose')).fontSize)"
PAPER = "getComputedStyle(document.body).backgroundColor"
BARS = """() => {
  const bar = [...document.querySelectorAll("meta[name=theme-color]")].find((one) => matchMedia(one.media).matches);
  const shown = Object.assign(document.createElement("p"), { style: `color: ${bar.content}` });
  return shown.style.color;
}"""
SHARED = "navigator.share = async (data) => { window.shared = data; }"
NOT_SHARED = "delete Navigator.prototype.share"


@pytest.fixture(scope="module")
def standing(serve: Serve) -> StandInDevices:
    """Return devices by kind, started when first requested."""
    return StandInDevices(serve)


@pytest.fixture
def context(chromium: Browser, standing: StandInDevices) -> Iterator[BrowserContext]:
    made = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme="light")
    enter(made, standing.address("typical"))
    yield made
    made.close()


@pytest.fixture
def story(context: BrowserContext, standing: StandInDevices) -> Page:
    page = context.new_page()
    page.goto(f"{standing.address('typical')}/story/newsroom:0003?feed=feed-1")
    return page


def test_text_size_and_theme_stay_across_pages_and_tabs(story: Page, standing: StandInDevices) -> None:
    other = story.context.new_page()
    other.goto(f"{standing.address('typical')}/settings")
    size, light = story.evaluate(SIZE), story.evaluate(PAPER)
    requests: list[str] = []
    story.on("request", lambda request: requests.append(request.url))
    story.get_by_text(TOOLS["look"]).click()
    story.get_by_role("button", name=TOOLS["large"]).click()
    story.get_by_role("button", name=TOOLS["dark"]).click()
    assert story.evaluate(SIZE) == pytest.approx(1.25 * size)
    dark = story.evaluate(PAPER)
    assert dark != light
    assert story.evaluate(BARS) == dark, "the browser's own bars too"
    assert {urlsplit(one).path for one in requests} <= {"/pulse"}, "only what every page asks now and then"
    expect(other.get_by_role("button", name=TOOLS["dark"])).to_have_attribute("aria-pressed", "true")
    assert other.evaluate(PAPER) == other.evaluate(BARS) == dark, "another tab follows"
    story.reload()
    assert (story.evaluate(SIZE), story.evaluate(PAPER)) == (pytest.approx(1.25 * size), dark)
    other.get_by_role("button", name=TOOLS["system"]).click()
    other.get_by_role("button", name=TOOLS["normal"]).click()
    assert other.evaluate("Object.keys(localStorage)") == []
    story.reload()
    assert (story.evaluate(SIZE), story.evaluate(PAPER), story.evaluate(BARS)) == (size, light, light)


def test_share_passes_the_publishers_address_to_the_system_and_sends_nothing(
    context: BrowserContext, standing: StandInDevices
) -> None:
    context.add_init_script(SHARED)
    page = context.new_page()
    page.goto(f"{standing.address('typical')}/story/newsroom:0003?feed=feed-1")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.get_by_role("button", name=TOOLS["share"]).click()
    card = standing.devices["typical"].card("newsroom:0003")
    assert page.evaluate("window.shared") == {"title": card.title, "url": card.url}
    assert requests == []


def test_share_copies_the_address_where_the_system_has_no_sharing(
    context: BrowserContext, standing: StandInDevices
) -> None:
    context.add_init_script(NOT_SHARED)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{standing.address('typical')}/story/newsroom:0003?feed=feed-1")
    page.get_by_role("button", name=TOOLS["share"]).click()
    expect(page.locator("[data-shared]")).to_have_text(TOOLS["copied"])
    assert page.evaluate("navigator.clipboard.readText()") == standing.devices["typical"].card("newsroom:0003").url


def test_keys_and_links_walk_the_stories_in_the_feeds_order(story: Page, standing: StandInDevices) -> None:
    device = standing.devices["typical"]
    order = [item.card.id for item in device.feed().items]
    at = order.index("newsroom:0003")
    story.keyboard.press("j")
    story.wait_for_url(f"**/{quote(order[at + 1])}?feed=feed-1")
    assert device.opened[-1] == (order[at + 1], "feed-1"), "it counts as opened"
    story.get_by_role("link", name=TOOLS["next"]).click()
    story.wait_for_url(f"**/{quote(order[at + 2])}?feed=feed-1")
    story.keyboard.press("k")
    story.wait_for_url(f"**/{quote(order[at + 1])}?feed=feed-1")
    story.goto(f"{standing.address('typical')}/story/{order[0]}?feed=feed-1")
    assert story.locator("[data-beside]").count() == 1, "nothing comes before the first story"
    story.goto(f"{standing.address('typical')}/story/{order[0]}")
    assert story.locator("[data-beside]").count() == 0, "it was opened from no page"


@pytest.mark.parametrize("path", ["/explore", "/fresh", "/following", "/explore/science", "/search?q=the"])
def test_keys_walk_the_list_that_a_story_was_opened_from(
    context: BrowserContext, standing: StandInDevices, path: str
) -> None:
    page = context.new_page()
    page.goto(standing.address("typical") + path)
    headlines = page.locator("main [data-story] .headline a")
    first, second = headlines.all_text_contents()[:2]
    headlines.first.click()
    expect(page.locator("h1")).to_have_text(first)
    opened = len(standing.devices["typical"].opened)
    page.keyboard.press("j")
    expect(page.locator("h1")).to_have_text(second)
    assert len(standing.devices["typical"].opened) == opened + 1, "it counts as opened"
    page.get_by_role("link", name=TOOLS["previous"]).click()
    expect(page.locator("h1")).to_have_text(first)
    page.locator("a[data-back]").click()
    page.wait_for_url(lambda address: address.startswith(standing.address("typical") + path))


def test_tools_without_script_are_not_shown(chromium: Browser, standing: StandInDevices) -> None:
    context = chromium.new_context(java_script_enabled=False)
    enter(context, standing.address("typical"))
    page = context.new_page()
    page.goto(f"{standing.address('typical')}/story/newsroom:0003?feed=feed-1")
    assert page.get_by_role("link", name=TOOLS["next"]).is_visible()
    assert not page.get_by_role("button", name=TOOLS["share"]).is_visible()
    assert not page.get_by_text(TOOLS["look"]).is_visible()
    context.close()

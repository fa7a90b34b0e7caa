"""The reader's pages in Chromium over a stand-in device: the keyboard, and forms with and without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from device_app.pages.renderer import WORDS
from tests.browser.conftest import Serve
from tests.browser.standing_devices import StandInDevices, WatchedPage, enter

pytestmark = pytest.mark.browser

HOLE_PX = 120
"""Two lines of a headline and two of a standfirst: by so much stories of one row may differ in height."""
PLACES = """() => [...document.querySelectorAll(".spread .cards > .card")].map(card => {
  const place = card.getBoundingClientRect();
  const parts = [...card.querySelectorAll(".art, .eyebrow, .headline, .standfirst")];
  const filled = Math.max(...parts.map(part => part.getBoundingClientRect().bottom)) - place.top;
  const [button, text] = [".react button", ".headline"].map(one => card.querySelector(one).getBoundingClientRect());
  return {top: place.top, width: place.width, filled, acts: button.left - text.left};
})"""
"""Of each card on For you, in pixels: its place, how far down it is filled, how far its buttons stand from its text."""


@pytest.fixture(scope="module")
def standing(serve: Serve) -> StandInDevices:
    """Return devices by kind, started when first requested."""
    return StandInDevices(serve)


@pytest.fixture
def feed_context(chromium: Browser, standing: StandInDevices) -> Iterator[WatchedPage]:
    """A typical device at desktop width, in the light scheme."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    home = standing.address("typical")
    enter(context, home)
    yield WatchedPage(context.new_page(), home)
    context.close()


def test_keyboard_walks_the_feed_opens_a_story_and_returns(feed_context: WatchedPage, standing: StandInDevices) -> None:
    page = feed_context.page
    page.goto(feed_context.home + "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the stories"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.evaluate("document.activeElement.closest('[data-story]').id")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.closest('[data-story]').id") != chosen
    page.keyboard.press("j")
    before = page.evaluate(f"document.getElementById('{chosen}').getBoundingClientRect().top")
    page.keyboard.press("o")
    page.wait_for_url("**/story/**")
    assert standing.devices["typical"].opened[-1] == (chosen.removeprefix("n-"), "feed-1")
    page.go_back()
    page.wait_for_url(feed_context.home + "/")
    after = page.evaluate(f"document.getElementById('{chosen}').getBoundingClientRect().top")
    assert abs(after - before) < 3


def test_escape_closes_the_drawer_and_focuses_its_handle(feed_context: WatchedPage) -> None:
    page = feed_context.page
    page.goto(feed_context.home + "/privacy")
    drawer = page.locator("details#figures")
    drawer.locator("> summary").focus()
    page.keyboard.press("Escape")
    assert not drawer.evaluate("one => one.open")
    page.keyboard.press("Enter")
    assert drawer.evaluate("one => one.open")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.inside') !== null")
    page.keyboard.press("Escape")
    assert not drawer.evaluate("one => one.open")
    assert page.evaluate("document.activeElement.textContent") == "The exact figures"


def test_every_tab_stop_shows_a_focus_ring(feed_context: WatchedPage) -> None:
    feed_context.page.goto(feed_context.home + "/privacy")
    bare: list[str] = []
    for _ in range(60):
        feed_context.page.keyboard.press("Tab")
        ring = feed_context.page.evaluate(
            "(() => { const on = document.activeElement; const style = getComputedStyle(on);"
            " return [on.outerHTML.slice(0, 80), style.outlineStyle, parseFloat(style.outlineWidth)]; })()"
        )
        if ring[0].startswith("<body"):
            break
        if ring[1] == "none" or ring[2] < 1:
            bare.append(ring[0])
    assert bare == []


def test_like_is_shown_at_once_and_sent_without_a_reload(feed_context: WatchedPage, standing: StandInDevices) -> None:
    page = feed_context.page
    page.goto(feed_context.home + "/")
    page.evaluate("window.stillHere = true")
    button = page.locator("#n-newsroom\\:0003 button[value=like]")
    button.focus()
    with page.expect_response("**/react") as answer:
        page.keyboard.press("l")
        assert button.get_attribute("aria-pressed") == "true"
    assert answer.value.status == 204
    assert page.evaluate("window.stillHere") is True
    assert "like" in standing.devices["typical"].reacted["newsroom:0003"]
    with page.expect_response("**/react"):
        button.click()
    assert standing.devices["typical"].reacted["newsroom:0003"] == set()


def test_refused_like_is_reverted_with_a_message(feed_context: WatchedPage) -> None:
    page = feed_context.page
    page.goto(feed_context.home + "/")
    page.route("**/react", lambda route: route.abort())
    button = page.locator("#n-newsroom\\:0005 button[value=save]")
    button.focus()
    button.press("Enter")
    page.locator("#n-newsroom\\:0005 [role=alert]").wait_for()
    assert button.get_attribute("aria-pressed") == "false"


WHOLE = 0.98
"""Of an element: a place to which a list is scrolled may be rounded to whole pixels."""


@pytest.mark.parametrize("width", [320, 390])
def test_tabs_under_you_fit_on_one_line_and_show_the_current_tab(
    chromium: Browser, standing: StandInDevices, width: int
) -> None:
    home = standing.address("typical")
    context = chromium.new_context(viewport={"width": width, "height": 844}, is_mobile=True, has_touch=True)
    enter(context, home)
    page = context.new_page()
    for path in ("privacy", "latency"):
        page.goto(f"{home}/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("scrollY") == 0
        tabs = page.locator(".tabs a")
        assert len({round(box["y"]) for each in tabs.all() if (box := each.bounding_box())}) == 1
        expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=WHOLE)
        tabs.first.focus()
        for each in tabs.all()[1:]:
            page.keyboard.press("Tab")
            expect(each).to_be_focused()
            expect(each).to_be_in_viewport(ratio=WHOLE)
    context.close()


def test_pages_fit_a_screen_320_pixels_wide_with_every_status_text(chromium: Browser, standing: StandInDevices) -> None:
    """WCAG 2.2, 1.4.10 Reflow: 320 px, which is 400 % on a desktop."""
    home, width = standing.address("overfull"), 320
    context = chromium.new_context(viewport={"width": width, "height": 844}, is_mobile=True, has_touch=True)
    enter(context, home)
    page = context.new_page()
    for path in ("/", "/explore", "/fresh", "/search?q=the", "/privacy", "/training", "/settings?switches=open"):
        page.goto(home + path)
        for words in {*WORDS.table("shield").values(), WORDS("all_here")}:
            page.locator(".shield span").first.evaluate("(one, words) => { one.textContent = words; }", words)
            assert page.evaluate("document.documentElement.scrollWidth") == width, f"{path}, {words}"
    context.close()


def test_cards_align_in_rows_on_a_tablet_and_buttons_on_a_phone(chromium: Browser, standing: StandInDevices) -> None:
    """Regression: a picture without height beside a story without one, a story alone in its row, and buttons on the
    picture's line where a headline was short."""
    context = chromium.new_context(viewport={"width": 768, "height": 900})
    home = standing.address("typical")
    enter(context, home)
    page = context.new_page()
    page.goto(home + "/")
    cards = page.evaluate(PLACES)
    rows: dict[int, list[dict[str, float]]] = {}
    for card in cards:
        rows.setdefault(round(card["top"]), []).append(card)
    alone = [row[0] for row in list(rows.values())[:-1] if len(row) == 1]
    assert len(cards) > 12
    assert len(rows) < len(cards)
    assert all(card["width"] > 600 for card in alone), "what stands alone fills its row"
    for row in rows.values():
        assert max(card["filled"] for card in row) - min(card["filled"] for card in row) < HOLE_PX
    page.goto(home + "/explore")
    gaps = page.evaluate("""() => [...document.querySelectorAll("section.each")].slice(1).map(each =>
        each.getBoundingClientRect().top - each.previousElementSibling.getBoundingClientRect().bottom)""")
    assert gaps
    assert min(gaps) >= 24
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(home + "/")
    assert len({round(card["acts"]) for card in page.evaluate(PLACES)}) == 1
    context.close()


def test_printed_story_shows_only_the_story_in_black(chromium: Browser, standing: StandInDevices) -> None:
    home = standing.address("typical")
    context = chromium.new_context(viewport={"width": 794, "height": 1123}, color_scheme="dark")
    enter(context, home)
    page = context.new_page()
    page.goto(home + "/story/newsroom:0003?feed=feed-1")
    page.emulate_media(media="print")
    for reported in ("h1", ".hero", ".prose p >> nth=0", ".wordmark"):
        expect(page.locator(reported)).to_be_visible()
    assert page.locator(".prose p").first.evaluate("(one) => getComputedStyle(one).color") == "rgb(0, 0, 0)"
    for pressed in (".sections", ".shield", ".find", ".react", ".stance >> nth=0", ".side", ".footer", ".bottom-bar"):
        expect(page.locator(pressed)).to_be_hidden()
    context.close()


def test_keys_mark_a_story_read_save_it_and_mark_all_read_with_undo(
    feed_context: WatchedPage, standing: StandInDevices
) -> None:
    page, device = feed_context.page, standing.devices["typical"]
    page.goto(feed_context.home + "/fresh")
    page.keyboard.press("j")
    chosen = page.evaluate("document.activeElement.closest('[data-story]').id").removeprefix("n-")
    opened = list(device.opened)
    with page.expect_response("**/react"):
        page.keyboard.press("m")
    expect(page.locator(f"[id='n-{chosen}']")).to_have_class(re.compile(r"\bread\b"))
    assert device.marks == {chosen}
    with page.expect_response("**/react"):
        page.keyboard.press("m")
    with page.expect_response("**/react"):
        page.keyboard.press("s")
    assert "save" in device.reacted[chosen]
    page.keyboard.press("Shift+A")
    expect(page.locator("[data-marked]")).to_contain_text("marked as read")
    assert chosen in device.marks
    page.locator("[data-marked] button").click()
    expect(page.locator("[data-marked]")).to_have_count(0)
    assert not device.marks
    assert device.opened == opened, "a mark is no click"


def test_shortcut_sheet_opens_and_closes_by_key_and_fields_ignore_keys(
    feed_context: WatchedPage,
) -> None:
    page = feed_context.page
    page.goto(feed_context.home + "/")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('dialog') !== null"), "no key reaches the page behind it"
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("?jm")
    expect(sheet).to_be_hidden()
    assert page.locator("#find").input_value() == "?jm"
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(sheet).to_be_visible()
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()


def test_every_form_works_without_scripts(chromium: Browser, standing: StandInDevices) -> None:
    home = standing.address("typical")
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    enter(context, home)
    page = context.new_page()
    page.goto(home + "/story/newsroom:0010?feed=feed-1")
    page.get_by_role("button", name="More like this").click()
    assert page.url.startswith(home + "/story/newsroom:0010")
    assert page.get_by_role("button", name="More like this").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Follow rivers").click()
    assert standing.devices["typical"].held["topic", "rivers"] == "follow"
    page.goto(home + "/fresh")
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator("main")).to_contain_text("stories marked as read.")
    page.locator("[data-marked] button").click()
    assert not standing.devices["typical"].marks
    page.goto(home + "/settings?switches=open")
    page.get_by_label("Limit per day (epsilon)").first.fill("100")
    page.locator("form.switches").get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("body")).to_contain_text("Your settings are saved.")
    assert standing.devices["typical"].settings.epsilon_per_day_reports == 100
    context.close()


def test_content_policy_allows_every_own_style_and_script(feed_context: WatchedPage) -> None:
    feed_context.page.goto(feed_context.home + "/")
    asked = feed_context.page.locator("link[rel=stylesheet]").count()
    assert feed_context.page.evaluate("document.styleSheets.length") == asked == 1
    assert feed_context.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 249, 244)"


def test_reader_searches_by_keyboard_saves_opens_returns_and_deletes(
    feed_context: WatchedPage, standing: StandInDevices
) -> None:
    page, device = feed_context.page, standing.devices["typical"]
    page.goto(feed_context.home + "/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("harbour")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=harbour")
    assert "Searches stay on this device" in page.inner_text("main")
    stories = page.locator("article[data-story]").count()
    assert stories >= 1
    page.get_by_role("button", name="Save this search").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The search is saved on this device.")
    assert [one.words for one in device.saved_searches] == ["harbour"]
    assert page.get_by_role("link", name="harbour", exact=True).count() == 1
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q", "on its own page the key goes to the large field"
    page.keyboard.press("Escape")
    page.locator("article[data-story] .headline a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/story/**")
    assert len(device.found) == 1, "this view remembers what was opened from results"
    page.locator("a[data-back]").click()
    page.wait_for_url("**/search?q=harbour**")
    page.goto(feed_context.home + "/searches")
    page.get_by_role("button", name="Delete the search harbour").click()
    page.wait_for_selector("text=The search is deleted from this device.")
    assert device.saved_searches == []
    assert feed_context.foreign_requests == []
    assert feed_context.errors == []

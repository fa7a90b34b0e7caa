"""A search of the whole pool in Chromium over a real device. Oracle: the pool's own headlines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import Serve
from tests.browser.served_home import ServedHome, serve_home
from tests.doubles.backend import FakeBackend

pytestmark = pytest.mark.browser
WORD, WITH_WORD = "harbour", 160
SHOWN = "[data-list] [data-story]"


@pytest.fixture
def backend() -> FakeBackend:
    made = FakeBackend(pool_codes=True)
    titles = [f"The hárbour, part {row}" if row % 5 == 0 else card.title for row, card in enumerate(made.pool.cards)]
    cards = [card.model_copy(update={"title": title}) for card, title in zip(made.pool.cards, titles, strict=True)]
    made.pool = replace(made.pool, cards=tuple(cards))
    made.publish()
    return made


@pytest.fixture
def home(serve: Serve, tmp_path: Path, backend: FakeBackend) -> ServedHome:
    return serve_home(serve, tmp_path, backend)


def ids(page: Page) -> list[str]:
    found: list[str] = page.locator(SHOWN).evaluate_all("all => all.map(one => one.id.slice(2))")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_shows_all_results_by_keyboard_and_after_back(
    chromium: Browser, home: ServedHome, backend: FakeBackend, scheme: str
) -> None:
    wide = {"width": 1280, "height": 900} if scheme == "light" else {"width": 390, "height": 844}
    context = chromium.new_context(viewport=wide, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = home.enter(context)
    asked = len(backend.requests)
    page.goto(home.address + "/search")
    expect(page.locator(".page-head")).to_contain_text("all 800 stories")
    page.keyboard.press("/")
    page.keyboard.type(WORD)
    page.keyboard.press("Enter")
    heading = page.locator("#results")
    expect(heading).to_have_text(f"{WITH_WORD} stories, the first 50 for “{WORD}”")
    expect(page.locator("#near")).to_be_visible()
    assert broken_rules(page) == []
    before = ids(page)
    for shown, rest in ((100, ", the first 100"), (150, ", the first 150"), (WITH_WORD, "")):
        page.locator("a[data-more]").focus()
        page.keyboard.press("Enter")
        expect(heading).to_have_text(f"{WITH_WORD} stories{rest} for “{WORD}”")
        expect(page.locator(SHOWN)).to_have_count(shown)
    assert ids(page)[:50] == before
    assert set(ids(page)) == {card.id for card in backend.pool.cards if "hárbour" in card.title}
    expect(page.locator("a[data-more]")).to_have_count(0)
    assert page.url == f"{home.address}/search?q={WORD}", "in place"
    page.locator(f"{SHOWN} .headline a").last.click()
    page.wait_for_url("**/story/**")
    page.go_back()
    expect(page.locator(SHOWN)).to_have_count(WITH_WORD)
    expect(page.locator(f"{SHOWN} .read-mark").last).to_be_in_viewport()
    assert len(backend.requests) == asked, "neither searching nor opening asks for anything"
    context.close()


def test_search_without_script_has_pages(chromium: Browser, home: ServedHome) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = home.enter(context)
    page.goto(f"{home.address}/search?q={WORD}")
    shown = ids(page)
    for first, last in ((51, 100), (101, 150), (151, WITH_WORD)):
        page.get_by_role("link", name="More", exact=True).click()
        expect(page.locator("#results")).to_have_text(f"{WITH_WORD} stories, {first} to {last} for “{WORD}”")
        shown += ids(page)
    assert len(set(shown)) == len(shown) == WITH_WORD
    page.get_by_role("link", name="Previous").click()
    expect(page.locator("#results")).to_contain_text("101 to 150")
    context.close()

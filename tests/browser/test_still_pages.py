"""A page of the feed doesn't move in Chromium over a real device. Oracles: the page as it was before, and axe-core."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe_rules import broken_rules
from tests.browser.conftest import Serve
from tests.browser.served_home import ServedHome, serve_home

pytestmark = pytest.mark.browser

LONG_AGO = datetime.now(UTC) - timedelta(days=30)
CARDS = """() => Object.fromEntries([...document.querySelectorAll("main [data-story][id]")].map(card => {
  const place = card.getBoundingClientRect();
  const look = card.cloneNode(true);
  look.querySelectorAll("time").forEach(time => time.remove());
  return [card.id, [place.x + scrollX, place.y + scrollY, place.width, place.height, look.outerHTML].join(" ")];
}))"""
"""Where each card of the page is and what it says, without how long ago."""


def seen_ids(home: ServedHome) -> set[str]:
    return home.device.parts.stores.impressions.seen(LONG_AGO)


@pytest.fixture
def home(serve: Serve, tmp_path: Path) -> ServedHome:
    return serve_home(serve, tmp_path)


def card_states(page: Page) -> dict[str, str]:
    page.wait_for_load_state("load")  # after a click it may still be coming
    found: dict[str, str] = page.evaluate(CARDS)
    return found


def changed_cards(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert list(after) == list(before), "thirty of thirty stories, in their order"
    return {card for card in before if before[card] != after[card]}


def test_reading_and_reacting_change_only_the_pressed_card(chromium: Browser, home: ServedHome) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = home.enter(context)
    at_first = card_states(page)
    assert len(at_first) == 30
    opened = []
    for place in (4, 9, 14):
        before = card_states(page)
        card = page.locator("main article[data-story][id]").nth(place)
        card.scroll_into_view_if_needed()
        was_at = page.evaluate("scrollY")
        opened.append(card.get_attribute("id"))
        card.locator(".headline a").click()
        page.wait_for_url("**/story/**")
        page.go_back()
        page.wait_for_url(home.address + "/")
        expect(page.locator(f"[id='{opened[-1]}'].read .read-mark")).to_be_visible()
        page.wait_for_function("at => Math.abs(scrollY - at) < 3", arg=was_at)
        assert changed_cards(before, card_states(page)) == {opened[-1]}
    for kind, place in (("like", 5), ("less", 6), ("save", 7)):
        before = card_states(page)
        card = page.locator("main article[data-story][id]").nth(place)
        card.scroll_into_view_if_needed()
        was_at = page.evaluate("scrollY")
        name = card.get_attribute("id")
        button = card.locator(f"form[data-react] button[value={kind}]")
        card.hover()
        stood = button.bounding_box()
        with page.expect_response("**/react"):
            button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        if kind == "less":
            expect(card.locator(".veil")).to_contain_text("You will see less of this.")
        assert button.bounding_box() == stood
        assert page.evaluate("scrollY") == was_at
        assert changed_cards(before, card_states(page)) == {name}
        if kind == "less":
            card.get_by_role("button", name="Undo").click()
            expect(card.locator(".veil")).to_have_count(0)
            assert name is not None
            assert card_states(page)[name] == before[name], "pressed twice"
            card.hover()
            button.click()
            expect(card.locator(".veil")).to_have_count(1)
    after = card_states(page)
    page.reload()
    assert changed_cards(after, card_states(page)) == set()
    assert len(changed_cards(at_first, after)) == 6
    expect(page.locator("[data-offer]")).to_contain_text("3 stories read since")
    offer = page.locator("[data-offer]").bounding_box()
    page.get_by_role("button", name="Refresh").click()
    page.get_by_role("link", name="Previous page").click()
    assert list(card_states(page)) == list(at_first)
    assert page.locator("[data-offer]").bounding_box() == offer, "its place is kept whatever it says"
    context.close()


def test_hidden_story_leaves_a_placeholder_and_can_be_restored(chromium: Browser, home: ServedHome) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = home.enter(context)
    before = card_states(page)
    card = page.locator("main article[data-story][id]").nth(3)
    topics = {f"n-{item.card.id}": item.card.topic for item in home.device.reading.feed().items}
    topic = topics[card.get_attribute("id") or ""]
    card.hover()
    card.locator("button[value=less]").first.click()
    card.get_by_role("button", name=f"Hide {topic[0].upper()}{topic[1:]}").click()
    expect(card.locator(".veil")).to_contain_text(" hidden.")
    assert home.device.interests.stances() == {("topic", topic): "block"}
    assert broken_rules(page) == []
    now = card_states(page)
    assert list(now) == list(before)
    assert [place.split(" ")[:4] for place in now.values()] == [place.split(" ")[:4] for place in before.values()]
    page.goto(home.address + "/settings#hidden")
    page.locator("#hidden").get_by_role("button", name="Show again").click()
    page.wait_for_url("**/settings#hidden")
    assert home.device.interests.stances() == {}
    page.locator("#hidden").get_by_role("button", name="Undo").click()
    expect(page.locator("#hidden")).to_contain_text("You hide nothing.")
    page.goto(home.address + "/")
    assert changed_cards(before, card_states(page)) == set()
    context.close()


def test_story_counts_as_seen_after_half_is_visible_for_a_second(chromium: Browser, home: ServedHome) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = home.enter(context)
    in_sight = """() => [...document.querySelectorAll("main [data-story][id]")].filter(card => {
      const {top, bottom, height} = card.getBoundingClientRect();
      return Math.min(bottom, innerHeight) - Math.max(top, 0) >= height / 2;
    }).map(card => card.id.slice(2))"""
    looked_at = set(page.evaluate(in_sight))
    assert 0 < len(looked_at) < 20
    for _ in range(100):
        if seen_ids(home) == looked_at:
            break
        page.wait_for_timeout(100)
    assert seen_ids(home) == looked_at
    page.locator("main article[data-story][id]").last.locator(".headline a").evaluate("link => link.click()")
    page.wait_for_url("**/story/**")
    last = home.device.library.history().entries[0].news_id
    assert seen_ids(home) - looked_at == {last}, "what stands above it was not in sight: a script watched"
    context.close()


def test_without_script_unopened_unpassed_stories_stay_unseen(chromium: Browser, home: ServedHome) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 800})
    page = home.enter(context)
    assert seen_ids(home) == set()
    items = home.device.reading.feed().items
    page.locator(f"[id='n-{items[3].card.id}'] .headline a").click()
    page.wait_for_url("**/story/**")
    assert seen_ids(home) == {item.card.id for item in items[:4]}
    page.get_by_role("link", name="Back to the feed").click()
    card = page.locator(f"[id='n-{items[5].card.id}']")
    card.locator("button[value=less]").first.click()
    assert "You will see less of this." in card.inner_text()
    card.get_by_role("button", name="Undo").click()
    assert card.locator(".veil").count() == 0
    assert seen_ids(home) == {item.card.id for item in items[:4]}
    context.close()

"""Pages of topics and publishers: linked from every card, listed in parts, marked where new."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from device_app.feed.held_lists import HeldLists
from device_app.pages.feed_pages import SAVED_HELD
from device_app.stores import DeviceStores
from tests.doubles.pages_reader import PagesReader


def test_every_card_and_story_links_to_its_topic_and_publisher(reader: PagesReader) -> None:
    links = {unescape(link) for link in re.findall(r'href="(/(?:topic|publisher)/[^"]+)"', reader.get("/"))}
    assert {link.split("/")[1] for link in links} == {"topic", "publisher"}
    for link in sorted(links):
        assert re.search(r"\d+ (?:story|stories) (?:in this topic|from this publisher)", reader.get(link)), link
    story = reader.get("/story/newsroom:0003")
    assert 'href="/topic/' in story
    assert 'href="/publisher/' in story
    for broken in ("%20of%20the%20kind", "%0Aafter%20a%20line", "/of/it"):
        for start in ("/topic/nothing", "/publisher/nobody", "/explore/nowhere", "/nowhere"):
            answer = reader.client.get(start + broken)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8"), start


def test_new_stories_are_labelled_and_a_list_continues_below() -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    cards = tuple(first.model_copy(update={"id": f"c-{number:03}"}) for number in range(70))
    reader.device.cards = cards
    reader.device.came = lambda held, cards: frozenset({"c-000", "c-031"})  # type: ignore[method-assign]
    address = f"/topic/{first.topic}"
    pages = [reader.get(address), reader.get(f"{address}?page=2"), reader.get(f"{address}?page=3")]
    shown = [re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text) for text in pages]
    assert [len(each) for each in shown] == [30, 30, 10]
    assert [news_id for each in shown for news_id in each] == [card.id for card in cards]
    assert [text.count(">New</span>") for text in pages] == [1, 1, 0]
    assert ["data-more>" in text for text in pages] == [True, True, False]
    assert all(len(text.encode()) < 80_000 for text in pages)


def test_size_of_the_explore_page_is_bounded() -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    reader.device.cards = tuple(
        first.model_copy(update={"id": f"s{section}-{number}", "section": f"section {section:02}", "story": None})
        for section in range(40)
        for number in range(50)
    )
    text = reader.get("/explore")
    assert len(text.encode()) < 80_000
    assert len(re.findall(r"<li [^>]*data-story", text)) == 24 * 3
    assert all(f"/explore/section%20{section:02}" in text for section in range(40)), "those beyond are named"


@pytest.fixture
def device_with_lists(tmp_path: Path) -> Iterator[PagesReader]:
    """A stand-in device that keeps its lists as a real one does."""
    stores = DeviceStores(tmp_path / "device.sqlite")
    reader = PagesReader()
    stores.news.put_cards(reader.device.cards, reader.device.now)
    reader.device.lists = HeldLists(stores, 6.0, lambda: reader.device.now)  # type: ignore[assignment]
    reader.device.cards_of = stores.news.cards  # type: ignore[method-assign,assignment]
    yield reader
    stores.close()


def listed_ids(text: str) -> list[str]:
    return re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text)


def test_following_page_keeps_stories_that_left_the_newest_list(device_with_lists: PagesReader) -> None:
    followed = [card for card in device_with_lists.device.cards if card.section == "science"]
    before = listed_ids(device_with_lists.get("/following"))
    assert before == [card.id for card in followed]
    device_with_lists.device.cards = tuple(card for card in device_with_lists.device.cards if card != followed[0])
    assert listed_ids(device_with_lists.get("/following")) == before
    device_with_lists.device.interests.stance("section", "science", None)
    assert listed_ids(device_with_lists.get("/following")) == [], "what is no longer followed goes"


def test_unsaved_story_keeps_its_place_for_a_while(device_with_lists: PagesReader) -> None:
    ids = [card.id for card in device_with_lists.device.cards[:4]]
    for one in ids[:3]:
        device_with_lists.device.library.react(one, "save")
    assert listed_ids(device_with_lists.get("/saved")) == ids[:3]
    device_with_lists.device.library.react(ids[1], "save")
    text = device_with_lists.get("/saved")
    assert listed_ids(text) == ids[:3], "after Back"
    assert "2 stories, last saved first" in text
    pressed = text.partition(f'id="n-{ids[1]}"')[2].partition("</article>")[0]
    assert 'value="save" aria-pressed="false"' in pressed, "pressing again undoes it"
    device_with_lists.device.library.react(ids[3], "save")
    assert set(listed_ids(device_with_lists.get("/saved"))) == {ids[0], ids[2], ids[3]}, (
        "what is newly saved is there at once"
    )
    device_with_lists.device.library.react(ids[3], "save")
    device_with_lists.device.now -= SAVED_HELD
    device_with_lists.device.lists.renew("saved")  # held since a while ago
    device_with_lists.device.lists.hold(
        "saved", [device_with_lists.device.card(one) for one in (ids[0], ids[2], ids[3])]
    )
    assert set(listed_ids(device_with_lists.get("/saved"))) == {ids[0], ids[2]}


def test_list_of_saved_stories_has_pages() -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    reader.device.cards = tuple(first.model_copy(update={"id": f"s-{number:03}"}) for number in range(70))
    reader.device.reacted = {card.id: {"save"} for card in reader.device.cards}
    pages = [reader.get(path) for path in ("/saved", "/saved?page=2", "/saved?page=3")]
    assert [len(listed_ids(text)) for text in pages] == [30, 30, 10]
    assert [one for text in pages for one in listed_ids(text)] == [card.id for card in reader.device.cards]
    assert ["data-more>" in text for text in pages] == [True, True, False]
    assert all("70 stories, last saved first" in text for text in pages)

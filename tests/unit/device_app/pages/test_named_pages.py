"""Pages of topics and publishers: linked from every card, listed in parts, marked where new."""

from __future__ import annotations

import re
from html import unescape

from device_app.feed.held_lists import HeldList
from tests.doubles.pages_reader import PagesReader


def test_every_card_and_story_leads_to_its_topic_and_publisher(reader: PagesReader) -> None:
    links = {unescape(link) for link in re.findall(r'href="(/(?:topic|publisher)/[^"]+)"', reader.get("/"))}
    assert {link.split("/")[1] for link in links} == {"topic", "publisher"}
    for link in sorted(links):
        assert re.search(r"\d+ (?:story|stories) of this (?:topic|publisher)", reader.get(link)), link
    story = reader.get("/story/newsroom:0003")
    assert 'href="/topic/' in story
    assert 'href="/publisher/' in story
    for broken in ("%20of%20the%20kind", "%0Aafter%20a%20line", "/of/it"):
        for start in ("/topic/nothing", "/publisher/nobody", "/explore/nowhere", "/nowhere"):
            answer = reader.client.get(start + broken)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8"), start


def test_what_is_new_is_said_in_a_word_and_a_list_goes_on_below() -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    cards = tuple(first.model_copy(update={"id": f"c-{number:03}"}) for number in range(70))
    reader.device.cards = cards
    reader.device.hold = lambda name, listed: HeldList(  # type: ignore[method-assign]
        reader.device.now, tuple(listed), 0, frozenset({"c-000", "c-031"})
    )
    address = f"/topic/{first.topic}"
    pages = [reader.get(address), reader.get(f"{address}?page=2"), reader.get(f"{address}?page=3")]
    shown = [re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text) for text in pages]
    assert [len(each) for each in shown] == [30, 30, 10]
    assert [news_id for each in shown for news_id in each] == [card.id for card in cards]
    assert [text.count(">New</span>") for text in pages] == [1, 1, 0]
    assert ["data-more>" in text for text in pages] == [True, True, False]
    assert all(len(text.encode()) < 80_000 for text in pages)


def test_explore_stays_bounded_however_much_there_is() -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    reader.device.cards = tuple(
        first.model_copy(update={"id": f"s{section}-{number}", "section": f"section {section:02}"})
        for section in range(40)
        for number in range(50)
    )
    text = reader.get("/explore")
    assert len(text.encode()) < 80_000
    assert len(re.findall(r"<li [^>]*data-story", text)) == 24 * 3
    assert all(f"/explore/section%20{section:02}" in text for section in range(40)), "those beyond are named"

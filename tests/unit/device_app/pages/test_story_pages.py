"""How stories and cards are displayed, opened and reacted to."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.feed.item import Article, Ending, Reason, text_of
from device_app.feed.offer import Offer
from device_app.pages.feed_pages import with_shapes
from device_app.pages.routes import router
from protocol.bodies import pieces_of, text_of_body
from protocol.news import NewsCard
from tests.doubles.pages_device import PagesDevice
from tests.doubles.pages_reader import HOME, OURS, PagesReader, page_key


def test_outgoing_link_sends_no_referrer_and_no_opener(reader: PagesReader) -> None:
    links = re.findall(r'<a [^>]*href="https?://[^>]*>', reader.get("/story/newsroom:0003"))
    assert len(links) == 1
    assert 'rel="noreferrer noopener external"' in links[0]


def test_opening_a_story_records_the_click_with_its_feed(reader: PagesReader) -> None:
    reader.click("newsroom:0005", "feed-1")
    assert reader.device.opened[-1] == ("newsroom:0005", "feed-1")


def test_forged_link_to_a_story_records_nothing(reader: PagesReader) -> None:
    before = list(reader.device.opened)
    assert reader.client.get("/story/newsroom:0005", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert reader.client.head("/story/newsroom:0005").status_code == 405
    assert reader.device.opened == before


def test_missing_story_answers_not_found_with_a_way_back(reader: PagesReader) -> None:
    answer = reader.client.get("/story/nothing")
    assert answer.status_code == 404
    assert "nothing" in answer.text
    assert "Back to your feed" in answer.text


def test_story_without_its_text_explains_why_it_is_not_fetched_alone(reader: PagesReader) -> None:
    assert "would reveal what you read" in reader.get("/story/newsroom:0014")


@pytest.mark.parametrize(
    ("ending", "own_feeds", "said"),
    [
        ("teaser", True, "The feed contains no more of this story."),
        ("teaser", False, "There is no more of this story here."),
        ("cut", False, "The text is cut off here because it is too long"),
    ],
)
def test_truncated_text_says_so_and_links_to_the_rest(ending: Ending, own_feeds: bool, said: str) -> None:
    reader = PagesReader()
    whole = reader.get("/story/newsroom:0003")
    assert "Read the rest" not in whole
    assert "min to read" in whole
    reader.device.ending, reader.device.own_feeds = ending, own_feeds
    card = reader.device.card("newsroom:0003")
    for path in ("/story/newsroom:0003", "/kept"):
        text = reader.get(path)
        assert said in text
        assert f'<a href="{card.url}" rel="noreferrer noopener external" target="_blank">Read the rest at' in text
        assert "min to read" not in text, "how long the rest takes is not known"


def test_topic_named_like_its_section_is_shown_once() -> None:
    reader = PagesReader()
    card = reader.device.cards[0].model_copy(update={"topic": reader.device.cards[0].section})
    reader.device.cards = (card, *reader.device.cards[1:])
    story = reader.get(f"/story/{card.id}")
    assert "/topic/" not in story.partition("</article>")[0]
    assert story.count('name="kind" value="topic"') == 0
    assert story.count('name="kind" value="section"') == 1
    reader.device.interests.stance("topic", card.topic, "follow")
    assert reader.get(f"/story/{card.id}").count('name="kind" value="topic"') == 1, "what stands can be taken back"


@pytest.mark.parametrize(
    ("body", "paragraphs", "ending"),
    [
        (None, (), "absent"),
        ("<p>What an abstract says.</p>", ("What an abstract says.",), "teaser"),
        ('<p>What an abstract says.</p><img alt="x">', ("What an abstract says.",), "whole"),
        ("<p>One.</p><ul><li>Two.</li></ul><p>[…]</p>", ("One.", "Two."), "cut"),
        ("", (), "teaser"),
        ("One.\n\nTwo.", ("One.", "Two."), "whole"),
        ("One.\n\n[…]", ("One.",), "cut"),
        ("One and [...]", ("One and [...]",), "teaser"),
        ("One and [ … ]\n\nIt appeared first there.", ("One and [ … ]", "It appeared first there."), "teaser"),
        ("One [...] left out.\n\nTwo.\n\nThree.", ("One [...] left out.", "Two.", "Three."), "whole"),
    ],
)
def test_text_of_a_story_states_whether_it_is_complete_cut_or_missing(
    body: str | None, paragraphs: tuple[str, ...], ending: Ending
) -> None:
    pieces, found = text_of(body, "What an\nabstract says.")
    assert (tuple(text_of_body(pieces).split("\n\n")) if pieces else (), found) == (paragraphs, ending)


@pytest.mark.parametrize(
    ("abstract", "shown"),
    [
        ("Eggs were laid.  By whom…", ""),
        ("Eggs were laid. [...]", ""),
        ("Eggs were laid", ""),
        ("Eggs were not laid.", "Eggs were not laid."),
        ("", ""),
    ],
)
def test_abstract_repeated_by_the_text_is_shown_once(abstract: str, shown: str) -> None:
    card = PagesDevice().cards[0].model_copy(update={"abstract": abstract})
    pieces = tuple(pieces_of("Eggs were laid.\n\nBy whom is not known."))
    assert Article(card, pieces, None, ()).standfirst == shown


def test_reader_text_is_escaped_and_marked_with_its_direction(reader: PagesReader) -> None:
    text = reader.get('/search?q=<b>"x"</b>')
    assert "<b>" not in text
    assert 'dir="auto"' in reader.get("/")
    assert "الميناء" in PagesReader("overfull").get("/")


def test_reaction_returns_to_its_card_and_a_script_gets_no_page(reader: PagesReader) -> None:
    assert reader.post("/story/newsroom:0002/react", kind="save", back="/#n-newsroom:0002") == "/#n-newsroom:0002"
    assert reader.device.reacted["newsroom:0002"] == {"save"}
    quick = reader.client.post(
        "/story/newsroom:0002/react", data={"kind": "save"}, headers=OURS | {"accept": "application/json"}
    )
    assert (quick.status_code, quick.content) == (204, b"")
    assert reader.device.reacted["newsroom:0002"] == set()


def test_popular_page_shows_when_it_was_counted_or_that_it_was_not() -> None:
    assert "It comes from anonymous counts" in PagesReader().get("/popular")
    assert "No reading counts yet" in PagesReader("empty").get("/popular")


def test_saved_story_is_listed_and_marked_as_saved_everywhere() -> None:
    reader = PagesReader()
    assert "Nothing saved yet" in reader.get("/saved")
    reader.post("/story/newsroom:0002/react", kind="save")
    assert "1 story, last saved first" in reader.get("/saved")
    title = reader.device.card("newsroom:0002").title
    for path in ("/saved", "/fresh", "/explore/" + reader.device.card("newsroom:0002").section):
        card = reader.get(path).partition('id="n-newsroom:0002"')[2].partition("</article>")[0]
        assert title in card
        assert 'value="save" aria-pressed="true"' in card, path


def test_offline_page_shows_the_last_feed_with_its_time() -> None:
    text = PagesReader("offline").get("/")
    assert "This is the feed of 07:42" in text
    assert "Offline: can't reach the publisher" in text
    assert "Dredging" in text
    assert PagesReader("offline").post("/feed/refresh") == "/"
    assert PagesReader().post("/feed/refresh") == "/?said=refreshed"


def test_pictures_are_served_as_svg_and_cached(reader: PagesReader) -> None:
    addresses = re.findall(r'<img class="art" src="(/static/[^"]+/art/[a-z]+-\d\.svg)"', reader.get("/"))
    assert len(addresses) > 10
    picture = reader.client.get(addresses[0])
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "immutable" in picture.headers["cache-control"]
    assert picture.text.startswith("<svg")
    assert reader.client.get(re.sub(r"\w+-\d\.svg", "none-1.svg", addresses[0])).status_code == 404


@pytest.mark.parametrize("count", range(31))
def test_cards_of_a_feed_leave_no_gap_in_the_last_row(count: int) -> None:
    items = PagesDevice().feed().items[:count]
    sixths = sum({"wide": 6, "half": 3}.get(shape, 2) for _, shape in with_shapes(items))
    assert sixths % 6 == 0 or count == 0


def test_card_with_the_longest_fields_is_shown_in_full(reader: PagesReader) -> None:
    device = PagesDevice()
    long = NewsCard.model_validate(device.cards[0].model_dump() | {"title": "w" * 1_000, "abstract": "a" * 5_000})
    device.cards = (long, *device.cards[1:])
    app = FastAPI(openapi_url=None)
    app.include_router(router(device, page_key()))  # type: ignore[arg-type]
    assert "w" * 1_000 in TestClient(app, base_url=HOME).get(f"/story/{long.id}").text


def test_lists_announce_new_stories_but_change_only_on_request() -> None:
    reader = PagesReader()
    for path, name in (
        ("/fresh", "fresh"),
        ("/explore", "explore"),
        ("/explore/science", "explore"),
        ("/search?q=the", "search/the"),
    ):
        reader.device.offered = Offer(new=7)
        assert "7 new stories" in reader.get(path)
        assert reader.post("/list/refresh", name=name, back=path) == path
        assert "new stories" not in reader.get(path)
        assert "Updated " in reader.get(path)
    assert reader.client.post("/list/refresh", data={"name": "other"}, headers=OURS).status_code == 422


def test_fresh_list_has_linked_pages_below_80_kb() -> None:
    reader = PagesReader()
    first = reader.device.cards
    reader.device.cards = tuple(
        card.model_copy(update={"id": f"{card.id}-{turn}", "story": None}) for turn in range(3) for card in first
    )
    pages = [reader.get(f"/fresh?page={number}") for number in (1, 2, 3, 4)]
    shown = [re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text) for text in pages]
    assert [len(one) for one in shown[:3]] == [30, 30, 30]
    assert sorted(one for each in shown for one in each) == sorted(card.id for card in reader.device.cards)
    assert all(len(text.encode()) < 80_000 for text in pages)
    assert 'href="/fresh?page=2" data-more>More' in pages[0]
    assert 'href="/fresh">Newer' in pages[1]
    assert "data-more>" not in pages[3]
    assert reader.client.get("/fresh?page=5").status_code == 422


def test_stories_of_a_page_can_be_marked_as_read_and_unmarked() -> None:
    reader = PagesReader()
    ids = [card.id for card in reader.device.cards[:3]]
    shown = reader.post("/read", news=" ".join(ids), back="/fresh?page=2")
    assert shown == "/fresh?page=2&marked=1"
    text = reader.get(shown)
    assert "3 stories marked as read." in text
    assert 'name="back" value="/fresh?page=2"' in text
    assert reader.post("/read/undo", batch="1", back="/fresh?page=2") == "/fresh?page=2"
    assert "marked as read." not in reader.get(shown)
    assert reader.client.post("/read", data={"news": "no id!"}, headers=OURS).status_code == 422


def test_story_can_be_marked_as_read_without_being_opened() -> None:
    reader = PagesReader()
    reader.post("/story/newsroom:0003/react", kind="read", back="/")
    assert reader.device.marks == {"newsroom:0003"}
    assert not reader.device.opened
    reader.post("/story/newsroom:0003/react", kind="read", back="/")
    assert not reader.device.marks


@pytest.mark.parametrize("path", ["/popular", "/following", "/saved"])
def test_each_list_has_linked_pages_of_thirty_below_80_kb(path: str) -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    cards = tuple(first.model_copy(update={"id": f"c-{number:03}", "section": "science"}) for number in range(70))
    reader.device.cards = cards
    reader.device.reading.popular = lambda: cards
    reader.device.reacted = {card.id: {"save"} for card in cards}
    pages = [reader.get(f"{path}?page={number}") for number in (1, 2, 3)]
    shown = [re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text) for text in pages]
    assert [len(each) for each in shown] == [30, 30, 10]
    assert [news_id for each in shown for news_id in each] == [card.id for card in cards]
    assert all(len(text.encode()) < 80_000 for text in pages)
    assert [f'href="{path}?page={2 + at}" data-more>More' in text for at, text in enumerate(pages)] == [1, 1, 0]
    assert [f'class="button newer" href="{path}"' in text for text in pages] == [False, True, False]
    assert f'name="back" value="{path}?page=2#n-c-030"' in pages[1], "what is said of a card leads back to its page"
    assert reader.client.get(f"{path}?page=0").status_code == 422


def test_you_page_shows_each_interest_once_and_the_settings_of_own_feeds() -> None:
    reader = PagesReader()
    reader.device.names = {2: "Ports and ships", 3: "old trams"}
    text = reader.get("/you")
    assert ">Ports and ships, Old trams<" in text
    assert ">Balanced<" in text or ">Custom<" in text
    reader.device.own_feeds = True
    text = reader.get("/you")
    assert ">Hide, export or erase<" in text
    assert ">Balanced<" not in text
    assert "Privacy budget" not in reader.get("/settings"), "nothing was spent"
    assert "Your feeds stay." in reader.get("/settings")


def test_story_without_a_reason_in_words_shows_no_why(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PagesReader()
    assert '<details class="why"' in reader.get("/")
    monkeypatch.setattr(reader.device, "_reason", lambda *_: Reason("editors", ""))
    for path in ("/", "/story/newsroom:0003?feed=feed-1"):
        html = reader.get(path)
        assert '<details class="why"' not in html
        assert "Why this" not in html

"""Stories and cards: how they are set, opened and reacted to."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.feed.item import Article, Ending, text_of
from device_app.feed.offer import Offer
from device_app.pages.feed_pages import with_shapes
from device_app.pages.routes import router
from device_app.wire.news import NewsCard
from tests.doubles.pages_device import PagesDevice
from tests.doubles.pages_reader import HOME, OURS, PagesReader


def test_a_link_out_takes_no_referrer_and_no_opener_along(reader: PagesReader) -> None:
    links = re.findall(r'<a [^>]*href="https?://[^>]*>', reader.get("/story/newsroom:0003"))
    assert len(links) == 1
    assert 'rel="noreferrer noopener external"' in links[0]


def test_opening_a_story_records_the_click_with_its_feed(reader: PagesReader) -> None:
    reader.get("/story/newsroom:0005?feed=feed-1")
    assert reader.device.opened[-1] == ("newsroom:0005", "feed-1")


def test_a_forged_link_to_a_story_records_nothing(reader: PagesReader) -> None:
    before = list(reader.device.opened)
    assert reader.client.get("/story/newsroom:0005", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert reader.client.head("/story/newsroom:0005").status_code == 405
    assert reader.device.opened == before


def test_a_story_that_is_not_here_says_so(reader: PagesReader) -> None:
    answer = reader.client.get("/story/nothing")
    assert answer.status_code == 404
    assert "nothing" in answer.text
    assert "Back to your feed" in answer.text


def test_a_story_without_its_text_says_why_it_is_not_fetched_alone(reader: PagesReader) -> None:
    assert "would tell it what you read" in reader.get("/story/newsroom:0014")


@pytest.mark.parametrize(
    ("ending", "own_feeds", "said"),
    [
        ("teaser", True, "The feed gives no more of this story."),
        ("teaser", False, "The newsroom has no more of this story."),
        ("cut", False, "The text is cut here: it is too long to come whole"),
    ],
)
def test_a_text_that_stops_before_its_story_says_so_and_leads_to_the_rest(
    ending: Ending, own_feeds: bool, said: str
) -> None:
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


def test_a_topic_that_is_called_like_its_section_is_not_named_twice() -> None:
    reader = PagesReader()
    card = reader.device.cards[0].model_copy(update={"topic": reader.device.cards[0].section})
    reader.device.cards = (card, *reader.device.cards[1:])
    story = reader.get(f"/story/{card.id}")
    assert "/topic/" not in story.partition("</article>")[0]
    assert story.count('name="kind" value="topic"') == 0
    assert story.count('name="kind" value="section"') == 1
    reader.device.stance("topic", card.topic, "follow")
    assert reader.get(f"/story/{card.id}").count('name="kind" value="topic"') == 1, "what stands can be taken back"


@pytest.mark.parametrize(
    ("body", "paragraphs", "ending"),
    [
        (None, (), "absent"),
        ("", (), "teaser"),
        ("One.\n\nTwo.", ("One.", "Two."), "whole"),
        ("One.\n\n[…]", ("One.",), "cut"),
        ("One and [...]", ("One and [...]",), "teaser"),
        ("One and [ … ]\n\nIt appeared first there.", ("One and [ … ]", "It appeared first there."), "teaser"),
        ("One [...] left out.\n\nTwo.\n\nThree.", ("One [...] left out.", "Two.", "Three."), "whole"),
    ],
)
def test_a_text_tells_how_it_ends(body: str | None, paragraphs: tuple[str, ...], ending: Ending) -> None:
    assert text_of(body) == (paragraphs, ending)


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
def test_an_abstract_that_its_text_begins_with_is_not_said_twice(abstract: str, shown: str) -> None:
    card = PagesDevice().cards[0].model_copy(update={"abstract": abstract})
    assert Article(card, ("Eggs were laid.", "By whom is not known."), None, ()).standfirst == shown


def test_reader_text_is_escaped_and_marked_for_its_own_direction(reader: PagesReader) -> None:
    text = reader.get('/search?q=<b>"x"</b>')
    assert "<b>" not in text
    assert 'dir="auto"' in reader.get("/")
    assert "الميناء" in PagesReader("overfull").get("/")


def test_a_reaction_goes_back_to_its_card_and_a_script_gets_no_page(reader: PagesReader) -> None:
    assert reader.post("/story/newsroom:0002/react", kind="save", back="/#n-newsroom:0002") == "/#n-newsroom:0002"
    assert reader.device.reacted["newsroom:0002"] == {"save"}
    quick = reader.client.post(
        "/story/newsroom:0002/react", data={"kind": "save"}, headers=OURS | {"accept": "application/json"}
    )
    assert (quick.status_code, quick.content) == (204, b"")
    assert reader.device.reacted["newsroom:0002"] == set()


def test_popular_now_says_when_it_was_counted_or_that_it_was_not() -> None:
    assert "Devices counted it together" in PagesReader().get("/popular")
    assert "Nothing was counted yet" in PagesReader("empty").get("/popular")


def test_a_saved_story_waits_on_its_own_page_and_is_shown_as_saved_everywhere() -> None:
    reader = PagesReader()
    assert "Nothing is saved yet" in reader.get("/saved")
    reader.post("/story/newsroom:0002/react", kind="save")
    assert "1 story, last saved first" in reader.get("/saved")
    title = reader.device.card("newsroom:0002").title
    for path in ("/saved", "/fresh", "/explore/" + reader.device.card("newsroom:0002").section):
        card = reader.get(path).partition('id="n-newsroom:0002"')[2].partition("</article>")[0]
        assert title in card
        assert 'value="save" aria-pressed="true"' in card, path


def test_offline_the_last_feed_is_shown_and_dated() -> None:
    text = PagesReader("offline").get("/")
    assert "This is the feed of 07:42" in text
    assert "Offline: the newsroom does not answer" in text
    assert "Dredging" in text
    assert PagesReader("offline").post("/feed/refresh") == "/"
    assert PagesReader().post("/feed/refresh") == "/?said=refreshed"


def test_pictures_are_served_as_svg_and_kept(reader: PagesReader) -> None:
    picture = reader.client.get("/art/newsroom:0001.svg?section=sea")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert picture.text.startswith("<svg")
    assert reader.client.get("/art/bad%20id.svg?section=sea").status_code == 404


@pytest.mark.parametrize("count", range(31))
def test_the_cards_of_a_feed_leave_no_hole_in_the_last_row(count: int) -> None:
    items = PagesDevice().feed().items[:count]
    sixths = sum({"wide": 6, "half": 3}.get(shape, 2) for _, shape in with_shapes(items))
    assert sixths % 6 == 0 or count == 0


def test_a_card_of_the_longest_fields_is_set_whole(reader: PagesReader) -> None:
    device = PagesDevice()
    long = NewsCard.model_validate(device.cards[0].model_dump() | {"title": "w" * 1_000, "abstract": "a" * 5_000})
    device.cards = (long, *device.cards[1:])
    app = FastAPI(openapi_url=None)
    app.include_router(router(device))  # type: ignore[arg-type]
    assert "w" * 1_000 in TestClient(app, base_url=HOME).get(f"/story/{long.id}").text


def test_every_list_offers_what_is_new_and_is_renewed_only_when_asked() -> None:
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
        assert "As of " in reader.get(path)
    assert reader.client.post("/list/refresh", data={"name": "other"}, headers=OURS).status_code == 422


def test_fresh_has_pages_below_80_kb_that_lead_to_each_other() -> None:
    reader = PagesReader()
    first = reader.device.cards
    reader.device.cards = tuple(
        card.model_copy(update={"id": f"{card.id}-{turn}"}) for turn in range(3) for card in first
    )
    pages = [reader.get(f"/fresh?page={number}") for number in (1, 2, 3)]
    shown = [re.findall(r'<article class="card[^>]*id="n-([^"]+)"', text) for text in pages]
    assert [len(one) for one in shown[:2]] == [40, 40]
    assert sorted(one for each in shown for one in each) == sorted(card.id for card in reader.device.cards)
    assert all(len(text.encode()) < 80_000 for text in pages)
    assert 'href="/fresh?page=2" data-more>More' in pages[0]
    assert 'href="/fresh">Newer' in pages[1]
    assert "data-more>" not in pages[2]
    assert reader.client.get("/fresh?page=4").status_code == 422


@pytest.mark.parametrize("path", ["/popular", "/following", "/saved"])
def test_a_list_has_pages_of_thirty_below_80_kb_that_lead_to_each_other(path: str) -> None:
    reader = PagesReader()
    first = reader.device.cards[0]
    cards = tuple(first.model_copy(update={"id": f"c-{number:03}", "section": "science"}) for number in range(70))
    reader.device.cards = cards
    reader.device.popular = lambda: cards  # type: ignore[method-assign]
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


def test_you_names_each_interest_once_and_what_the_settings_hold_for_ones_own_feeds() -> None:
    reader = PagesReader()
    reader.device.names = {2: "Ports and ships", 3: "old trams"}
    text = reader.get("/you")
    assert ">Ports and ships, Old trams<" in text
    assert ">Balanced<" in text or ">Custom<" in text
    reader.device.own_feeds = True
    text = reader.get("/you")
    assert ">What you hide, take with you or erase<" in text
    assert ">Balanced<" not in text
    assert "buys no new budget" not in reader.get("/settings"), "nothing was spent"
    assert "Your feeds stay." in reader.get("/settings")

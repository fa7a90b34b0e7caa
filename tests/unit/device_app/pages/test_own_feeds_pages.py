"""The pages of the reader's own feeds, over a real store. Oracle: the stories that the test stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from device_app.composition import build_device
from device_app.feed.own_feeds import PAGE
from device_app.pages.local_origin import LocalOriginMiddleware
from device_app.pages.routes import router
from device_app.settings import DeviceSettings
from device_app.sync.own_feeds import KnownFeed
from protocol.news import NewsCard
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, OURS, PagesReader, enter, page_key

NOW = datetime.now(UTC)
ARTICLE = re.compile(r'<article class="card[^>]*id="n-([^"]+)"')


def known_feeds() -> tuple[KnownFeed, ...]:
    """Two feeds in a folder; a third publisher is not listed."""
    return (
        KnownFeed("Wire", "The wire", "World", state="Read 5 minutes ago."),
        KnownFeed("Silent", "Silent", "World", state="None of its 10 entries could be used.", tone="bad"),
    )


class Reader:
    """A browser without scripts in front of a device with 40 stories of Wire and two of Essays."""

    def __init__(self, folder: Path) -> None:
        def nobody(request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("nobody is there", request=request)

        settings = DeviceSettings(data_dir=folder, own_feeds=True, port=8401)
        self.device = build_device(settings, transport=httpx.MockTransport(nobody))
        self.device.feeds.known = known_feeds
        self.put([card(f"w{at:02}", "Wire", minutes=at) for at in range(40)])
        self.put([card(f"e{at}", "Essays", minutes=60 * 24 * 90 * (at + 1)) for at in range(2)])
        app = FastAPI(openapi_url=None)
        app.routes.extend(router(self.device, page_key()).routes)
        app.add_middleware(LocalOriginMiddleware, port=8401, key=page_key())
        self.client = TestClient(app, base_url=HOME, headers=FOLLOWS_A_LINK)
        enter(self.client, page_key())

    def put(self, cards: list[NewsCard]) -> None:
        self.device.parts.stores.news.put_cards(cards, NOW)

    def get(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def post(self, path: str, **form: str) -> str:
        answer = self.client.post(path, data=form, headers=OURS, follow_redirects=False)
        assert answer.status_code == 303, answer.text[:300]
        return answer.headers["location"]

    def unread(self) -> dict[str, int]:
        return {name: count.unread for name, count in self.device.parts.stores.articles.counts().items()}


def card(news_id: str, publisher: str, minutes: float) -> NewsCard:
    return NewsCard(
        id=news_id, title=f"Title of {news_id}", abstract="", url="", publisher=publisher, section="sea", topic="ports",
        published_at=NOW - timedelta(minutes=minutes), weight=0.5,
    )  # fmt: skip


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.device.close()


def hidden_field(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None, name
    return found[1]


def test_feeds_page_shows_folders_feeds_and_unread_counts(reader: Reader) -> None:
    reader.device.library.mark(["w00", "e0"])
    text = reader.get("/feeds")
    assert "40 unread of 42 stories" in text
    lines = re.findall(
        r'href="/feeds/stories\?(\w+)=([^"]+)" dir="auto">([^<]+)</a> (?:<span class="unread">(\d+))?', text
    )
    assert lines == [
        ("feed", "Essays", "Essays", "1"),
        ("folder", "World", "World", "39"),
        ("feed", "Wire", "The wire", "39"),
        ("feed", "Silent", "Silent", ""),
    ]
    assert "None of its 10 entries could be used." in text
    assert "Read 5 minutes ago." not in text, "what is as it should be takes no room"


def test_pages_of_a_feed_list_every_story_by_time(reader: Reader) -> None:
    first = reader.get("/feeds/stories?feed=Wire")
    (further,) = re.findall(r'href="(/feeds/stories[^"]+)" data-more', first)
    second = reader.get(further.replace("&amp;", "&"))
    assert ARTICLE.findall(first) == [f"w{at:02}" for at in range(PAGE)]
    assert ARTICLE.findall(second) == [f"w{at:02}" for at in range(PAGE, 40)]
    assert "data-more>" not in second
    assert ARTICLE.findall(reader.get("/feeds/stories?feed=Essays")) == ["e0", "e1"], "old is not gone"
    assert ARTICLE.findall(reader.get("/feeds/stories"))[0] == "w00"


def test_new_stories_do_not_shift_the_later_pages_of_a_list(reader: Reader) -> None:
    first = reader.get("/feeds/stories?feed=Wire")
    (further,) = re.findall(r'href="(/feeds/stories[^"]+)" data-more', first)
    reader.put([card(f"x{at}", "Wire", minutes=-at) for at in range(5)])
    assert ARTICLE.findall(reader.get(further.replace("&amp;", "&"))) == [f"w{at:02}" for at in range(PAGE, 40)]


def test_marking_a_feed_read_spares_newer_stories_and_can_be_undone(reader: Reader) -> None:
    upto = hidden_field(reader.get("/feeds/stories?feed=Wire"), "upto")
    reader.put([card("late", "Wire", minutes=-1)])
    shown = reader.post("/feeds/read", feed="Wire", upto=upto, back="/feeds/stories?feed=Wire")
    assert reader.unread() == {"Wire": 1, "Essays": 2}
    assert not reader.device.library.history().total, "marks are no clicks"
    text = reader.get(shown)
    assert "40 stories marked as read." in text
    reader.post("/read/undo", batch=hidden_field(text, "batch"), back="/feeds")
    assert reader.unread() == {"Wire": 41, "Essays": 2}


def test_marking_above_or_below_leaves_the_story_itself(reader: Reader) -> None:
    text = reader.get("/feeds/stories?feed=Wire")
    place = re.search(r'name="above" value="([^"]+w10)"', text)
    assert place is not None
    reader.post("/feeds/read", feed="Wire", upto=hidden_field(text, "upto"), above=place[1])
    assert reader.unread()["Wire"] == 30
    reader.post("/feeds/read", feed="Wire", below=place[1])
    assert reader.unread()["Wire"] == 1
    assert "w10" not in reader.device.library.read_news()


def test_list_of_unread_stories_keeps_those_read_while_it_is_open(reader: Reader) -> None:
    reader.device.library.mark(["w00", "w01"])
    reader.post("/feeds/only-unread", show="unread", back="/feeds/stories?feed=Wire")
    answer = reader.client.get("/feeds/stories?feed=Wire")
    address = str(answer.url).removeprefix(HOME)
    assert "since=" in address
    assert ARTICLE.findall(answer.text)[0] == "w02"
    reader.device.library.mark(["w02"])
    assert ARTICLE.findall(reader.get(address))[0] == "w02", "Back shows the same list"
    assert ARTICLE.findall(reader.get("/feeds/stories?feed=Wire"))[0] == "w03"
    assert "feed=Wire" in reader.get("/feeds")
    reader.device.library.mark([f"w{at:02}" for at in range(40)])
    assert "feed=Wire" not in reader.get("/feeds")


def test_story_page_links_back_to_its_list(reader: Reader) -> None:
    text = reader.get("/feeds/stories?feed=Essays")
    (link,) = re.findall(r'href="(/story/e1[^"]+)"', text)
    story = reader.get(link.replace("&amp;", "&"))
    assert 'href="/feeds/stories?feed=Essays#n-e1" data-back>Back to the list' in story
    assert reader.unread()["Essays"] == 1
    assert reader.device.library.history().total == 1


def test_pages_for_feeds_exist_only_on_a_device_with_own_feeds() -> None:
    other = PagesReader()
    assert other.client.get("/feeds").status_code == 404
    assert other.client.get("/feeds/stories?feed=Lantern").status_code == 404
    assert 'href="/feeds"' not in other.get("/fresh")
    other.device.own_feeds = True
    assert 'href="/feeds"' in other.get("/fresh")


def test_followed_feed_without_stories_has_a_page(reader: Reader) -> None:
    assert "Silent" in reader.get("/feeds/stories?feed=Silent")


def test_unknown_feed_is_not_found(reader: Reader) -> None:
    assert reader.client.get("/feeds/stories?feed=Nobody").status_code == 404

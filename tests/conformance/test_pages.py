"""From the same store, the browser's device makes the same HTML as the Python device, tag by tag."""

from __future__ import annotations

import base64
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from device_app.composition import build_device
from device_app.device import Device
from device_app.feed.item import Feed, FeedItem, PageSlot, Reason
from device_app.pages import renderer
from device_app.pages.renderer import WORDS
from device_app.pages.routes import router
from device_app.pages.story_links import StoryLinks
from device_app.settings import DeviceSettings
from device_app.store.byte_log import Departure
from device_app.store.feeds import StoredFeed
from device_app.store.ledger_entries import LedgerEntry
from device_app.store.participations import Participation
from device_app.store.preferences import CHOSEN_SECTIONS
from device_app.view_models.latency import LatencyView
from protocol.news import NewsCard
from protocol.pictures import Pictured, PictureList, PictureShard, pack_pictures
from protocol.releases import BlobRef
from tests.conformance.node_end import WEB, ask_node
from tests.doubles.pages_reader import page_key
from tests.doubles.picture_files import bare_picture

FEED = TypeAdapter(Feed)
Pages = dict[str, tuple[tuple[int, str], dict[str, Any]]]
"""By address: status and HTML of the Python device, and what the browser's answers."""
PERSONAL: tuple[PageSlot, ...] = ("for_you",) * 11
SLOTS: tuple[PageSlot, ...] = ("lead", *PERSONAL, "fresh", "developing", "developing", "explore", "following", "more")
ADDRESSES = (
    "/",
    "/page/feed-1",
    "/story/news:0?feed=feed-2",
    "/story/news:3",
    "/story/news:5?feed=feed-2",
    "/story/not-here",
    "/saved",
    "/rules",
    "/rules?replaces=1&kind=regex&field=title&pattern=a%2Bb",
    "/rules?undo=yes&kind=phrase&pattern=harbour%20%26%20lights",
    "/search?q=harbour&hidden=show",
    "/saved?marked=1&said=settings",
    "/fresh?marked=77",
    "/interests/history",
    "/interests/history?q=harbour",
    "/training",
    "/search",
    "/search?q=harbour",
    "/search?q=harbour+lig&page=2",
    "/search?q=nothinghasthis",
    "/searches",
    "/story/news:3?found=harbour+lights",
    "/following",
    "/interests",
    "/popular",
    "/fresh",
    "/explore",
    "/explore/sport",
    "/topic/sailing%20boats",
    "/latency",
    "/you",
    "/privacy/polls/1/61",
    "/privacy/polls/1/61?page=2",
    "/privacy/polls/1/999",
    "/nowhere",
)
OPENED_FROM = {
    "/story/news:4?list=%2Ftopic%2Fsailing%2520boats": ("news:1", "news:10"),
    "/story/news:9?list=%2Fexplore%2Fsport%3Fpage%3D1": ("news:5", "news:13"),
    "/story/news:1?list=%2Fexplore%2Fsport": (None, "news:5"),
    "/story/news:2?list=%2Fexplore%2Fsport": (None, None),
    "/story/news:3?list=%2F%2Fevil.example": (None, None),
}
"""Stories opened from lists that were shown before, and those beside them: a rule hides news:7."""

SEARCHES = "harbour", "nothing has these  words"
TIMED = 25


class Tags(HTMLParser):
    """A document as a list of tags with attributes, and texts without surrounding white space."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[Any] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if words := " ".join(data.split()):
            self.parts.append(words)


def parts_of(html: str) -> list[Any]:
    """Return the parts of the body; the head names files that each device's server has of its own."""
    read = Tags()
    # a link's token, which the browser's device has no need of, since its page asks for each click itself
    linked = re.sub(r"(?:\?|&amp;)token=[\w-]{22}(?=\")", "", html)
    # and the version of the drawn pictures, which come with the browser's device
    read.feed(re.sub(r"/static/[0-9a-f]{12}/art/", "/static/art/", linked))
    read.close()
    return read.parts[read.parts.index(("body", {})) :]


def as_linked(address: str) -> str:
    """Return an address as these pages link it; the browser's device is told that its own links were followed."""
    place, _, asked = address.partition("?")
    news_id, values = place.removeprefix("/story/"), dict(parse_qsl(asked))
    link = StoryLinks(page_key()).link(news_id, values.get("feed"), values.get("found"), values.get("list"))
    return link if place.startswith("/story/") else address


def said_by_the_other(html: str) -> str:
    """Return a page of the browser's device with the Python device's text about where everything is kept."""
    reported = tomllib.loads((WEB / "device" / "pages" / "kept.toml").read_text(encoding="utf-8"))
    theirs = reported["kept"] | {"lasts": reported["lasts"]["unsaid"]}
    mine = WORDS.table("kept")
    assert theirs.keys() == mine.keys()
    for name, sentence in mine.items():
        assert sentence not in html, "it is said of a machine"
        html = html.replace(theirs[name], sentence)
    return html


def card(at: int, now: datetime) -> NewsCard:
    """Return a card with every kind of text that a template has to escape or shorten."""
    return NewsCard(
        id=f"news:{at}",
        title=f'It\'s <b>{at}</b> & "more": ' + ("harbour lights " * (at % 9)),
        abstract="A word upon a word. " * (at * 3) if at % 4 else "",
        url="https://example.org/a?b=c&d='e'" if at % 3 else "",
        publisher="Søren's Post" if at % 2 else "",
        section=("food-and-drink", "sport", "science", "a section/of its own")[at % 4],
        topic=("sport", "sailing boats", "")[at % 3],
        story="thread" if at in (13, 14) else None,
        published_at=now - timedelta(minutes=7 * at, seconds=13, hours=40 if at == 6 else 0),
        weight=at % 5 / 4,
    )


def standing_still(moment: datetime) -> type[datetime]:
    """Return the class with a clock fixed at the moment that the browser's device is given; pages show ages."""

    class FrozenDatetime(datetime):
        """A datetime whose now() is always the same."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            """Return the fixed moment."""
            return cls.fromtimestamp(moment.timestamp(), tz)

    return FrozenDatetime


def feed_of(name: str, cards: list[NewsCard], at: datetime) -> Feed:
    items = tuple(
        FeedItem(one, place, slot, Reason("interest", f"Because of “{one.section}”.", "Sport", (cards[2],)), 0.5)
        for place, (one, slot) in enumerate(zip(cards, SLOTS, strict=False))
    )
    return Feed(name, at, "r3", items, "personal", None, {"rank": 1.25, "store": 3.5}, {}, 400, 3, 6.0)


@contextmanager
def python_device(folder: Path, now: datetime) -> Iterator[Device]:
    """A device whose backend doesn't answer, over a store with two feeds and some reading."""

    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there", request=request)

    settings = DeviceSettings(data_dir=folder, backend_url="http://127.0.0.1:9")
    device = build_device(settings, transport=httpx.MockTransport(nobody), clock=lambda: now)
    stores, cards = device.parts.stores, [card(at, now) for at in range(24)]
    try:
        stores.news.put_cards(cards, now - timedelta(hours=1))
        stores.news.put_bodies(
            {"news:0": "One.\n\nTwo <i>.\n\n[…]", "news:3": "Whole.\n\nText.", "news:5": "It goes on [...]"}
        )
        ids = [one.id for one in cards]
        stores.news.put_vectors(ids[:-1], np.eye(len(ids) - 1, 32, dtype=np.float32), "e")
        stores.default_list.keep(etag=None, release="r3", encoder="e", news_ids=ids, at=now)
        for name, ago in (("feed-1", 2), ("feed-2", 1)):
            feed = feed_of(name, cards, now - timedelta(hours=ago))
            shown = [item.card.id for item in feed.items]
            stores.impressions.serve(name, shown, feed.made_at)
            stores.feeds.save(StoredFeed(name, feed.made_at, FEED.dump_json(feed).decode()))
        pictured = [Pictured(f"news:{at}", 0, bare_picture(bytes(2 * at))) for at in (0, 3, 5, 12)]
        blob = pack_pictures(pictured)
        ref = BlobRef(sha256=sha256(blob).hexdigest(), size_bytes=len(blob))
        listing = PictureList(shards=(PictureShard(count=len(pictured), pictures=ref),))
        stores.pictures.put(listing.shards[0], pictured)
        stores.pictures.use(listing, listing.model_dump_json().encode(), now)
        stores.clicks.add("news:1", "feed-1", now - timedelta(minutes=90))
        stores.clicks.add("news:2", "feed-2", now - timedelta(minutes=30))
        stores.clicks.add("gone", None, now - timedelta(days=3))
        stores.feedback.react("news:4", "less", now - timedelta(minutes=20))
        stores.feedback.react("news:3", "like", now - timedelta(minutes=19))
        stores.feedback.react("news:7", "save", now - timedelta(minutes=18))
        stores.preferences.set(CHOSEN_SECTIONS, ["sport"])
        for number, state in enumerate(("applied", "summing", "declined"), 1):
            at = now - timedelta(hours=number)
            took = Participation(
                f"round-{number}", "private_counts/secure/huber", "count", "r3", state, at, at, "Why.", 1_234
            )
            stores.participations.record(replace(took, epsilon=5.3 if state == "applied" else 0.0))
        prices = {"rho": 0.5, "rho_alone": 5.0, "epsilon_alone": 21.1}
        stores.ledger_entries.append(
            LedgerEntry(now - timedelta(hours=1), "counts", "secure_sum", prices, 5.3, 1e-6, "0" * 64, "round-1")
        )
        for number in range(61):
            at = now - timedelta(minutes=number)
            sent = Departure(at, "sync", "Asks what is new.", "GET", "http://127.0.0.1:9/v1/release", b"GET /x", b"")
            asked = stores.byte_log.record(sent)
            if number % 5:
                stores.byte_log.answered(asked, status=200, head=b"HTTP/1.1 200 OK", response_bytes=number, ms=3.5)
        measured = {"store": 1.5, "cluster": 0.25, "network": 40.0, "rank": 3.75, "a_stage_to_come": 0.125}
        for number in range(TIMED):
            stages = {name: ms * (1 + number % 7) for name, ms in measured.items() if number % 3 or name != "network"}
            inside = {"search": 5.5, "decode": 0.5} if "network" in stages else {}
            stores.timings.record("feed", stages, inside, now - timedelta(minutes=number))
        ids = [one.id for one in cards[::2]]
        stores.preferences.set("list/following", {"made_at": now.isoformat(), "ids": ids, "before": None})
        yield device
    finally:
        device.close()


@pytest.fixture(scope="module")
def drawn_pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Pages]:
    """Return the browser device's inputs, and by address status and HTML of both devices."""
    folder, now = tmp_path_factory.mktemp("pages"), datetime.now(UTC)
    follows = {"kind": "topic", "name": "sport", "stance": "follow", "back": "/"}
    said = [
        {"address": "/stance", "form": list(follows.items())},
        {"address": "/read", "form": [["news", "news:1 news:8 news:9"], ["back", "/saved"]]},
        {"address": "/rules", "form": [["field", "title"], ["kind", "regex"], ["pattern", "s <b>1?7"]]},
        {"address": "/rules", "form": [["field", "publisher"], ["kind", "word"], ["pattern", "tabloid"]]},
        {"address": "/story/news:2/react", "form": [["kind", "read"], ["back", "/"]]},
    ]
    kept = [{"address": "/searches", "form": [["words", words], ["back", "/searches"]]} for words in SEARCHES]
    addresses = (*ADDRESSES, *OPENED_FROM, "/settings", "/latency.json")
    asked = [*said, *kept, *({"address": address, "form": None} for address in addresses)]
    with python_device(folder / "python", now) as device:
        device.parts.stores.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        database = device.parts.stores.database.path
        file = base64.b64encode(database.read_bytes()).decode()
        given = {"file": file, "now": now.timestamp() * 1000, "asked": asked}
        (found,) = ask_node([("pages_answers", given)])
        device.interests.stance("topic", "sport", "follow")
        device.muting.add("title", "regex", "s <b>1?7")
        device.muting.add("publisher", "word", "tabloid")
        device.library.mark(["news:1", "news:8", "news:9"])
        device.library.mark(["news:2"], read=False)
        for words in SEARCHES:
            device.library.save_search(words)
        app = FastAPI()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(renderer, "datetime", standing_still(now))
            app.include_router(router(device, page_key()))
            client = TestClient(app, base_url="http://127.0.0.1")
            mine = [client.get(as_linked(address), headers={"sec-fetch-site": "same-origin"}) for address in addresses]
        theirs = dict(zip(addresses, found[len(said) + len(kept) :], strict=True))
    return given, {
        address: ((one.status_code, one.text), theirs[address]) for address, one in zip(addresses, mine, strict=True)
    }


@pytest.mark.parametrize("address", [*ADDRESSES, *OPENED_FROM])
def test_both_devices_draw_the_same_page(drawn_pages: tuple[dict[str, Any], Pages], address: str) -> None:
    (status, html), theirs = drawn_pages[1][address]
    assert theirs["kind"] == "page", theirs
    assert theirs["status"] == status
    expected, found = parts_of(html), parts_of(said_by_the_other(theirs["html"]))
    assert len(expected) > 60
    for place, (one, other) in enumerate(zip(expected, found, strict=False)):
        assert one == other, f"after {expected[max(0, place - 6) : place]}"
    assert len(found) == len(expected)


@pytest.mark.parametrize("address", OPENED_FROM)
def test_story_links_to_the_previous_and_next_one_in_the_list(
    drawn_pages: tuple[dict[str, Any], Pages], address: str
) -> None:
    (_, html), theirs = drawn_pages[1][address]
    for page in (html, unescape(theirs["html"])):
        links = dict(re.findall(r'class="(previous|next)" href="/story/([^"?]+)', page))
        assert tuple(links.get(kind) and unquote(links[kind]) for kind in ("previous", "next")) == OPENED_FROM[address]
        assert 'href="//' not in page, "a list elsewhere isn't linked"


@pytest.mark.parametrize("address", ["/", "/story/news:3"])
def test_stories_show_their_publishers_picture_or_a_drawn_one(
    drawn_pages: tuple[dict[str, Any], Pages], address: str
) -> None:
    (_, html), theirs = drawn_pages[1][address]
    for page in (html, unescape(theirs["html"])):
        assert "/pictures/news%3A3.webp?of=" in page
        assert "/pictures/news%3A4.webp" not in page
        assert "/art/" in page or address.startswith("/story")
    assert ("Picture: " in html) == address.startswith("/story")


def test_each_device_states_its_own_retention(
    drawn_pages: tuple[dict[str, Any], Pages],
) -> None:
    (_, html), theirs = drawn_pages[1]["/settings"]
    for sentence in (WORDS.table("kept")["lasts"], WORDS.table("kept")["clicks"]):
        assert sentence in html
        assert sentence not in theirs["html"]
        assert sentence in said_by_the_other(theirs["html"])


def test_browser_settings_omit_modes_that_only_python_has(drawn_pages: tuple[dict[str, Any], Pages]) -> None:
    (_, html), theirs = drawn_pages[1]["/settings"]
    assert "For comparison and reproduction" in html
    assert "For comparison and reproduction" not in theirs["html"]
    assert 'name="epsilon_per_report"' in theirs["html"]
    assert 'name="searches_in_reports"' in theirs["html"]


def test_both_devices_export_the_same_latency_figures(drawn_pages: tuple[dict[str, Any], Pages]) -> None:
    (_, expected), theirs = drawn_pages[1]["/latency.json"]
    assert theirs["kind"] == "file"
    found = TypeAdapter(LatencyView).validate_python(theirs["content"])
    assert found == TypeAdapter(LatencyView).validate_json(expected)
    assert found.count == TIMED
    assert {stage.place for stage in found.stages} == {"device", "network", "server"}


def test_browser_pages_have_no_dead_links(drawn_pages: tuple[dict[str, Any], Pages]) -> None:
    given, answers = drawn_pages
    links = {
        part[1]["href"].partition("#")[0]
        for _, theirs in answers.values()
        if theirs["kind"] == "page"
        for part in parts_of(theirs["html"])
        if isinstance(part, tuple) and part[0] == "a" and part[1]["href"].startswith("/")
    }
    assert {"/search", "/following", "/interests", "/privacy", "/you"} <= links
    asked = [{"address": address, "form": None} for address in sorted(links)]
    (found,) = ask_node([("pages_answers", given | {"asked": asked})])
    lost = [one["address"] for one, answer in zip(asked, found, strict=True) if answer.get("status", 200) != 200]
    assert not lost

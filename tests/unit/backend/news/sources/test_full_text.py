"""Whole texts of feeds with teasers. Oracle: pages and feeds written by hand, and the requests to their server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from backend.db.engine import migrate, open_engine
from backend.news.feed_refresh import follow
from backend.news.followed_feeds import FollowedFeeds
from backend.news.pool import NewsPool
from backend.news.sources import full_text
from backend.news.sources.full_text import NoFullText, extract

URL = "https://sound.example/rss"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PARTS = [f"Paragraph {n} of the story says what happened to the ferry that day, at some length." for n in range(6)]
PAGE = (
    "<html><head><title>Late</title></head><body><nav><ul><li><a href='/'>Home</a></li></ul></nav><article>"
    "<h1>Ferry c</h1>"
    + "".join(f"<p>{part}</p>" for part in PARTS)
    + "<script>alert(1)</script></article><footer>All rights reserved.</footer></body></html>"
)


def feed(*names: str, teaser: str = "Two ran late.") -> str:
    items = "".join(
        f"<item><title>Ferry {name}</title><link>https://sound.example/{name}</link><description>{teaser}</description></item>"
        for name in names
    )
    return f"<rss version='2.0'><channel><title>The Sound</title><link>https://sound.example/</link>{items}</channel></rss>"


class Site:
    """A server of a feed and its pages, with its requests."""

    def __init__(self) -> None:
        self.feed, self.asked = feed("a", "b"), list[str]()
        self.pages = {"/a": PAGE, "/b": PAGE.replace("ferry", "barge")}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        if request.url.path == "/rss":
            return httpx.Response(200, stream=httpx.ByteStream(self.feed.encode()))
        page = self.pages.get(request.url.path)
        return httpx.Response(404 if page is None else 200, stream=httpx.ByteStream((page or "").encode()))


@pytest.fixture
def site() -> Site:
    return Site()


class Reading:
    """A pool with followed feeds, reading the site."""

    def __init__(self, site: Site, folder: Path) -> None:
        address = f"sqlite:///{folder / 'pool.sqlite'}"
        migrate(address)
        engine = open_engine(address)
        self.pool, self.feeds, self.site = NewsPool(engine), FollowedFeeds(engine), site

    def read(self) -> dict[str, str]:
        """Read the feed again; return the bodies by title."""
        follow(self.pool, self.feeds, URL, now=NOW, transport=httpx.MockTransport(self.site))
        rows = self.pool.live(NOW)
        bodies = self.pool.bodies([row.id for row in rows])
        return {row.title: bodies[row.id] for row in rows}


@pytest.fixture
def reading(site: Site, tmp_path: Path) -> Reading:
    return Reading(site, tmp_path)


def test_full_texts_are_fetched_once_per_new_story_if_enabled(reading: Reading) -> None:
    assert reading.read()["Ferry a"] == "<p>Two ran late.</p>"
    assert reading.site.asked == ["/rss"]
    reading.feeds.want_full_text(URL, True)
    reading.site.feed, reading.site.asked = feed("a", "c"), []
    reading.site.pages["/c"] = PAGE
    found = reading.read()
    assert reading.site.asked == ["/rss", "/c"], "not of stories that were there"
    assert found["Ferry c"].startswith(f"<p>{PARTS[0]}</p>")
    assert "script" not in found["Ferry c"]
    assert "rights reserved" not in found["Ferry c"]
    reading.site.feed, reading.site.asked = feed("a", "c", teaser="Three ran late."), []
    assert reading.read()["Ferry c"] == found["Ferry c"], "a new teaser doesn't take the text away"
    assert reading.site.asked == ["/rss"]


def test_failed_page_keeps_the_teaser_and_records_the_reason(reading: Reading) -> None:
    reading.read()
    reading.feeds.want_full_text(URL, True)
    reading.site.feed = feed("gone", "bare")
    reading.site.pages["/bare"] = "<html><body></body></html>"
    assert reading.read()["Ferry gone"] == "<p>Two ran late.</p>"
    (kept,) = reading.feeds.all()
    assert kept.full_text_error is not None
    assert "https://sound.example/gone: " in kept.full_text_error
    assert "404" in kept.full_text_error
    assert "2 stories kept their teasers" in kept.full_text_error
    reading.site.feed = feed("a")
    reading.read()
    assert reading.feeds.all()[0].full_text_error is None


def test_slow_page_extraction_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The time limit is shortened in a copy of the process's script."""
    script = Path(full_text.__file__).read_text(encoding="utf-8")
    shorter = tmp_path / "full_text.py"
    shorter.write_text(script.replace("CPU_SEC, WALL_SEC = 20, 120", "CPU_SEC, WALL_SEC = 1, 120"), encoding="utf-8")
    monkeypatch.setattr(full_text, "__file__", str(shorter))
    with pytest.raises(NoFullText, match="within"):
        extract(("<article>" + "<p>word word word</p>" * 400_000).encode(), URL)

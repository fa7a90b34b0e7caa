"""A reader's settings for a feed. Oracle: what the store and the pool list afterwards."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from backend.news.errors import FeedNotFollowed, FeedRefused, SourceUnreachable
from backend.news.feed_refresh import follow
from backend.news.feed_scheduler import FeedScheduler
from backend.news.followed_feeds import REMOVED_KEPT, FollowedFeeds
from backend.news.pool import NewsPool
from backend.news.public_addresses import AddressRefused, ProxyTransport, checked_proxy, networks
from backend.news.sources.download import Document, Validators, fetch
from tests.doubles.certificates import certificate_of
from tests.doubles.clock import StillClock
from tests.doubles.recording_web_server import RecordingWebServer

A, B, C = "https://a.example/feed", "https://b.example/feed", "https://b.example/other"
BLOG = '<rss version="2.0"><channel><title>Blog</title><link>https://site.example/</link>{}</channel></rss>'


def blog(request: httpx.Request) -> httpx.Response:
    url = str(request.url)
    item = f"<item><title>A piece of {url}</title><link>{url}/1</link><guid>1</guid></item>"
    return httpx.Response(200, stream=httpx.ByteStream(BLOG.format(item).encode()))


class Rig:
    def __init__(self, engine: Engine) -> None:
        self.clock = StillClock()
        self.pool = NewsPool(engine, clock=self.clock)
        self.scheduler = FeedScheduler(
            engine, self.pool, every=timedelta(minutes=15), clock=self.clock, chance=lambda: 0.0,
            transport=httpx.MockTransport(blog), sleep=self.clock.go_on,
        )  # fmt: skip
        self.feeds = self.scheduler.followed

    def add(self, *urls: str) -> None:
        for url in urls:
            self.feeds.add(url, self.clock())

    def publishers(self) -> dict[str, str]:
        return {row.title.removeprefix("A piece of "): row.publisher for row in self.pool.live(self.clock())}


@pytest.fixture
def rig(engine: Engine) -> Rig:
    return Rig(engine)


def test_feeds_with_equal_titles_get_distinct_labels_unless_renamed(rig: Rig) -> None:
    rig.add(A)
    rig.scheduler.step()
    rig.add(B)
    rig.scheduler.step()
    rig.add(C)
    rig.scheduler.step()
    assert rig.publishers() == {A: "Blog", B: "Blog (b.example)", C: "Blog (b.example/other)"}
    version = rig.pool.version()
    rig.feeds.rename(A, "  Ana\u2019s\n notes ")
    assert rig.publishers()[A] == "Ana\u2019s notes", "of stories that are here already, too"
    assert rig.pool.version() > version
    rig.feeds.rename(B, "Ana\u2019s notes")
    assert rig.publishers()[B] == "Ana\u2019s notes (b.example)"
    rig.clock.go_on(86_400)
    rig.scheduler.step()
    assert set(rig.publishers().values()) == {
        "Ana\u2019s notes",
        "Ana\u2019s notes (b.example)",
        "Blog (b.example/other)",
    }
    rig.feeds.rename(A, "")
    rig.scheduler.step()
    assert rig.publishers()[A] == "Blog"


def test_reported_blogs_with_equal_titles_get_distinct_labels(engine: Engine, shared_feeds: Path) -> None:
    pages = {"one.example": "one.xml", "two.example": "two.xml"}

    def answered(request: httpx.Request) -> httpx.Response:
        page = shared_feeds / "same-title-feeds" / pages[request.url.host]
        return httpx.Response(200, stream=httpx.ByteStream(page.read_bytes()))

    pool, feeds, clock = NewsPool(engine), FollowedFeeds(engine), StillClock()
    for host in pages:
        follow(pool, feeds, f"https://{host}/", now=clock(), transport=httpx.MockTransport(answered))
    assert len({row.publisher for row in pool.live(clock())}) == 2


def test_folders_are_paths_and_renaming_moves_their_contents(rig: Rig) -> None:
    rig.feeds.add(A, rig.clock(), folder=("News", " Daily / weekly\n"))
    rig.feeds.add(B, rig.clock(), folder=("News",), title="B")
    rig.add(C)
    assert rig.feeds.folders() == [("News",), ("News", "Daily / weekly")]
    assert rig.feeds.rename_folder(("News",), ("World", "News")) == 2
    assert [one.folder for one in rig.feeds.all()] == [("World", "News", "Daily / weekly"), ("World", "News"), ()]
    rig.feeds.move_to(A, ())
    assert rig.feeds.one(A).folder == ()
    assert rig.feeds.rename_folder((), ("Other",)) == 0
    with pytest.raises(FeedRefused, match="nested 300 deep"):
        rig.feeds.move_to(A, ["f"] * 300)
    with pytest.raises(FeedNotFollowed):
        rig.feeds.move_to("https://unknown.example/", ())


def test_removed_feed_can_be_restored_for_thirty_days(rig: Rig) -> None:
    rig.feeds.add(A, rig.clock(), "sport", True, title="Mine", folder=("F",))
    rig.scheduler.step()
    rig.feeds.answered(A, at=rig.clock(), due_at=rig.clock(), validators=Validators("v1"))
    before = rig.feeds.one(A)
    rig.feeds.remove(A, rig.clock())
    assert (rig.feeds.all(), [one.url for one in rig.feeds.removed()]) == ([], [A])
    assert rig.scheduler.step() == 0
    for change in (
        rig.feeds.pause,
        lambda url: rig.feeds.rename(url, "x"),
        lambda url: rig.feeds.remove(url, rig.clock()),
    ):
        with pytest.raises(FeedNotFollowed):
            change(A)
    rig.clock.go_on(REMOVED_KEPT.total_seconds())
    rig.scheduler.step()
    rig.feeds.restore(A, rig.clock())
    back = rig.feeds.one(A)
    assert (back.title, back.folder, back.section, back.pictures, back.fetched_at, back.key) == (
        before.title, before.folder, before.section, before.pictures, before.fetched_at, before.key,
    )  # fmt: skip
    assert rig.feeds.last(A) == Validators("v1")
    rig.feeds.remove(A, rig.clock())
    rig.add(A)
    assert rig.feeds.one(A).title == "Mine", "following it again is as good"
    rig.feeds.remove(A, rig.clock())
    rig.clock.go_on(REMOVED_KEPT.total_seconds() + 1)
    rig.scheduler.step()
    with pytest.raises(FeedNotFollowed):
        rig.feeds.restore(A, rig.clock())


def test_long_addresses_have_distinct_keys(rig: Rig) -> None:
    urls = [f"https://a.example/?{'x' * 300}{number}" for number in range(2)]
    rig.add(*urls)
    keys = [rig.feeds.one(url).key for url in urls]
    assert len(set(keys)) == 2
    assert all(len(key) == 200 for key in keys)
    rig.scheduler.step()
    assert len(rig.publishers()) == 2


def test_invalid_certificate_is_accepted_only_if_chosen(tmp_path: Path) -> None:
    certificate, key = certificate_of("elsewhere.example", tmp_path)
    answering = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    answering.load_cert_chain(certificate, key)
    server = RecordingWebServer("127.0.0.1", tls=answering)
    url, here = f"https://127.0.0.1:{server.port}/", networks(["127.0.0.0/8"])
    try:
        with pytest.raises(SourceUnreachable, match="certificate verify failed"):
            fetch(url, allowed=here)
        assert isinstance(fetch(url, allowed=here, unverified=True), Document)
        with pytest.raises(SourceUnreachable, match="not public"):
            fetch(url, unverified=True)
    finally:
        server.close()


def test_proxy_gets_host_names_but_no_local_requests() -> None:
    proxy = RecordingWebServer("127.0.0.1")
    try:
        found = fetch("http://no-such-host.example/feed", proxy=f"http://127.0.0.1:{proxy.port}")
        assert isinstance(found, Document)
        assert [host for host, _ in proxy.asked] == ["no-such-host.example"]
        with httpx.Client(transport=ProxyTransport(f"http://127.0.0.1:{proxy.port}")) as client:
            for url in (
                "http://127.0.0.1/",
                "http://localhost/",
                "http://[::1]/",
                "http://10.0.0.1/",
                "http://x.localhost./",
            ):
                with pytest.raises(AddressRefused, match="not public"):
                    client.get(url)
        assert len(proxy.asked) == 1
    finally:
        proxy.close()


@pytest.mark.parametrize("proxy", ["", "via.example", "socks5://a.example:1080", "http://", "http://" + "x" * 600])
def test_invalid_http_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(FeedRefused, match="its proxy must be"):
        checked_proxy(proxy)

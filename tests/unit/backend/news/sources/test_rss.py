"""Feeds from files and from a server of the test (httpx.MockTransport). Oracle: feeds written by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from backend.news.errors import SourceError, SourceMalformed, SourceTooLarge, SourceUnreachable
from backend.news.feed_refresh import follow
from backend.news.followed_feeds import FollowedFeeds
from backend.news.item import UNSORTED, NewsItem, Rejection
from backend.news.pool import NewsPool
from backend.news.sources.download import FEED_LIMIT_BYTES, REDIRECT_LIMIT, Document, Validators, fetch
from backend.news.sources.rss import read_feed, read_rss

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
URL = "https://example.org/feed.xml"
Handler = Callable[[httpx.Request], httpx.Response]

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>The Sound</title><link>https://Example.org/</link>
<item><title>Bridge &amp;amp; tunnel reopen 👷</title>
  <link>https://Example.org/a?utm_source=rss&amp;id=7#top</link>
  <description>&lt;p&gt;Traffic &lt;b&gt;flows&lt;/b&gt; again.&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</description>
  <content:encoded><![CDATA[<p>First.</p><p>Second.</p>]]></content:encoded>
  <category>Local</category><category>Traffic</category>
  <pubDate>Thu, 19 Nov 2026 10:00:00 +0100</pubDate></item>
<item><title>مدينة جديدة</title><link>/b</link></item>
<item><title></title><link>https://example.org/c</link></item>
<item><title>No link</title></item>
<item><title>Script link</title><link>javascript:alert(1)</link></item>
<item><title>From tomorrow</title><link>https://example.org/d</link><category>Sport/Football</category>
  <pubDate>Thu, 19 Nov 2099 10:00:00 GMT</pubDate></item>
</channel></rss>"""

ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">
<title type="html">Atom &lt;i&gt;Times&lt;/i&gt;</title>
<entry><id>tag:1</id><title type="html">A &lt;em&gt;title&lt;/em&gt;</title><link href="https://example.org/x"/>
<summary>Short.</summary><category term="science"/><updated>2026-11-19T09:00:00Z</updated></entry></feed>"""

BOMB = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;">]>
<rss version="2.0"><channel><title>&lol2;</title></channel></rss>"""

EXTERNAL = """<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<rss version="2.0"><channel><item><title>&x;</title><link>https://example.org/</link></item></channel></rss>"""


def from_file(tmp_path: Path, data: str | bytes) -> list[NewsItem | Rejection]:
    path = tmp_path / "feed.xml"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(read_rss(str(path), now=NOW))


def feed(text: str, **headers: str) -> httpx.Response:
    """Return an answer whose body is still to be streamed, as from a network."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(200, headers=named, stream=httpx.ByteStream(text.encode()))


def transport_of(handler: Handler) -> httpx.MockTransport:
    return httpx.MockTransport(handler)


def test_publishing_software_trailers_are_removed_from_abstract_and_body(tmp_path: Path) -> None:
    below = (
        "&lt;p&gt;The post &lt;a&gt;Late ferries&lt;/a&gt; appeared first on &lt;a&gt;The Sound&lt;/a&gt;.&lt;/p&gt;"
    )
    found = from_file(
        tmp_path,
        f"""<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
        <title>The Sound</title><link>https://example.org/</link><item><title>Late ferries</title><link>/a</link>
        <description>&lt;p&gt;Two were late [&amp;#8230;]&lt;/p&gt; {below}</description>
        <content:encoded>&lt;p&gt;Two were late. They came.&lt;/p&gt; {below}</content:encoded></item>
        <item><title>Early ferries</title><link>/b</link>
        <description>&lt;p&gt;One came. &lt;a&gt;Read more&lt;/a&gt;&lt;/p&gt;</description></item></channel></rss>""",
    )
    assert [(item.abstract, item.body) for item in found if isinstance(item, NewsItem)] == [
        ("Two were late…", "<p>Two were late. They came.</p>"),
        ("One came.", "<p>One came. […]</p>"),
    ]


def test_rss_entries_become_items(tmp_path: Path) -> None:
    rows = from_file(tmp_path, RSS)
    first, second, *_, last = rows
    assert isinstance(first, NewsItem)
    assert first.title == "Bridge & tunnel reopen 👷"
    assert first.url == "https://example.org/a?id=7#top"
    assert first.abstract == "Traffic flows again."
    assert first.body == "<p>First.</p><p>Second.</p>"
    assert first.publisher == "The Sound"
    assert (first.section, first.topic) == (UNSORTED, UNSORTED)
    assert first.published_at == datetime(2026, 11, 19, 9, tzinfo=UTC)
    assert isinstance(second, NewsItem)
    assert (second.title, second.url, second.section, second.published_at) == (
        "مدينة جديدة",
        "https://example.org/b",
        UNSORTED,
        NOW,
    )
    assert isinstance(last, NewsItem)
    assert (last.section, last.topic, last.published_at) == (UNSORTED, UNSORTED, NOW)


def test_feed_labels_are_topics_only_if_shared_by_three_entries() -> None:
    labels = [("Acq", "Rowing"), ("Rowing", "Races"), ("Races",), ("Sport/Rowing",), *[("None",)] * 3]
    entries = "".join(
        f"<item><title>Story {number}</title><link>https://example.org/{number}</link>"
        + "".join(f"<category>{label}</category>" for label in each)
        + "</item>"
        for number, each in enumerate(labels)
    )
    data = f'<?xml version="1.0"?><rss version="2.0"><channel><title>T</title>{entries}</channel></rss>'.encode()
    document = Document(URL, URL, data, "", Validators())

    def labelled(section: str | None) -> list[tuple[str, str]]:
        rows = read_feed(document, now=NOW, section=section)
        return [(row.section, row.topic) for row in rows if isinstance(row, NewsItem)]

    topics = ["rowing", "rowing", None, "rowing", None, None, None]
    assert labelled("sport") == [("sport", topic or "sport") for topic in topics]
    assert labelled(None) == [(UNSORTED, topic or UNSORTED) for topic in topics]
    assert labelled("rowing") == [("rowing", "rowing")] * 7


def test_entries_without_a_title_or_web_link_are_completed(tmp_path: Path) -> None:
    rows = [row for row in from_file(tmp_path, RSS) if isinstance(row, NewsItem)]
    assert [(row.title, row.url) for row in rows[2:5]] == [
        ("c", "https://example.org/c"),
        ("No link", "https://example.org/"),
        ("Script link", "https://example.org/"),
    ]


def test_atom_entries_become_items(tmp_path: Path) -> None:
    (row,) = from_file(tmp_path, ATOM)
    assert isinstance(row, NewsItem)
    assert (row.title, row.abstract, row.publisher, row.section) == ("A title", "Short.", "Atom Times", UNSORTED)
    assert row.published_at == datetime(2026, 11, 19, 9, tzinfo=UTC)


def test_long_summary_becomes_the_body_and_its_beginning_the_abstract(tmp_path: Path) -> None:
    words = "word " * 2_000
    (row,) = from_file(tmp_path, ATOM.replace("Short.", words))
    assert isinstance(row, NewsItem)
    assert row.body == f"<p>{words.strip()}</p>"
    assert len(row.abstract) <= 600
    assert row.abstract.endswith("word…")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1252", "gb18030"])
def test_feed_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    title = "Zürich" if encoding == "windows-1252" else "北京 Zürich"
    text = ATOM.replace('"1.0"', f'"1.0" encoding="{encoding}"', 1).replace("Short.", title)
    (row,) = from_file(tmp_path, text.encode(encoding))
    assert isinstance(row, NewsItem)
    assert row.abstract == title


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "is empty"),
        (" \n\t ", "is empty"),
        ("<!DOCTYPE html><html><body>Hello</body></html>", r"is a web page \(HTML\), not a feed"),
        ("<HTML><p>Hello", r"is a web page \(HTML\), not a feed"),
        ('<?xml version="1.0"?><svg/>', "has the root <svg>, neither RSS nor Atom"),
        ('{"items": []}', "is JSON, but not a JSON Feed"),
        ('{"version": "https://jsonfeed.org/version/1.1", "items": [', "is neither XML nor JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "has no root element"),
        ("<!-- nothing -->", "has no root element"),
    ],
)
def test_document_that_is_not_a_feed_gives_one_clear_error(tmp_path: Path, data: str | bytes, message: str) -> None:
    with pytest.raises(SourceMalformed, match=rf"feed\.xml {message}"):
        from_file(tmp_path, data)


@pytest.mark.parametrize("bomb", [BOMB, EXTERNAL])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_type_is_skipped_and_its_entities_never_expanded(tmp_path: Path, bomb: str, encoding: str) -> None:
    rows = from_file(tmp_path, bomb.replace('"1.0"', f'"1.0" encoding="{encoding}"', 1).encode(encoding))
    assert all(row.title == "&x;" for row in rows if isinstance(row, NewsItem))
    assert sum(isinstance(row, NewsItem) for row in rows) == (bomb is EXTERNAL)


def test_truncated_feed_gives_its_complete_entries_with_a_warning(tmp_path: Path) -> None:
    rows = from_file(tmp_path, RSS[: RSS.index("<item><title>No link")])
    assert sum(isinstance(row, NewsItem) for row in rows) == 3
    assert isinstance(rows[-1], Rejection)
    assert rows[-1].field == "feed"
    assert rows[-1].reason.startswith("is not well-formed")
    assert rows[-1].reason.endswith("only part of it may have been read")


def test_file_of_50_megabytes_is_refused_by_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(SourceTooLarge, match="larger than the limit of 10,000,000 bytes"):
        read_rss(str(path))


def test_missing_file_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match=r"nowhere\.xml can't be read: no such file or directory"):
        read_rss(str(tmp_path / "nowhere.xml"))


@pytest.mark.parametrize("location", ["ftp://example.org/feed", "file:///etc/passwd", "gopher://example.org/"])
def test_feed_address_with_another_scheme_is_refused(location: str) -> None:
    with pytest.raises(SourceUnreachable, match="only http and https are followed"):
        fetch(location)


def test_download_stops_at_the_limit() -> None:
    sent = 0

    def drip() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(500):
            sent += 100_000
            yield b" " * 100_000

    with pytest.raises(SourceTooLarge, match="10,000,000 bytes"):
        fetch(URL, transport=transport_of(lambda _: httpx.Response(200, content=drip())))
    assert sent <= FEED_LIMIT_BYTES + 200_000


def test_declared_length_over_the_limit_is_not_read() -> None:
    headers = {"content-length": "50000000"}
    with pytest.raises(SourceTooLarge):
        fetch(URL, transport=transport_of(lambda _: httpx.Response(200, headers=headers, content=b"")))


def test_gzip_bomb_is_stopped_at_the_limit() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    answer = {"content-encoding": "gzip"}
    with pytest.raises(SourceTooLarge):
        fetch(URL, transport=transport_of(lambda _: httpx.Response(200, headers=answer, stream=httpx.ByteStream(bomb))))


class BodyInParts(httpx.SyncByteStream):
    """A body that arrives in these parts."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)


def test_bytes_after_the_end_of_the_gzip_are_not_read() -> None:
    """Regression: it was kept in memory for a minute, as fast as it arrived, and copied with each part."""
    sent = 0

    def flood() -> Iterator[bytes]:
        nonlocal sent
        yield gzip.compress(RSS.encode())
        for _ in range(500):
            sent += 100_000
            yield b" " * 100_000

    answer = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=BodyInParts(flood()))
    assert len(list(read_rss(URL, now=NOW, transport=transport_of(lambda _: answer)))) == 6
    assert sent == 0


def test_endless_gzip_of_empty_blocks_is_refused_by_its_compressed_size() -> None:
    """Regression: it was read for a minute, as fast as it arrived."""
    block = b"\x00\x00\x00\xff\xff" * 100_000  # stored, of no bytes, and not the last (RFC 1951, section 3.2.4)
    parts = [gzip.compress(b"")[:10], *[block] * 100]
    answer = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=BodyInParts(parts))
    with pytest.raises(SourceTooLarge):
        fetch(URL, transport=transport_of(lambda _: answer))


def test_gzipped_feed_is_read() -> None:
    body = httpx.ByteStream(gzip.compress(RSS.encode()))
    transport = transport_of(lambda _: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=body))
    assert len(list(read_rss(URL, now=NOW, transport=transport))) == 6


def test_endless_download_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.news.sources.download.DOWNLOAD_TIMEOUT_SEC", -1.0)
    with pytest.raises(SourceUnreachable, match="the download took longer than"):
        fetch(URL, transport=transport_of(lambda _: httpx.Response(200, content=iter([b"<rss>"]))))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(404), "the server answered 404"),
        (
            httpx.Response(200, headers={"content-encoding": "compress"}, stream=httpx.ByteStream(b"x")),
            "encoding 'compress'",
        ),
        (httpx.Response(302, headers={"location": "file:///etc/passwd"}), "only http and https are followed"),
        (httpx.Response(302, headers={"location": "/again"}), f"more than {REDIRECT_LIMIT} redirects"),
        # Regression: ValueError, UnicodeError and OverflowError, which ended `ownfeed ingest` with a traceback.
        (httpx.Response(302, headers={"location": "http://["}), "can't be read"),
        (httpx.Response(302, headers={"location": "http://user:pw@/"}), "can't be read"),
        (httpx.Response(302, headers={"location": "http://xn--a/"}), "can't be read"),
        (httpx.Response(302, headers=[(b"location", "http://\u0660/".encode())]), "can't be read"),
        (httpx.Response(503, headers={"retry-after": "Mon, 1 Jan 99999999999999999999 00:00:00 GMT"}), "answered 503"),
        (httpx.Response(503, headers={"retry-after": "Mon, 1 Jan 2020 00:00:00 +99999999999999"}), "answered 503"),
        (httpx.Response(503, headers={"retry-after": "9" * 5_000}), "answered 503"),
        (httpx.Response(200, headers={"content-length": "9" * 5_000}, stream=httpx.ByteStream(b"")), "larger than"),
    ],
)
def test_invalid_answer_of_a_feed_server_gives_one_clear_error(answer: httpx.Response, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        fetch(URL, transport=transport_of(lambda _: answer))


def test_unresponsive_server_is_named_in_the_error() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    with pytest.raises(SourceUnreachable, match=r"https://example\.org/feed\.xml can't be read: connection refused\."):
        fetch(URL, transport=transport_of(refuse))


def test_redirects_are_followed_and_relative_links_use_the_last_address() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.host == "example.org":
            return httpx.Response(301, headers={"location": "https://news.example/rss"})
        return feed(RSS)

    rows = list(read_rss(URL, now=NOW, transport=transport_of(handler)))
    assert isinstance(rows[1], NewsItem)
    assert rows[1].url == "https://news.example/b"


def test_feed_is_requested_conditionally_and_not_read_twice(engine: Engine) -> None:
    asked: list[httpx.Headers] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers)
        if request.headers.get("if-none-match") == '"v1"':
            return httpx.Response(304)
        return feed(RSS, etag='"v1"', last_modified="Thu, 19 Nov 2026 10:00:00 GMT")

    pool, feeds = NewsPool(engine), FollowedFeeds(engine)
    report = follow(pool, feeds, URL, now=NOW, transport=transport_of(handler))
    assert report is not None
    assert (report.added, report.rejected_count) == (6, 0)
    assert feeds.last(URL) == Validators('"v1"', "Thu, 19 Nov 2026 10:00:00 GMT")
    assert follow(pool, feeds, URL, now=NOW, transport=transport_of(handler)) is None
    assert "if-none-match" not in asked[0]
    assert asked[1]["if-modified-since"] == "Thu, 19 Nov 2026 10:00:00 GMT"


def test_feed_without_validators_is_read_again_without_changes(engine: Engine) -> None:
    pool, feeds = NewsPool(engine), FollowedFeeds(engine)
    transport = transport_of(lambda _: feed(RSS))
    follow(pool, feeds, URL, now=NOW, transport=transport)
    version = pool.version()
    report = follow(pool, feeds, URL, now=NOW + timedelta(minutes=10), transport=transport)
    assert report is not None
    assert report.unchanged == 6
    assert pool.version() == version


def test_failed_run_requests_the_full_feed_next_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, feeds = NewsPool(engine), FollowedFeeds(engine)
    transport = transport_of(lambda _: feed(RSS, etag='"v1"'))

    def full_disk(*_arguments: object, **_options: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pool, "add", full_disk)
    with pytest.raises(OSError, match="no space left"):
        follow(pool, feeds, URL, now=NOW, transport=transport)
    assert feeds.last(URL) == Validators()


def test_expired_articles_still_listed_by_a_feed_do_not_return(engine: Engine) -> None:
    pool, feeds = NewsPool(engine, keep_newest=0), FollowedFeeds(engine)
    transport = transport_of(lambda _: feed(ATOM))
    follow(pool, feeds, URL, now=NOW, transport=transport)
    later = NOW + timedelta(days=31)
    assert pool.expire(later) == 1
    report = follow(pool, feeds, URL, now=later, transport=transport)
    assert report is not None
    assert (report.added, report.withheld) == (0, 1)

"""Feeds that other programs misread, from the shared samples, and variants of each kind.

Oracle: what a reader of the feed expects, by the samples' own table.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from backend.news.feed_refresh import follow
from backend.news.followed_feeds import FollowedFeeds
from backend.news.item import IngestReport, NewsItem
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from backend.news.sources.rss import read_rss

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
URL = "https://feeds.example/rss"
Rows = dict[str, PoolRow]
Follow = Callable[..., IngestReport]


@pytest.fixture
def pool(engine: Engine) -> NewsPool:
    return NewsPool(engine, clock=lambda: NOW)


@pytest.fixture
def take(pool: NewsPool, engine: Engine) -> Follow:
    """Follow a document at an address, or read a file."""

    def follow_it(document: str | Path, url: str = URL, now: datetime = NOW) -> IngestReport:
        answer = httpx.MockTransport(lambda _: httpx.Response(200, stream=httpx.ByteStream(str(document).encode())))
        location = str(document) if isinstance(document, Path) else url
        report = follow(pool, FollowedFeeds(engine), location, now=now, transport=answer)
        assert report is not None
        return report

    return follow_it


def rss(*items: str, head: str = "<title>Paper</title>") -> str:
    return f'<rss version="2.0"><channel>{head}{"".join(items)}</channel></rss>'


def entry(number: int, *, at: str = "", **more: str) -> str:
    values = {"title": f"Story {number}", "guid": f"g{number}", "link": f"https://n.example/{number}"} | more
    if at:
        values["pubDate"] = at
    return "<item>" + "".join(f"<{name}>{value}</{name}>" for name, value in values.items() if value) + "</item>"


def day(days_ago: float) -> str:
    return (NOW - timedelta(days=days_ago)).strftime("%a, %d %b %Y %H:%M:%S +0000")


def counts(report: IngestReport) -> tuple[int, int, int]:
    return report.added, report.updated, report.unchanged


@pytest.mark.parametrize(
    ("folder", "added"),
    [
        ("titleless", 1),
        ("enclosure-only", 1),
        ("one-link-many-items", 3),
        ("boilerplate-duplicates", 3),
        ("slow-blog", 5),
        ("silent-rejections", 3),
        ("angle-brackets", 2),
        ("dates", 7),
        ("tracking-reencodes", 4),
        ("json-feed", 1),
    ],
)
def test_every_sample_entry_is_live_and_unchanged_the_next_time(
    shared_feeds: Path, folder: str, added: int, take: Follow, pool: NewsPool
) -> None:
    (file,) = (shared_feeds / folder).iterdir()
    assert counts(take(file)) == (added, 0, 0)
    assert counts(take(file, now=NOW + timedelta(hours=1))) == (0, 0, added)
    rows = pool.live(NOW + timedelta(hours=1))
    assert len(rows) == added
    assert not any(row.duplicate_of for row in rows)


def test_samples_have_the_expected_titles_links_and_days(shared_feeds: Path) -> None:
    def items(folder: str) -> list[NewsItem]:
        (file,) = (shared_feeds / folder).iterdir()
        return [row for row in read_rss(str(file), now=NOW) if isinstance(row, NewsItem)]

    assert [item.title for item in items("titleless")] == ["We opened the library again."]
    assert [item.url for item in items("enclosure-only")] == ["https://cdn.example/1.mp3"]
    assert [item.title for item in items("angle-brackets")] == [
        "How <script> tags load and why defer wins",
        "Option<T> and Result<T, E> for beginners",
    ]
    assert [item.url.partition("t.example")[2] for item in items("tracking-reencodes")] == [
        "/s?name=%EF%F0%E8",
        "/?my-slug",
        "/?a=1;b=2",
        "/?q=a%20b",
    ]
    dated = [f"{item.published_at:%m-%d}" for item in items("dates") if item.dated]
    assert dated == ["11-25"] * 5 + ["10-02"]
    assert [item.published_at for item in items("dates") if not item.dated] == [NOW]


def test_two_feeds_with_equal_titles_get_distinct_labels(shared_feeds: Path, take: Follow, pool: NewsPool) -> None:
    for name in ("one.xml", "two.xml", "one.xml", "two.xml"):
        take(shared_feeds / "same-title-feeds" / name)
    assert [row.publisher for row in pool.live(NOW)] == ["Blog", "Blog (two.xml)"]


def test_feeds_with_equal_titles_keep_labels_by_site_host_and_path(take: Follow, pool: NewsPool) -> None:
    head = "<title>Blog</title><link>https://{}/</link>"
    feeds = [
        ("https://a.example/feed", "a.example"),
        ("https://b.example/feed", "b.example"),
        ("https://b.example/second", "b.example"),
        ("https://c.example/feed", "b.example"),
    ]
    for time in range(2):
        for number, (url, site) in enumerate(feeds):
            take(rss(entry(number), head=head.format(site)), url, NOW + timedelta(hours=time))
    assert [row.publisher for row in pool.live(NOW)] == [
        "Blog",
        "Blog (b.example)",
        "Blog (b.example/second)",
        "Blog (c.example)",
    ]
    take(rss(entry(1), head="<title>My blog</title>"), "https://b.example/feed")
    assert "My blog" in {row.publisher for row in pool.live(NOW)}


def test_newest_version_of_an_entry_wins_and_rereading_changes_nothing(take: Follow, pool: NewsPool) -> None:
    versions = [entry(1, title="New", at=day(1)), entry(1, title="Old", at=day(2)), entry(2, at=day(3))]
    for items in (versions, versions[::-1]):
        take(rss(*items))
        assert {row.title for row in pool.live(NOW)} == {"New", "Story 2"}
        assert counts(take(rss(*items))) == (0, 0, 2)


def test_same_guid_in_two_feeds_gives_each_feed_its_own_article(take: Follow, pool: NewsPool) -> None:
    for host in ("a", "b"):
        take(rss(entry(1, title=f"Story of {host}")), f"https://{host}.example/feed")
    assert {row.title for row in pool.live(NOW)} == {"Story of a", "Story of b"}


def test_newest_entries_of_a_feed_stay_live_and_older_ones_expire(engine: Engine, take: Follow) -> None:
    pool = NewsPool(engine, keep_newest=3, clock=lambda: NOW)
    feeds = FollowedFeeds(engine)

    def read(first: int, last: int) -> IngestReport:
        document = rss(*(entry(number, at=day(400 - 10 * number)) for number in range(first, last)))
        answer = httpx.MockTransport(lambda _: httpx.Response(200, stream=httpx.ByteStream(document.encode())))
        report = follow(pool, feeds, URL, now=NOW, transport=answer)
        assert report is not None
        return report

    first = read(0, 8)
    assert (first.added, first.withheld) == (3, 5)
    assert {row.title for row in pool.live(NOW)} == {"Story 5", "Story 6", "Story 7"}
    version = pool.version()
    assert read(0, 8).unchanged == 3
    assert pool.version() == version
    read(8, 10)
    assert {row.title for row in pool.live(NOW)} == {"Story 7", "Story 8", "Story 9"}
    assert pool.expire(NOW) == 2
    assert read(0, 8).added == 0, "what was pushed out doesn't come back"
    feeds.remove(URL, NOW)
    assert pool.expire(NOW) == 3, "of a feed that is no longer followed they expire"


def test_incremental_read_matches_a_read_of_the_whole_pool(take: Follow, pool: NewsPool) -> None:
    take(rss(*(entry(number, at=day(100 + number)) for number in range(25))))
    assert len(pool.live(NOW)) == 20
    with pool.reading("", NOW, pool.version()) as reading:
        assert len(reading.older) == 20
    before = pool.version()
    take(rss(entry(90, at=day(50)), entry(0, at=day(100))))
    with pool.reading("", NOW, before) as reading:
        assert reading.changed is not None
        changed = {row.title for block in reading.blocks for row in block.rows}
        assert changed == {"Story 90"}
        assert len(reading.changed) == 2, "the one that was pushed out is gone"


def test_undated_entry_counts_as_old_in_the_first_read_of_a_feed_and_as_new_later(take: Follow, pool: NewsPool) -> None:
    later = NOW + timedelta(hours=1)
    take(rss(entry(1), entry(2, at=day(3)), entry(3, at="in the year 3000"), entry(4, at=day(-400))))
    take(rss(entry(1, title="Story 1, edited"), entry(5)), now=later)
    rows = {row.title: row for row in pool.live(later)}
    assert (rows["Story 1, edited"].published_at, rows["Story 5"].published_at) == (NOW, later)
    newest = sorted(rows.values(), key=lambda row: row.counted_at, reverse=True)
    assert [row.title for row in newest][:2] == ["Story 5", "Story 2"]
    assert [row.dated for row in newest] == [True, True, False, False, False]


def test_near_duplicate_of_another_feed_is_listed_by_its_original(take: Follow, pool: NewsPool) -> None:
    words = "The harbour bridge is closed until Friday noon after a barge hit its middle pillar this morning"
    take(rss(entry(1, title=words, at=day(1)), head="<title>First</title>"), "https://a.example/feed")
    version = pool.version()
    take(rss(entry(1, title=words, at=day(0.5)), head="<title>Second</title>"), "https://b.example/feed")
    original, copy = pool.live(NOW)
    assert copy.duplicate_of == original.id
    assert [(one.id, one.publisher) for one in original.also] == [(copy.id, "Second")]
    with pool.reading("", NOW, version) as reading:
        changed = [row for block in reading.blocks for row in block.rows]
    assert original in changed, "devices get the original's card again"
    take(rss(entry(1, title="Another story altogether, of five words more", at=day(0.4))), "https://b.example/feed")
    assert pool.live(NOW)[0].also == ()


def test_headline_of_thirty_feeds_is_lost_in_none(take: Follow, pool: NewsPool) -> None:
    words = "The harbour bridge is closed until Friday noon after a barge hit its middle pillar this morning"
    for number in range(30):
        take(rss(entry(1, title=words), head=f"<title>Feed {number}</title>"), f"https://{number}.example/feed")
    original = next(row for row in pool.live(NOW) if row.duplicate_of is None)
    assert len({original.id, *(one.id for one in original.also)}) == 30


def test_same_page_and_title_in_two_feeds_is_a_duplicate(take: Follow, pool: NewsPool) -> None:
    for host in ("a", "b"):
        take(
            rss(entry(1, title="Flood"), entry(2, title="Fire", link="https://n.example/")), f"https://{host}.example/"
        )
    assert sorted(row.title for row in pool.live(NOW) if row.duplicate_of) == ["Flood"]


def test_feed_without_usable_entries_reports_it(take: Follow, engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "backend.news.ingest"):
        take(rss(*["<item><author>x</author></item>"] * 10))
    said = (
        "answered, but none of its 10 entries could be used: "
        "has no title, text or link (10 of them, the first is entry 1)"
    )
    (feed,) = FollowedFeeds(engine).all()
    assert (str(feed.answer), feed.answer and feed.answer.is_unusable) == (said, True)
    assert said in caplog.text
    take(rss(entry(1), "<item/>"))
    (feed,) = FollowedFeeds(engine).all()
    assert (feed.entries, feed.taken, feed.refused) == (2, 1, 1)
    assert str(feed.answer).startswith("1 of 2 entries taken, 1 could not be used: ")
    take(rss())
    assert str(FollowedFeeds(engine).all()[0].answer) == "answered, but has no entries"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<title>How &lt;script&gt; tags load</title>", "How <script> tags load"),
        ("<title>Use Option&lt;T&gt; &amp; Vec&lt;u8&gt;</title>", "Use Option<T> & Vec<u8>"),
        ("<title><![CDATA[How <script> tags load]]></title>", "How <script> tags load"),
        ("<title>The &lt;em&gt;best&lt;/em&gt; of AT&amp;amp;T</title>", "The best of AT&T"),
        ("<title>5 &lt; 6 &amp;&amp; 7 &gt; 6</title>", "5 < 6 && 7 > 6"),
        ("<title>Caf&#233; &amp;eacute;t&amp;eacute;</title>", "Café été"),
    ],
)
def test_rss_titles_keep_text_that_is_not_markup(written: str, shown: str, take: Follow, pool: NewsPool) -> None:
    take(rss(f"<item>{written}<link>https://n.example/1</link></item>"))
    assert [row.title for row in pool.live(NOW)] == [shown]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            '<title type="text">How &lt;b&gt;bold&lt;/b&gt; works &amp;amp; why</title>',
            "How <b>bold</b> works &amp; why",
        ),
        ("<title>How &lt;b&gt;bold&lt;/b&gt; works</title>", "How <b>bold</b> works"),
        ('<title type="html">How &lt;b&gt;bold&lt;/b&gt; &amp;lt;b&amp;gt; works</title>', "How bold <b> works"),
        (
            '<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">How <b>bold</b> &lt;b&gt; works</div>'
            "</title>",
            "How bold <b> works",
        ),
    ],
)
def test_atom_titles_are_read_by_their_type(written: str, shown: str, take: Follow, pool: NewsPool) -> None:
    take(
        f'<feed xmlns="http://www.w3.org/2005/Atom"><title>Paper</title><entry><id>1</id>{written}'
        '<link href="https://n.example/1"/></entry></feed>'
    )
    assert [row.title for row in pool.live(NOW)] == [shown]


def test_json_feed_is_read_completely(take: Follow, pool: NewsPool) -> None:
    items = [
        {"id": 7, "url": "/7", "title": "A < B & C", "content_text": "One.\n\nTwo & <three>.", "tags": ["x"]},
        {"id": "8", "external_url": "https://o.example/8", "content_html": "<p>Untitled</p>",
         "date_modified": "2026-11-27T05:00:00Z"},
        {"id": "9", "attachments": [{"url": "https://cdn.example/9.mp3", "mime_type": "audio/mpeg"}], "title": "Talk"},
        {"id": "10"},
        "no item",
    ]  # fmt: skip
    feed = {
        "version": "https://jsonfeed.org/version/1",
        "title": "JF",
        "home_page_url": "https://j.example/",
        "items": items,
    }
    report = take("\ufeff" + json.dumps(feed))
    assert (report.added, report.rejected_count) == (3, 1)
    first, second, third = pool.live(NOW)
    assert (first.title, first.url, pool.bodies([first.id])[first.id]) == (
        "A < B & C",
        "https://feeds.example/7",
        "<p>One.</p><p>Two &amp; &lt;three&gt;.</p>",
    )
    assert (second.title, second.url) == ("Untitled", "https://o.example/8")
    assert second.published_at == datetime(2026, 11, 27, 5, tzinfo=UTC)
    assert (third.title, third.url, third.publisher) == ("Talk", "https://cdn.example/9.mp3", "JF")


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "shift_jis", "euc-kr", "gb18030", "big5"])
def test_undeclared_encoding_is_guessed(encoding: str, take: Follow, tmp_path: Path, pool: NewsPool) -> None:
    titles = {
        "windows-1251": "Мост в гавани закрыт до полудня пятницы из-за аварии на реке",
        "koi8-r": "Мост в гавани закрыт до полудня пятницы из-за аварии на реке",
        "shift_jis": "港の橋は金曜日の正午まで閉鎖されることになりました",
        "euc-kr": "항구 다리는 금요일 정오까지 폐쇄됩니다 오늘 아침 사고 때문입니다",
        "gb18030": "港口大桥因今天早晨的事故关闭至星期五中午请绕行其他道路",
        "big5": "港口大橋因今天早晨的事故關閉至星期五中午請繞行其他道路",
    }
    file = tmp_path / "feed.xml"
    file.write_bytes(rss(entry(1, title=titles[encoding], description=titles[encoding] * 4)).encode(encoding))
    take(file)
    assert [row.title for row in pool.live(NOW)] == [titles[encoding]]

"""Feeds with real faults: those that feedparser's own tests collect, one small document each.

A feed is read as far as possible; a faulty entry is refused by itself; a bomb is refused within the limits.
"""

from __future__ import annotations

import gzip
import signal
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

import httpx
import pytest

from backend.news import plain_text
from backend.news.errors import SourceTooLarge
from backend.news.item import NewsItem, Rejection
from backend.news.sources import feed_dates, feed_parser, json_feed, picture_links
from backend.news.sources.download import FEED_LIMIT_BYTES, Document, Validators
from backend.news.sources.feed_parser import FeedUnreadable, element
from backend.news.sources.rss import read_feed, read_rss
from tests.doubles.feeds_in_process import in_processes
from tests.doubles.local_links import LOCAL_LINKS

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ITEM = "<item><title>One</title><link>https://n.example/1</link></item>"


def read_document(data: str | bytes, content_type: str = "", base: str = "") -> list[NewsItem | Rejection]:
    content = data if isinstance(data, bytes) else data.encode()
    return list(read_feed(Document("feed.xml", base, content, content_type, Validators()), now=NOW))


def test_undeclared_encoding_is_read_independently_of_chardet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """chardet's guess is replaced by an encoding that decodes any byte to something else."""
    data = rss("<item><title>Caf\u00e9</title><link>https://n.example/1</link></item>").encode("windows-1252")
    monkeypatch.setattr("feedparser.encodings.lazy_chardet_encoding", lambda data: "cp037", raising=False)
    found = feed_parser._read(data, "", "", plain_text, picture_links, feed_dates, json_feed)
    assert found["entries"][0]["title"] == "Caf\u00e9"


def rss(inside: str, attributes: str = 'version="2.0"') -> str:
    return f"<rss {attributes}><channel><title>Paper</title>{inside}</channel></rss>"


def saying(description: str) -> str:
    return rss(ITEM.replace("</item>", f"<description>{description}</description></item>"))


def only_item(rows: list[NewsItem | Rejection]) -> NewsItem:
    (item,) = [row for row in rows if isinstance(row, NewsItem)]
    return item


ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"><title>Paper</title><entry>{}<link href="https://n.example/1"/></entry></feed>'
READ = {
    "an HTML entity": (rss(ITEM.replace("One", "caf&eacute; &mdash; bar")), "café — bar"),
    "an entity nobody knows": (rss(ITEM.replace("One", "a &nosuch; b")), "a &nosuch; b"),
    "a bare ampersand": (rss(ITEM.replace("One", "Marks & Spencer")), "Marks & Spencer"),
    "an ampersand in a link": (rss(ITEM.replace("/1<", "/1?a=1&b=2<")), "One"),
    "a document type": ('<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://x.example/">' + rss(ITEM), "One"),
    "a control character": (rss(ITEM.replace("One", "O\x0bne\x00")), "One"),
    "a comment before it all": ("\n<!-- <rss> by hand -->\n" + rss(ITEM), "One"),
    "words before the XML": ("Notice: no index in feed.php\n<?xml version='1.0'?>" + rss(ITEM), "One"),
    "an unknown namespace": (rss(ITEM.replace("</item>", "<foo:bar>x</foo:bar></item>")), "One"),
    "no end": (rss(ITEM)[: -len("</channel></rss>")], "One"),
    "tags that cross": (rss(ITEM.replace("One", "<b><i>One</b></i>")), "One"),
    "no channel": (f"<rss>{ITEM}</rss>", "One"),
    "no version": (rss(ITEM, ""), "One"),
    "CDATA": (rss(ITEM.replace("One", "<![CDATA[One & <b>two</b>]]>")), "One & two"),
    "CDATA without an end": (rss(ITEM + "<item><title><![CDATA[Two"), "One"),
    "capitals": (rss(ITEM).upper().replace("HTTPS://N.EXAMPLE", "https://n.example"), "ONE"),
    "Word's sections in a text": (saying("&lt;![if x]&gt;a&lt;![foo[b"), "One"),
    "a web page quoted": (saying("&lt;html> <![CDATA[<html>]]>"), "One"),
    "RSS 1.0": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        f'<channel><title>Paper</title></channel>{ITEM}</rdf:RDF>',
        "One",
    ),
    "RSS 0.90": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/">'
        f'<channel><title>Paper</title></channel>{ITEM}</rdf:RDF>',
        "One",
    ),
    "Atom 0.3": (
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><title>One</title>'
        '<link rel="alternate" href="https://n.example/1"/></entry></feed>',
        "One",
    ),
    "Atom in XHTML": (
        ATOM.format('<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">On<em>e</em></div></title>'),
        "One",
    ),
    "Atom with a prefix": (
        '<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:title>One</a:title>'
        '<a:link href="https://n.example/1"/></a:entry></a:feed>',
        "One",
    ),
    "a guid for a link": (rss("<item><title>One</title><guid>https://n.example/1</guid></item>"), "One"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_feed_with_a_small_fault_is_read(name: str) -> None:
    data, title = READ[name]
    item = only_item(read_document(data))
    assert item.title == title
    assert item.url.startswith("https://n.example/1")


@pytest.mark.parametrize(
    ("declared", "really", "content_type"),
    [
        ("utf-8", "windows-1252", ""),
        ("utf-8", "utf-8", "text/xml"),
        ("us-ascii", "utf-8", ""),
        ("iso-8859-1", "iso-8859-1", "application/xml; charset=utf-8"),
        ("nonsense", "utf-8", "application/rss+xml"),
        ("utf-16", "utf-8", ""),
    ],
)
def test_wrongly_declared_encoding_is_detected(declared: str, really: str, content_type: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?>' + rss(ITEM.replace("One", "Gemüse"))
    assert only_item(read_document(text.encode(really), content_type)).title == "Gemüse"


@pytest.mark.parametrize(
    "written",
    [
        "Thu, 19 Nov 2026 10:00:00 +0100",
        "Thu, 19 Nov 26 09:00:00 GMT",
        "19 Nov 2026 04:00:00 EST",
        "2026-11-19T09:00:00Z",
        "2026-11-19T10:00:00+01:00",
        "2026-11-19T10:00:00.123+01:00",
        "20261119T09:00:00Z",
        "Thu Nov 19 09:00:00 2026",
        "2026-11-19 09:00:00",
    ],
)
def test_dates_of_entries_are_read_in_many_written_forms(written: str) -> None:
    item = only_item(read_document(rss(ITEM.replace("</item>", f"<pubDate>{written}</pubDate></item>"))))
    assert item.published_at.replace(microsecond=0) == datetime(2026, 11, 19, 9, tzinfo=UTC)


@pytest.mark.parametrize("written", ["yesterday", "", "99/99/9999", "Thu, 32 Foo 2026", "0000-00-00", "9" * 400])
def test_meaningless_date_becomes_the_time_of_reading(written: str) -> None:
    assert (
        only_item(read_document(rss(ITEM.replace("</item>", f"<pubDate>{written}</pubDate></item>")))).published_at
        == NOW
    )


def test_links_are_relative_to_the_feeds_base() -> None:
    body = rss("<item xml:base='/news/'><title>One</title><link>1.html</link></item>", "xml:base='https://n.example/'")
    assert only_item(read_document(body, base="https://feeds.example/rss")).url == "https://n.example/news/1.html"
    plain = rss("<item><title>One</title><link>1.html</link></item>")
    assert (
        only_item(read_document(plain, base="https://feeds.example/paper/rss")).url
        == "https://feeds.example/paper/1.html"
    )


def test_link_into_the_local_network_is_removed_from_its_story() -> None:
    entries = "".join(
        f"<item><title>{at}</title><link>{escape(link)}</link></item>" for at, link in enumerate(LOCAL_LINKS)
    )
    rows = read_document(rss(ITEM + entries), base="https://n.example/rss")
    assert {row.url for row in rows if isinstance(row, NewsItem)} == {
        "https://n.example/1",
        "https://n.example/",  # the feed's site
        "http://paper.example/",  # from http://127.0.0.1\\@paper.example/, since a feed's links keep no user
    }
    assert sum(isinstance(row, NewsItem) for row in rows) == len(LOCAL_LINKS) + 1


@pytest.mark.parametrize(
    ("entry", "title", "url"),
    [
        ("<title>Script</title><link>javascript:alert(1)</link>", "Script", "https://n.example/"),
        ("<title>Data</title><link>data:text/html,x</link>", "Data", "https://n.example/"),
        ("<title>File</title><link>file:///etc/passwd</link>", "File", "https://n.example/"),
        ("<title>Host</title><link>http://[::1/</link>", "Host", "https://n.example/"),
        (f"<title>Long link</title><link>https://n.example/{'y' * 3_000}</link>", "Long link", "https://n.example/"),
        (f"<title>{'long ' * 400}</title>", ("long " * 200)[:-6] + "…", "https://n.example/"),
        ("<link>https://n.example/3/a%20story/</link>", "a story", "https://n.example/3/a%20story/"),
        ("<description>&lt;img src='x' alt='A heron'&gt;</description>", "A heron", "https://n.example/"),
        (f"<description>{'words ' * 40}</description>", "words " * 16 + "…", "https://n.example/"),
        ('<title>Talk</title><enclosure url="https://cdn.example/1.mp3"/>', "Talk", "https://cdn.example/1.mp3"),
    ],
)
def test_incomplete_entry_is_completed(entry: str, title: str, url: str) -> None:
    item = only_item(read_document(rss(f"<link>https://n.example/</link><item>{entry}</item>")))
    assert (item.title, item.url) == (title.replace(" …", "…"), url)


def test_empty_entry_is_refused_alone_with_its_reason() -> None:
    rows = read_document(rss(ITEM + "<item><guid isPermaLink='false'>7</guid></item><item/>"))
    assert only_item(rows).title == "One"
    reason = "has no title, text or link"
    assert [row for row in rows if isinstance(row, Rejection)] == [Rejection(n, "entry", reason) for n in (2, 3)]


def test_feed_without_entries_gives_none() -> None:
    assert read_document(rss("")) == []
    assert read_document("<rss><channel><title>caf&eacute;</title></channel></rss>") == []


def test_unreadable_part_is_reported_but_an_html_entity_is_accepted() -> None:
    assert len(read_document(READ["an HTML entity"][0])) == 1
    (_, fault) = read_document(READ["no end"][0])
    assert isinstance(fault, Rejection)
    assert fault.field == "feed"


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
BOMBS = {
    "a billion laughs": f'<!DOCTYPE rss [<!ENTITY a0 "ha">{LAUGHS}]>' + rss("&a9;"),
    "a quadratic blow-up": f'<!DOCTYPE rss [<!ENTITY a "{"a" * 50_000}">]>' + rss("&a;" * 50_000),
    "an external entity": '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + rss(ITEM.replace("One", "&x;")),
    "a parameter entity": '<!DOCTYPE rss [<!ENTITY % x SYSTEM "http://x.example/"> %x;]>' + rss(ITEM),
    "a document type that hides its declarations": '<!DOCTYPE r SYSTEM ">" [<!ENTITY x "y">]>' + rss(ITEM),
    "a declaration alone": '<!ENTITY x "y">' + rss(ITEM),
    "two document types": '<!DOCTYPE rss><!DOCTYPE rss [<!ENTITY x "y">]>' + rss(ITEM),
    "in small letters": '<!doctype rss [<!entity x "y">]>' + rss(ITEM),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_declared_entities_are_never_expanded(name: str, encoding: str) -> None:
    document = f'<?xml version="1.0" encoding="{encoding}"?>{BOMBS[name]}'
    titles = [row.title for row in read_document(document.encode(encoding)) if isinstance(row, NewsItem)]
    assert titles in ([], ["One"], ["&x;"])
    assert len(element(document.encode())) <= len(document)


def test_entity_declared_after_the_root_is_ignored() -> None:
    hidden = rss(f'<!DOCTYPE rss [<!ENTITY x "{"y" * 1_000}">]>' + ITEM.replace("One", "One &x;"))
    assert element(hidden.encode()) == hidden.encode()
    assert all("yyy" not in row.title for row in read_document(hidden) if isinstance(row, NewsItem))


ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>a</id><title>One</title>'
    '<link href="https://example.org/1"/><summary type="html">{}</summary></entry></feed>'
)


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(rss(ITEM.replace("</item>", "<description>" + "<b>" * 500_000)), id="nested"),
        pytest.param(rss(ITEM.replace("</item>", "<a b='" * 500_000)), id="quotes"),
        # Regression: read outside the limits, in the server itself, where 60 KB took a minute and 10 MB would days.
        pytest.param(ATOM.format("&lt;ul>&lt;li>" * 40_000), id="a text of lists in each other"),
    ],
)
def test_parser_running_too_long_is_ended(bomb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The time limit is shortened in a copy of the process's script."""
    script = Path(feed_parser.__file__).read_text(encoding="utf-8")
    shorter = tmp_path / "feed_parser.py"
    shorter.write_text(script.replace("PARSE_CPU_SEC = 30", "PARSE_CPU_SEC = 1"), encoding="utf-8")
    assert shorter.read_text(encoding="utf-8") != script
    monkeypatch.setattr(feed_parser, "__file__", str(shorter))
    with pytest.raises(FeedUnreadable, match="of processor time"):
        feed_parser.parse(bomb.encode())


def test_link_with_millions_of_parameters_is_refused_unread() -> None:
    rows = read_document(rss(ITEM.replace("https://n.example/1", "https://n.example/1?" + "a=b;" * 1_000_000)))
    assert only_item(rows).url == ""


def test_entries_beyond_the_limit_are_counted_and_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_processes(monkeypatch)
    script = Path(feed_parser.__file__).read_text(encoding="utf-8")
    fewer = tmp_path / "feed_parser.py"
    fewer.write_text(script.replace("ENTRIES_LIMIT = 10_000", "ENTRIES_LIMIT = 2"), encoding="utf-8")
    monkeypatch.setattr(feed_parser, "__file__", str(fewer))
    rows = read_document(rss("".join(ITEM.replace("/1", f"/{number}") for number in range(5))))
    assert [isinstance(row, NewsItem) for row in rows] == [True, True, False]
    assert "3 entries are beyond the limit" in str(rows[-1])


def test_gzip_bomb_is_cut_off_at_the_limit() -> None:
    packed = gzip.compress(b" " * (20 * FEED_LIMIT_BYTES))
    assert len(packed) < FEED_LIMIT_BYTES
    answer = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(packed))
    with pytest.raises(SourceTooLarge):
        list(read_rss("https://n.example/feed", transport=httpx.MockTransport(lambda _: answer)))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "of processor time"),
        (-signal.SIGALRM, "longer than 600 s"),
        (feed_parser.OUT_OF_MEMORY, "of memory"),
        (feed_parser.ANSWER_TOO_LONG, "once it is parsed"),
        (-signal.SIGSEGV, "SIGSEGV.*bug"),
        (1, "exit code 1.*bug"),
    ],
)
def test_parser_ending_without_an_answer_reports_its_limit_or_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, words: str
) -> None:
    """The process ends by itself in a copy of its script."""
    program = f"os.kill(os.getpid(), {-code})" if code < 0 else f"sys.exit({code})"
    script = Path(feed_parser.__file__).read_text(encoding="utf-8")
    ends = tmp_path / "feed_parser.py"
    ends.write_text(script.replace("    _limit()\n    try:", f"    {program}\n    try:"), encoding="utf-8")
    assert ends.read_text(encoding="utf-8") != script
    monkeypatch.setattr(feed_parser, "__file__", str(ends))
    with pytest.raises(FeedUnreadable, match=words):
        feed_parser.parse(b"<rss/>")

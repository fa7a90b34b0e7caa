"""`ownfeed read` with thirty feeds of every kind and 2,000 entries: each entry is on its feed's page.

Oracle: the feeds that the test writes. Each entry carries a word of its own in its title, or in its text where its
format has no titles; the test pages through every feed as a reader does and looks for that word on a card.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote_plus

import brotli
import httpx
import pytest
import zstandard

from tests.browser.own_feeds_figures import ranked_page, reading, wait_for

FEEDS, ENTRIES = 30, 2_000
LIMIT_SEC = 600.0
NOW = datetime.now(UTC)
CARD = re.compile(r"<article.*?</article>", re.DOTALL)
TOPICS = ("harbour", "election", "orchestra", "vaccine", "glacier", "league", "budget", "satellite", "orchard", "tram")
Entry = tuple[str, str, datetime]
"""An entry's own word, a sentence about it, when it was published."""


def rfc822(at: datetime) -> str:
    return format_datetime(at)


def rss(name: str, items: str, head: str = "", root: str = 'rss version="2.0"', before: str = "") -> str:
    return (
        f"{before}<{root}><channel><title>{name}</title><link>https://{name}.example/</link>"
        f"<description>Of {name}</description>{head}{items}</channel></{root.split()[0]}>"
    )


def item(entry: Entry, **changes: str) -> str:
    word, text, at = entry
    parts = {
        "title": f"{text} {word}",
        "link": f"https://news.example/{word}",
        "guid": word,
        "pubDate": rfc822(at),
        "description": f"About {text}.",
    } | changes
    return "<item>" + "".join(value if value[:1] == "<" else f"<{k}>{value}</{k}>" for k, value in parts.items()
                              if value) + "</item>"  # fmt: skip


def each(write: Callable[..., str], **changes: str) -> Callable[[str, list[Entry]], str]:
    """Return an RSS 2.0 feed whose items differ by `changes`, with {word} and {text} filled in."""

    def document(name: str, entries: list[Entry]) -> str:
        return rss(name, "".join(
            write(entry, **{key: value.format(word=entry[0], text=entry[1]) for key, value in changes.items()})
            for entry in entries
        ), before='<?xml version="1.0"?>')  # fmt: skip

    return document


def rdf(name: str, entries: list[Entry]) -> str:
    items = "".join(
        f'<item rdf:about="https://news.example/{word}"><title>{text} {word}</title><link>https://news.example/{word}'
        f"</link><dc:date>{at.isoformat()}</dc:date></item>"
        for word, text, at in entries
    )
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>{name}</title></channel>{items}</rdf:RDF>'
    )


def atom(name: str, entries: list[Entry], *, space: str = "http://www.w3.org/2005/Atom", inside: str = "") -> str:
    items = "".join(
        f'<entry><title type="html">{text} &amp;lt;b&amp;gt; {word}</title><id>tag:{word}</id><link href="https://news.example/{word}"/>'
        f"<updated>{at.isoformat()}</updated><issued>{at.isoformat()}</issued>"
        f"<modified>{at.isoformat()}</modified>{inside.format(word=word)}<summary>About {text}.</summary></entry>"
        for word, text, at in entries
    )
    return f'<feed xmlns="{space}" xmlns:media="http://search.yahoo.com/mrss/"><title>{name}</title>{items}</feed>'


def json_feed(name: str, entries: list[Entry], *, titled: bool = True) -> str:
    items = [
        {"id": word, "url": f"https://news.example/{word}", "date_published": at.isoformat()}
        | (
            {"title": f"{text} {word}", "content_html": f"<p>{text}</p>"}
            if titled
            else {"content_text": f"{text} {word}."}
        )
        for word, text, at in entries
    ]
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": name, "items": items})


def atom_03(name: str, entries: list[Entry]) -> str:
    return atom(name, entries, space="http://purl.org/atom/ns#").replace("<feed ", '<feed version="0.3" ')


def video(name: str, entries: list[Entry]) -> str:
    return atom(
        name, entries, inside='<media:group><media:thumbnail url="https://i.example/{word}.jpg"/></media:group>'
    )


def doctype(name: str, entries: list[Entry]) -> str:
    before = '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "https://n.example/rss.dtd">'
    return rss(name, "".join(map(item, entries)), root='rss version="0.91"', before=before)


def german(name: str, entries: list[Entry]) -> str:
    months = ("Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez")
    return rss(name, "".join(
        item(entry, pubDate=f"{entry[2]:%d}. {months[entry[2].month - 1]} {entry[2]:%Y %H:%M}") for entry in entries
    ))  # fmt: skip


def broken(name: str, entries: list[Entry]) -> str:
    """Return XML that no strict parser accepts: a bare ampersand, and no end."""
    return rss(name, "".join(map(item, entries))).replace("About", "R&D about").removesuffix("</channel></rss>")


def encoded(name: str, entries: list[Entry], encoding: str) -> bytes:
    return (f'<?xml version="1.0" encoding="{encoding}"?>' + rss(name, "".join(map(item, entries)))).encode(encoding)


PLAIN = each(item)
KINDS: dict[str, Callable[[str, list[Entry]], str | bytes]] = {
    "rss20": PLAIN,
    "rss091": doctype,
    "rss092": lambda name, entries: rss(name, "".join(map(item, entries)), root='rss version="0.92"'),
    "rdf": rdf,
    "atom10": atom,
    "atom03": atom_03,
    "jsonfeed": json_feed,
    "microblog": lambda name, entries: json_feed(name, entries, titled=False),
    "mastodon": each(item, title="", description="&lt;p&gt;{text} {word}&lt;/p&gt;"),
    "podcast": each(
        item, link="", enclosure='<enclosure url="https://cdn.example/{word}.mp3" type="audio/mpeg" length="9"/>'
    ),
    "comic": each(item, description='&lt;img src="https://i.example/{word}.png" alt="A joke"&gt;'),
    "video": video,
    "one-link": each(item, link="https://news.example/today"),
    "fragments": each(item, guid="", link="https://news.example/day#{word}"),
    "guid-only": each(item, link=""),
    "no-guid": each(item, guid=""),
    "no-dates": each(item, pubDate=""),
    "odd-dates": each(item, pubDate="some time ago"),
    "german-dates": german,
    "same-titles": each(item, title="Daily notes", description="{text} {word}"),
    "markup-titles": each(item, title="Why Option&amp;lt;T&amp;gt; {word}"),
    "boilerplate": each(
        item, description="Read the whole story on our site. Subscribe to our newsletter today. {word}"
    ),
    "latin-1": lambda name, entries: encoded(name, entries, "iso-8859-1"),
    "cyrillic": lambda name, entries: encoded(name, [(w, "Новости " + t, at) for w, t, at in entries], "windows-1251"),
    "utf-16": lambda name, entries: encoded(name, entries, "utf-16"),
    "broken": broken,
    "slow-blog": PLAIN,
    "gzip": PLAIN,
    "brotli": PLAIN,
    "zstd": PLAIN,
}
CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "brotli": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "broken": ("deflate", zlib.compress),
}
SLOW = 20
"""Entries of the slow blog, a month apart: as many as are kept of a feed whatever their age."""


def entries_of(feed: int, name: str) -> list[Entry]:
    """Return this feed's share of the 2,000 entries, newest first."""
    usual = (ENTRIES - SLOW) // (FEEDS - 1)
    count = SLOW if name == "slow-blog" else usual + (feed < (ENTRIES - SLOW) % (FEEDS - 1))
    apart = timedelta(days=30) if name == "slow-blog" else timedelta(minutes=40)
    return [
        (f"w{feed:02}x{place:03}", f"The {TOPICS[(feed + place) % 10]} and the {TOPICS[place // 10 % 10]} of {name}",
         NOW - timedelta(minutes=feed + 5) - place * apart)
        for place in range(count)
    ]  # fmt: skip


@contextmanager
def publishers(documents: dict[str, bytes]) -> Iterator[int]:
    """Serve the feeds on loopback by path; yield their port; /gone answers 410, /empty entries without contents."""

    class FeedHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/")
            body = documents.get(name, b"")
            coding, compress = CODINGS.get(name, ("", bytes))
            self.send_response(200 if name in documents else 410 if name == "gone" else 404)
            self.send_header("Content-Type", "application/json" if body[:1] == b"{" else "application/rss+xml")
            if coding:
                self.send_header("Content-Encoding", coding)
            body = compress(body)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), FeedHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def cards_of(reader: httpx.Client, home: str, publisher: str) -> list[str]:
    """Return all cards of a feed, page by page."""
    cards: list[str] = []
    address: str | None = f"/feeds/stories?feed={quote_plus(publisher)}"
    while address:
        text = reader.get(home + address).raise_for_status().text
        cards += CARD.findall(text)
        further = re.search(r'href="(/feeds/stories[^"]+)" data-more', text)
        address = unescape(further[1]) if further else None
    return cards


@pytest.mark.timeout(2000)
def test_every_entry_of_thirty_feeds_is_on_the_page_of_its_feed(tmp_path: Path) -> None:
    assert len(KINDS) == FEEDS
    entries = {name: entries_of(feed, name) for feed, name in enumerate(KINDS)}
    assert sum(map(len, entries.values())) == ENTRIES
    written = {name: KINDS[name](name, entries[name]) for name in KINDS}
    documents = {name: text if isinstance(text, bytes) else text.encode() for name, text in written.items()}
    documents["empty"] = rss("empty", "<item></item>" * 10).encode()
    with publishers(documents) as port:
        addresses = [
            f"http://127.0.1.{number + 2}:{port}/{name}"
            for number, name in enumerate([*KINDS, "empty", "gone", "dead"])
        ]
        ownfeed = [sys.executable, "-m", "ownfeed"]
        with reading(ownfeed, addresses, 60, tmp_path) as printed, httpx.Client(follow_redirects=True) as reader:
            link = wait_for(lambda: re.search(r"Your feed\s+(\S+)", printed()), LIMIT_SEC)[1]
            wait_for(lambda: ranked_page(reader, link), LIMIT_SEC)
            home = link.partition("/enter")[0]
            lost = {name: [word for word, _, _ in entries[name]] for name in KINDS}
            end = time.monotonic() + LIMIT_SEC
            while any(lost.values()) and time.monotonic() < end:
                for name in [name for name, words in lost.items() if words]:
                    shown = "".join(cards_of(reader, home, name))
                    lost[name] = [word for word in lost[name] if word not in shown]
                time.sleep(2)
            assert {name: words for name, words in lost.items() if words} == {}
            managed = unescape(reader.get(home + "/feeds/manage").text)
    for name in KINDS:
        assert not re.search(rf"/{name} can't be read", managed), name
    assert "none of its 10 entries could be used" in managed
    assert re.search(r"/gone [^<]+", managed)
    assert re.search(r"/dead can't be read", managed)

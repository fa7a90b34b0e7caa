"""Which picture of an entry is chosen. Oracle: Media RSS 1.5.1, RSS 2.0, RFC 4287, and choices made by hand."""

from __future__ import annotations

import pytest

from backend.news.item import NewsItem
from backend.news.sources.download import Document, Validators
from backend.news.sources.picture_links import CANDIDATES_LIMIT, PictureLink, best_picture, links_of
from backend.news.sources.rss import read_feed
from tests.doubles.news import NOW

BASE = "https://courant.example/feed/"
RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>Courant</title>
<link>https://courant.example/</link>{items}</channel></rss>"""
ITEM = "<item><title>Story {n}</title><link>https://courant.example/{n}</link>{says}</item>"
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Courant</title><entry><title>Story 1</title>
<link href="https://courant.example/1"/><link rel="enclosure" type="image/png" href="../p.png"/></entry></feed>"""


def pictures(document: str) -> list[str]:
    rows = read_feed(Document(BASE, BASE, document.encode(), "", Validators()), now=NOW)
    return [row.picture for row in rows if isinstance(row, NewsItem)]


def test_every_kind_of_picture_link_is_read_as_an_absolute_address() -> None:
    said = [
        '<enclosure url="/e.jpg" type="image/jpeg" length="10"/>',
        '<media:content url="https://img.example/c.jpg?w=700&amp;s=a1" medium="image"/>',
        '<media:group><media:content url="https://img.example/g.webp" type="image/webp"/></media:group>',
        '<media:thumbnail url="https://img.example/t.jpg" width="300"/>',
        '<enclosure url="https://img.example/pod.mp3" type="audio/mpeg" length="9"/>',
        '<media:content url="https://img.example/v.mp4" type="video/mp4"/>'
        '<media:thumbnail url="https://img.example/v.jpg"/>',
        '<enclosure url="https://img.example/drawn.svg" type="image/svg+xml" length="9"/>',
        "",
    ]
    found = pictures(RSS.format(items="".join(ITEM.format(n=n, says=each) for n, each in enumerate(said))))
    assert found == [
        "https://courant.example/e.jpg",
        "https://img.example/c.jpg?w=700&s=a1",
        "https://img.example/g.webp",
        "https://img.example/t.jpg",
        "",
        "https://img.example/v.jpg",
        "",
        "",
    ]
    assert pictures(ATOM) == ["https://courant.example/p.png"]


def test_smallest_sufficient_picture_size_is_chosen_or_the_widest() -> None:
    def sizes(*widths: str) -> list[PictureLink]:
        return [PictureLink("content", f"https://i.example/{width}", "image/jpeg", "", width) for width in widths]

    assert best_picture(sizes("140", "700", "460", "1920"), BASE) == "https://i.example/700"
    assert best_picture(sizes("140", "460"), BASE) == "https://i.example/460"
    thumbnail = PictureLink("thumbnail", "https://i.example/t", width="90")
    unsaid = PictureLink("enclosure", "https://i.example/e", "image/png")
    assert best_picture([thumbnail, unsaid], BASE) == "https://i.example/e"
    assert best_picture(sizes("9" * 30, "-1", "x"), BASE).startswith("https://i.example/"), "a width that is none"


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:image/png;base64,AA", "file:///etc/passwd", "http://[", "ftp://a/b.jpg",
     "https://user:pw@i.example/a.jpg", "https://i.example:0/a.jpg", "https://i.example/a b.jpg",
     "https://i.example/" + "a" * 2_000],
)  # fmt: skip
def test_unsafe_picture_address_is_ignored(url: str) -> None:
    assert best_picture([PictureLink("content", url, "image/jpeg")], BASE) == ""


def test_entry_with_thousands_of_pictures_gives_a_few() -> None:
    many = {"media_content": [{"url": f"https://i.example/{n}.jpg"} for n in range(5_000)], "enclosures": "none"}
    assert len(links_of(many)) == CANDIDATES_LIMIT

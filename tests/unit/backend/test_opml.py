"""OPML in and out. Oracle: documents written by hand after the specification, and what was written read back."""

from __future__ import annotations

from pathlib import Path

import pytest

import backend.opml
from backend.opml import OpmlRefused, Subscription, parse_opml, read_opml, write_opml

LIST = b"""<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>Mine</title></head><body>
  <outline text="Sport" title="Sport">
    <outline type="rss" text="Rowing" xmlUrl="https://example.org/rowing.xml"/>
    <outline text="Deeper"><outline title="Chess &amp; Go" XMLURL=" https://example.org/chess "/></outline>
  </outline>
  <outline type="rss" text="Alone" xmlUrl="https://example.org/alone"/>
  <outline type="rss" text="Again" xmlUrl="https://example.org/rowing.xml"/>
</body></opml>"""
BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE opml [
<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<opml><body><outline text="&b;" xmlUrl="https://example.org/"/></body></opml>"""
OUTSIDE = b"""<?xml version="1.0"?>
<!DOCTYPE opml SYSTEM "file:///etc/hostname" [<!ENTITY x SYSTEM "file:///etc/hostname">]>
<opml><body><outline text="&x;" xmlUrl="https://example.org/"/></body></opml>"""


def refused(data: bytes) -> str:
    with pytest.raises(OpmlRefused) as told:
        parse_opml(data, "feeds.opml")
    assert "\n" not in told.value.detail
    return told.value.detail


def test_feeds_are_read_in_order_with_their_folder_name_and_line_each_address_once() -> None:
    assert parse_opml(LIST, "feeds.opml") == [
        Subscription("https://example.org/rowing.xml", "Rowing", "Sport", 4),
        Subscription("https://example.org/chess", "Chess & Go", "Deeper", 5),
        Subscription("https://example.org/alone", "Alone", "", 7),
    ]


def test_what_is_written_is_read_as_the_same_feeds() -> None:
    feeds = [
        Subscription("https://example.org/a?b=1&c=2", 'A "great" <paper>', ""),
        Subscription("https://x/", "X", "F"),
    ]
    again = parse_opml(write_opml(feeds, "Mine"), "mine")
    assert [(one.url, one.title, one.folder) for one in again] == [(one.url, one.title, one.folder) for one in feeds]


@pytest.mark.parametrize("data", [BOMB, OUTSIDE], ids=["bomb", "outside"])
def test_a_document_that_declares_entities_is_refused_at_the_declaration(data: bytes) -> None:
    assert "declares entities" in refused(data)


def test_broken_xml_is_refused_with_its_line() -> None:
    assert refused(LIST.replace(b"</outline>", b"</outlin>", 1)).startswith("feeds.opml, line 5: is not well-formed")


def test_a_feed_in_the_place_of_a_list_is_called_one() -> None:
    assert refused(b"<rss version='2.0'><channel/></rss>") == (
        "feeds.opml, line 1: is a feed itself; name its address (it begins with <rss>)."
    )
    assert "is no OPML" in refused(b"<html/>")


def test_a_list_without_feeds_is_refused() -> None:
    assert "lists no feed" in refused(b"<opml><body><outline text='empty'/></body></opml>")


def test_too_many_feeds_and_too_deep_a_nest_are_refused_at_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend.opml, "FEEDS_IN_A_LIST", 2)
    assert refused(LIST) == "feeds.opml, line 7: lists more than 2 feeds."
    assert "nested more than 30 deep" in refused(b"<opml>" + b"<outline>" * 40)


def test_a_file_beyond_the_limit_or_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "feeds.opml"
    with pytest.raises(OpmlRefused, match=r"feeds.opml can't be read: no such file"):
        read_opml(path)
    path.write_bytes(LIST)
    assert len(read_opml(path)) == 3
    monkeypatch.setattr(backend.opml, "OPML_LIMIT_BYTES", len(LIST) - 1)
    with pytest.raises(OpmlRefused, match="larger than the limit"):
        read_opml(path)

"""Reads feeds in the process of the test.

The server starts a Python of its own for each document, which takes longer than most tests of feeds. What that process
protects against is tested with it (`in_processes`), and servers that tests fork start it as well.
"""

from __future__ import annotations

import json

import pytest

from backend.news import discovery, plain_text
from backend.news.sources import feed_dates, feed_parser, json_feed, picture_links, rss
from backend.news.sources.feed_parser import ParsedFeed


def read_feeds_in_process() -> None:
    """Read all feeds in this process from now on."""
    for module in (rss, discovery):
        vars(module)["parse"] = _parse


def in_processes(patched: pytest.MonkeyPatch) -> None:
    """Read feeds as the server does, until the patch is undone."""
    for module in (rss, discovery):
        patched.setattr(module, "parse", feed_parser.parse)


def _parse(data: bytes, *, content_type: str = "", base: str = "") -> ParsedFeed:
    found = feed_parser._read(data, content_type, base, plain_text, picture_links, feed_dates, json_feed)
    return ParsedFeed(**json.loads(json.dumps(found)))

"""Finds the feeds that a web page links to, in a separate process with limits on its time and memory.

A page is as untrusted as a feed (see `backend.news.sources.feed_parser`). `page_links` runs this file as a script.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[3]))  # where the package is not installed
from backend.server.child_processes import limit_this_process, read_untrusted

READ_CPU_SEC = 10
READ_WALL_SEC = 60
READ_MEMORY_BYTES = 1024**3
ANSWER_LIMIT_BYTES = 1024**2
LINKS_LIMIT = 40
CHARS_LIMIT = 2_000
FEED_TYPES = re.compile(r"(rss|atom|rdf|feed|^application/json|^(?:text|application)/xml)", re.IGNORECASE)
FEED_PATHS = re.compile(r"(?:^|[/.=?-])(?:rss|atom|feed|feeds|rdf)(?:\.(?:xml|json|rdf|php))?/?$|\.(?:rss|atom)$", re.I)


class PageLink(NamedTuple):
    """A link of a page to a possible feed. href: as written. declared: by a <link> element, not only in the text."""

    href: str
    title: str
    declared: bool


class PageLinks(NamedTuple):
    """links: declared ones first. canonical: the address that the page calls its own. base: for relative links."""

    links: list[PageLink]
    canonical: str
    base: str


def page_links(data: bytes) -> PageLinks:
    """The feeds that the page in `data` links to; none if it can't be read within the limits."""
    try:
        code, output = read_untrusted(__file__, [], data, wall_sec=READ_WALL_SEC, answer_bytes=ANSWER_LIMIT_BYTES)
    except TimeoutError:
        return PageLinks([], "", "")
    if code != 0 or len(output) > ANSWER_LIMIT_BYTES:
        return PageLinks([], "", "")
    found = json.loads(output)
    return PageLinks([PageLink(*each) for each in found["links"]], found["canonical"], found["base"])


def _read(data: bytes) -> dict[str, Any]:
    from lxml import etree

    found: dict[str, Any] = {"links": [], "canonical": "", "base": ""}
    try:
        root = etree.fromstring(data, etree.HTMLParser(recover=True, no_network=True)) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        return found
    declared: list[tuple[str, str, bool]] = []
    in_text: list[tuple[str, str, bool]] = []
    for element in root.iter("base", "link", "a"):
        href = (element.get("href") or "").strip()
        if not href or len(href) > CHARS_LIMIT:
            continue
        relations = (element.get("rel") or "").lower().split()
        title = " ".join((element.get("title") or "").split())[:200]
        if element.tag == "base":
            found["base"] = found["base"] or href
        elif element.tag == "a":
            if FEED_PATHS.search(href.partition("#")[0]):
                in_text.append((href, title, False))
        elif "canonical" in relations:
            found["canonical"] = found["canonical"] or href
        elif "feed" in relations or ("alternate" in relations and FEED_TYPES.search(element.get("type") or "")):
            declared.append((href, title, True))
    unlike = {each[0]: each for each in reversed([*declared, *in_text])}
    found["links"] = sorted(unlike.values(), key=lambda each: [*declared, *in_text].index(each))[:LINKS_LIMIT]
    return found


if __name__ == "__main__":
    limit_this_process(READ_CPU_SEC, READ_MEMORY_BYTES, ANSWER_LIMIT_BYTES)
    sys.stdout.write(json.dumps(_read(sys.stdin.buffer.read())))

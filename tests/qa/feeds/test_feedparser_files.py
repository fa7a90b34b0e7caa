"""feedparser's own test files: the entries, titles and texts of each, compared with feedparser's results.

`OWNFEED_FEEDPARSER_TESTS` names the folder `tests` of feedparser's source distribution (`pip download --no-binary :all:
--no-deps feedparser`). Oracle: feedparser itself, with its texts made plain.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import feedparser
import pytest

from backend.news import plain_text
from backend.news.sources import feed_dates, feed_parser, json_feed, picture_links
from backend.news.sources.feed_parser import FeedUnreadable
from protocol.bodies import read_body, text_of_body

EQUAL_SHARE = 0.98
CONTENT_TYPE = re.compile(rb"^Header:\s+Content-[Tt]ype:\s*(.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def folder() -> Path:
    named = os.environ.get("OWNFEED_FEEDPARSER_TESTS", "")
    if not named or not Path(named).is_dir():
        pytest.skip("feedparser's test files are missing: set OWNFEED_FEEDPARSER_TESTS to their folder")
    return Path(named)


def difference(path: Path) -> str | None:
    """Return the difference in the first entry that differs; None if there is none."""
    data = path.read_bytes()
    said = CONTENT_TYPE.search(data[:4_000])
    content_type = said[1].decode("latin-1").strip() if said else ""
    theirs = feedparser.parse(data, response_headers={"content-type": content_type} if content_type else {})
    try:
        ours = feed_parser._read(data, content_type, "", plain_text, picture_links, feed_dates, json_feed)
    except FeedUnreadable as refused:
        # feedparser reads anything as an empty feed
        return None if not theirs.entries else f"{len(theirs.entries)} entries, refused: it {refused}"
    if len(ours["entries"]) != len(theirs.entries):
        return f"{len(theirs.entries)} entries, found {len(ours['entries'])}"
    if ours["head"]["title"] != title_of(theirs.feed):
        return f"title {title_of(theirs.feed)!r}, found {ours['head']['title']!r}"
    for mine, their in zip(ours["entries"], theirs.entries, strict=True):
        expected = texts_of(their)
        found = {
            "title": mine["title"],
            **{name: text_of_body(read_body(mine[name])) for name in ("summary", "content")},
        }
        for name in expected:
            if "".join(found[name].split()) != "".join(expected[name].split()):  # a body breaks lines elsewhere
                return f"{name} {expected[name]!r}, found {found[name]!r}"
    return None


def title_of(element: Any) -> str:
    title = element.get("title") or ""
    kind = (element.get("title_detail") or {}).get("type", "text/html")
    return plain_text.one_line(title if kind == "text/plain" else plain_text.plain(title))


def texts_of(element: Any) -> dict[str, str]:
    contents = [each.value for each in element.get("content", ()) if "value" in each]
    texts = {"summary": element.get("summary") or "", "content": contents[0] if contents else ""}
    return {"title": title_of(element)} | {name: plain_text.plain(text) for name, text in texts.items()}


def test_entries_and_texts_match_those_of_feedparser(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*.xml") if path.is_file())
    found = {path: difference(path) for path in files}
    differences = {str(path.relative_to(folder)): why for path, why in found.items() if why}
    share = 1 - len(differences) / len(files)
    report = "\n".join(f"  {name}: {why}" for name, why in differences.items())
    print(f"{len(files) - len(differences)} of {len(files)} files equal ({share:.2%})\n{report}")  # noqa: T201 (the figures, with -s)
    assert share >= EQUAL_SHARE, report

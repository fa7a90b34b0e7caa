"""Reads JSON Feed 1.0 and 1.1 (jsonfeed.org) into the structure that feedparser returns for RSS and Atom.

The parsing process runs this file, which imports nothing of Ownfeed.
"""

import json
from html import escape
from typing import Any

JSON_FEED = "jsonfeed.org/version/"
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class NoJsonFeed(ValueError):
    """The document is JSON, but not a JSON Feed; the message continues after its name."""


def is_json(data: bytes) -> bool:
    """Whether a document begins as a JSON object, which no XML document does."""
    for mark in _BYTE_ORDER_MARKS:
        data = data.removeprefix(mark)
    return data[:1_000].replace(b"\x00", b"").lstrip()[:1] == b"{"


def read_json_feed(data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The feed's head and its entries; a member of the wrong type counts as missing. Raises NoJsonFeed."""
    try:
        feed: Any = json.loads(data)
    except (ValueError, RecursionError) as broken:
        raise NoJsonFeed(f"is neither XML nor JSON ({broken})") from broken
    items = feed.get("items")
    named = JSON_FEED in _text(feed, "version") or ("version" not in feed and bool(items))
    if not isinstance(items, list) or not named:
        raise NoJsonFeed("is JSON, but not a JSON Feed")
    head = {
        "title": _text(feed, "title"),
        "title_detail": {"type": "text/plain"},
        "link": _text(feed, "home_page_url"),
        "language": _text(feed, "language"),
    }
    return head, [_entry(item) for item in items if isinstance(item, dict)]


def _entry(item: dict[str, Any]) -> dict[str, Any]:
    html = _text(item, "content_html") or _as_html(_text(item, "content_text"))
    attachments = item.get("attachments")
    tags = item.get("tags")
    pictures = [_text(item, name) for name in ("image", "banner_image")]
    return {
        "id": _text(item, "id"),
        "link": _text(item, "url") or _text(item, "external_url"),
        "title": _text(item, "title"),
        "title_detail": {"type": "text/plain"},
        "summary": _as_html(_text(item, "summary")),
        "content": [{"type": "text/html", "value": html}] if html else [],
        "published": _text(item, "date_published"),
        "updated": _text(item, "date_modified"),
        "tags": [{"term": tag} for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        "enclosures": [
            {"href": _text(one, "url"), "type": _text(one, "mime_type"), "length": _text(one, "size_in_bytes")}
            for one in (attachments if isinstance(attachments, list) else ())
            if isinstance(one, dict)
        ],
        "media_content": [{"url": url, "medium": "image"} for url in pictures if url],
    }


def _text(values: dict[str, Any], name: str) -> str:
    """A member as text. Numbers are accepted, since version 1.0 allowed them as ids."""
    found = values.get(name)
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return ""
    return str(found).strip()


def _as_html(text: str) -> str:
    """Plain text as HTML with the same paragraphs and lines."""
    paragraphs = [part for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]
    return "".join(f"<p>{escape(part.strip(), quote=False)}</p>".replace("\n", "<br>") for part in paragraphs)

"""Addresses of feeds: completed as a browser would, and checked before a feed is followed."""

from __future__ import annotations

import re
from hashlib import blake2b
from urllib.parse import urlsplit

import httpx

from backend.news.errors import FeedRefused
from backend.news.plain_text import shortened
from backend.news.public_addresses import PORTS_READ, is_web_port

URL_CHARS = 2_000
KEY_CHARS = 200
HOST_CHARS = 255
SHOWN_CHARS = 80
"""How many characters of a part of an address an error quotes."""
_FEED_SCHEME = re.compile(r"^(?:feed|rss|itpc|pcast):(?://)?", re.IGNORECASE)
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_HOST = re.compile(
    r"^(?:[^\s/?#@:]+\.[^\s/?#@:.]{2,}|localhost|\d+\.\d+\.\d+\.\d+|\[[0-9a-f:.]+\])(?::\d+)?(?:[/?#]|$)", re.I
)


def completed(address: str) -> str:
    """An address with its scheme: `feed://` and `feed:https://` are read as what they stand for, none is http.

    What can't be completed is returned unchanged.
    """
    address = address.strip()
    bare = _FEED_SCHEME.sub("", address)
    if bare.lower().startswith(("http://", "https://")):
        scheme, rest = bare.split("://", 1)
        return f"{scheme.lower()}://{rest}"
    if bare.startswith("//"):
        bare = bare[2:]
    if bare != address or not _SCHEME.match(address) or _HOST.match(address):
        return f"http://{bare}" if _HOST.match(bare) else address
    return address


def checked_url(url: str) -> str:
    """Return an address that may be followed; what its name resolves to is checked at every fetch.

    Raises FeedRefused.
    """
    if len(url) > URL_CHARS:
        raise FeedRefused(f"it has more than {URL_CHARS:,} characters")
    if not url.isprintable() or " " in url:
        raise FeedRefused("it contains spaces or control characters")
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets around something that is not an IPv6 address
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FeedRefused("the address must be complete and start with http:// or https://")
    port = parts.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2]
    if port and not (port.isascii() and port.isdigit() and is_web_port(int(port))):
        raise FeedRefused(f"its port is {shortened(port, SHOWN_CHARS)!r}; feeds are read from {PORTS_READ}", PORTS_READ)
    try:
        httpx.URL(url).host.encode()  # decodes the name, as the download will
    except (httpx.InvalidURL, ValueError) as broken:
        host = shortened(parts.hostname, SHOWN_CHARS)
        raise FeedRefused(f"{host!r} can't be the name or address of a server") from broken
    return url


def key_of(url: str) -> str:
    """A feed's key by the address at which it is first followed: itself, or its beginning and a hash of it."""
    if len(url) <= KEY_CHARS:
        return url
    return f"{url[: KEY_CHARS - 33]}#{blake2b(url.encode(), digest_size=16).hexdigest()}"


def host_of(url: str) -> str:
    """The host of an address with a port of its own, in lower case; '' if it has none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()[:HOST_CHARS]
    except ValueError:
        return ""

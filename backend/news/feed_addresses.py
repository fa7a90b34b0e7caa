"""Completes and checks the addresses of feeds, and derives the key and source under which a feed is stored."""

import re
from hashlib import blake2b
from pathlib import Path
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
    """The address with http or https as its scheme, http by default; `feed:` prefixes are removed.

    An address that can't be completed is returned unchanged.
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
    """Return `url` if it may be followed; raises FeedRefused if not.

    What its host name resolves to is checked at each fetch.
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
    """A feed's key: the address at which it was first followed, or its beginning and a hash if it is too long."""
    if len(url) <= KEY_CHARS:
        return url
    return f"{url[: KEY_CHARS - 33]}#{blake2b(url.encode(), digest_size=16).hexdigest()}"


def host_of(url: str) -> str:
    """The host and explicit port of an address, in lower case; '' if it has no host."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()[:HOST_CHARS]
    except ValueError:
        return ""


FILE_PREFIX = "rss "
"""Begins the source of a feed that is a file."""


def source_of(location: str) -> str:
    """The source of a feed at an address or in a file, at most 200 characters."""
    if "://" in location:
        return key_of(location)
    path = str(Path(location).absolute())
    kept = KEY_CHARS - len(FILE_PREFIX)
    return FILE_PREFIX + (path if len(path) <= kept else f"…{path[1 - kept :]}")


def is_feed(source: str) -> bool:
    """Whether a source is a feed, at an address or in a file; other sources are archives and the newsroom."""
    return "://" in source or source.startswith(FILE_PREFIX)

"""Chooses one of the pictures that a feed gives for an entry, and finds the entry's audio and video.

Feeds give pictures as enclosures (RSS, Atom) and by Media RSS (`media:content`, `media:thumbnail`), often one picture
in several sizes, along with videos.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

WIDE_ENOUGH = 480
"""Of several sizes, the smallest that is at least this wide is chosen; cards have no more pixels."""
CANDIDATES_LIMIT = 20
LINK_LIMIT_CHARS = 2_000
WIDTH_LIMIT = 100_000
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif")
"""Endings of picture addresses, for feeds that give no type."""
SOUNDS = (".mp3", ".m4a", ".ogg", ".opus")
MEDIA_LIMIT = 3
KINDS = ("content", "enclosure", "image", "text", "thumbnail")
"""Where a feed gives a picture: Media RSS, an enclosure, the entry's image, the text, a thumbnail. Without widths, an
earlier kind is preferred.
"""


class PictureLink(NamedTuple):
    """A picture with the feed's own values, empty if missing.

    kind: of KINDS. type: a media type. medium: of Media RSS, such as 'image'.
    """

    kind: str
    url: str
    type: str = ""
    medium: str = ""
    width: str = ""


def links_of(entry: Mapping[str, object]) -> list[PictureLink]:
    """The pictures of an entry as feedparser returns it, at most CANDIDATES_LIMIT, without video and audio."""
    named = (
        ("content", "media_content"),
        ("enclosure", "enclosures"),
        ("image", "image"),
        ("thumbnail", "media_thumbnail"),
    )
    found: list[PictureLink] = []
    for kind, name in named:
        # feedparser turns an entry's <image> into its href
        each = [entry.get(name), {"href": entry.get("href")}] if kind == "image" else entry.get(name)
        for one in each if isinstance(each, list) else ():
            if not isinstance(one, Mapping):
                continue
            attributes = {key: str(one.get(key) or "").strip() for key in ("type", "medium", "width")}
            url = str(one.get("url") or one.get("href") or "").strip()
            link = PictureLink(kind, url, attributes["type"].lower(), attributes["medium"].lower(), attributes["width"])
            if url and len(url) <= LINK_LIMIT_CHARS and _is_picture(link):
                found.append(link)
    return found[:CANDIDATES_LIMIT]


class MediaLink(NamedTuple):
    """Audio or video of an entry. kind: 'audio' or 'video'. seconds, bytes: 0 if the feed doesn't say."""

    kind: str
    url: str
    seconds: int = 0
    bytes: int = 0


def media_of(entry: Mapping[str, object]) -> list[MediaLink]:
    """The audio and video of an entry, at most MEDIA_LIMIT."""
    if entry.get("yt_videoid") and isinstance(link := entry.get("link"), str):
        return [MediaLink("video", link)]
    found: dict[str, MediaLink] = {}
    for name in ("enclosures", "media_content"):
        each = entry.get(name)
        for one in each if isinstance(each, list) else ():
            url = str(one.get("href") or one.get("url") or "").strip()
            media_type = str(one.get("type") or one.get("medium") or "").strip().lower()
            kind = media_type.partition("/")[0] or ("audio" if _path(url).endswith(SOUNDS) else "")
            if kind in ("audio", "video") and url and len(url) <= LINK_LIMIT_CHARS:
                seconds = _seconds(one.get("duration") or (entry.get("itunes_duration") if not found else ""))
                found.setdefault(url, MediaLink(kind, url, seconds, _count(one.get("length") or one.get("filesize"))))
    return list(found.values())[:MEDIA_LIMIT]


def _seconds(value: object) -> int:
    """'1:02:03', '62:03' or '3723' as seconds; 0 for anything else."""
    parts = str(value or "").strip().split(".")[0].split(":")
    if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts) or len(parts) > 3:
        return 0
    return sum(int(part) * 60**place for place, part in enumerate(reversed(parts)))


def _count(value: object) -> int:
    digits = str(value or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 13 else 0


def best_picture(named: Iterable[PictureLink], base: str) -> str:
    """The absolute address of the best picture; '' if none can be fetched. base: for relative addresses."""
    best = sorted((link for link in named if _absolute(link, base)), key=_order)
    return _absolute(best[0], base) if best else ""


def _order(link: PictureLink) -> tuple[int, int, int]:
    """Sort key: the narrowest of the wide enough ones first, then those without a width, then the widest others."""
    width, kind = _width(link), KINDS.index(link.kind)
    if width >= WIDE_ENOUGH:
        return 0, width, kind
    return (1, kind, 0) if not width and link.kind != "thumbnail" else (2, -width, kind)


def _is_picture(link: PictureLink) -> bool:
    if link.type:
        return link.type.startswith("image/") and "svg" not in link.type
    if link.medium:
        return link.medium == "image"
    return link.kind in ("image", "thumbnail") or _path(link.url).endswith(ENDINGS)


def _width(link: PictureLink) -> int:
    digits = link.width.removesuffix("px")
    return min(int(digits), WIDTH_LIMIT) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def _absolute(link: PictureLink, base: str) -> str:
    """Return the absolute http or https address without its fragment; '' for any other."""
    try:
        parts = urlsplit(urljoin(base, link.url))
        well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    address = parts._replace(fragment="").geturl()
    plain = address.isprintable() and " " not in address and parts.username is None
    return address if well_formed and plain and len(address) <= LINK_LIMIT_CHARS else ""


def _path(url: str) -> str:
    """An address's path in lower case; '' if the address is invalid."""
    try:
        return urlsplit(url).path.lower()
    except ValueError:
        return ""

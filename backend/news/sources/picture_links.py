"""Which of the pictures that a feed names for one entry is its story's: one, by its width, never of an unknown kind.

Feeds name pictures as enclosures (RSS, Atom) and by Media RSS (`media:content`, `media:thumbnail`), often one picture
in several sizes, and video beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

WIDE_ENOUGH = 480
"""Of several sizes the smallest that is so wide is taken: cards have no more pixels."""
CANDIDATES_LIMIT = 20
LINK_LIMIT_CHARS = 2_000
WIDTH_LIMIT = 100_000
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif")
"""Of addresses whose feed says no type."""
SOUNDS = (".mp3", ".m4a", ".ogg", ".opus")
MEDIA_LIMIT = 3
KINDS = ("content", "enclosure", "image", "text", "thumbnail")
"""By Media RSS, as an enclosure, as the entry's own image, in its text, as a thumbnail: without a width the former is
the better one."""


class PictureLink(NamedTuple):
    """One picture as a feed names it; every value as in the feed, empty if the feed has none.

    kind: of KINDS. type: a media type. medium: of Media RSS, such as 'image'.
    """

    kind: str
    url: str
    type: str = ""
    medium: str = ""
    width: str = ""


def links_of(entry: Mapping[str, object]) -> list[PictureLink]:
    """The pictures of an entry as feedparser has it, CANDIDATES_LIMIT at most, video and sound left out."""
    named = (
        ("content", "media_content"),
        ("enclosure", "enclosures"),
        ("image", "image"),
        ("thumbnail", "media_thumbnail"),
    )
    found: list[PictureLink] = []
    for kind, name in named:
        # feedparser has an <image> of an entry as its href
        each = [entry.get(name), {"href": entry.get("href")}] if kind == "image" else entry.get(name)
        for one in each if isinstance(each, list) else ():
            if not isinstance(one, Mapping):
                continue
            said = {key: str(one.get(key) or "").strip() for key in ("type", "medium", "width")}
            url = str(one.get("url") or one.get("href") or "").strip()
            link = PictureLink(kind, url, said["type"].lower(), said["medium"].lower(), said["width"])
            if url and len(url) <= LINK_LIMIT_CHARS and _is_picture(link):
                found.append(link)
    return found[:CANDIDATES_LIMIT]


class MediaLink(NamedTuple):
    """Audio or video of an entry. kind: 'audio' or 'video'; seconds and bytes: 0 where the feed doesn't say."""

    kind: str
    url: str
    seconds: int = 0
    bytes: int = 0


def media_of(entry: Mapping[str, object]) -> list[MediaLink]:
    """The audio and video that an entry names, MEDIA_LIMIT at most."""
    if entry.get("yt_videoid") and isinstance(link := entry.get("link"), str):
        return [MediaLink("video", link)]
    found: dict[str, MediaLink] = {}
    for name in ("enclosures", "media_content"):
        each = entry.get(name)
        for one in each if isinstance(each, list) else ():
            url = str(one.get("href") or one.get("url") or "").strip()
            said = str(one.get("type") or one.get("medium") or "").strip().lower()
            kind = said.partition("/")[0] or ("audio" if _path(url).endswith(SOUNDS) else "")
            if kind in ("audio", "video") and url and len(url) <= LINK_LIMIT_CHARS:
                seconds = _seconds(one.get("duration") or (entry.get("itunes_duration") if not found else ""))
                found.setdefault(url, MediaLink(kind, url, seconds, _count(one.get("length") or one.get("filesize"))))
    return list(found.values())[:MEDIA_LIMIT]


def _seconds(said: object) -> int:
    """'1:02:03', '62:03' or '3723' as seconds; 0 for anything else."""
    parts = str(said or "").strip().split(".")[0].split(":")
    if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts) or len(parts) > 3:
        return 0
    return sum(int(part) * 60**place for place, part in enumerate(reversed(parts)))


def _count(said: object) -> int:
    digits = str(said or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 13 else 0


def best_picture(named: Iterable[PictureLink], base: str) -> str:
    """The whole address of the one to take, '' where there is none that can be fetched; base: of relative ones."""
    best = sorted((link for link in named if _whole(link, base)), key=_order)
    return _whole(best[0], base) if best else ""


def _order(link: PictureLink) -> tuple[int, int, int]:
    """Wide enough comes first, the narrowest of them; then what says no width; then the widest of the narrow ones."""
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


def _whole(link: PictureLink, base: str) -> str:
    """An http or https address with a host, its fragment left out; '' for any other."""
    try:
        parts = urlsplit(urljoin(base, link.url))
        well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    address = parts._replace(fragment="").geturl()
    plain = address.isprintable() and " " not in address and parts.username is None
    return address if well_formed and plain and len(address) <= LINK_LIMIT_CHARS else ""


def _path(url: str) -> str:
    """An address's path in lower case; '' for what is no address."""
    try:
        return urlsplit(url).path.lower()
    except ValueError:
        return ""

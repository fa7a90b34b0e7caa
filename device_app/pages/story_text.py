"""Writes a story's checked text as HTML of the story page, with the device's own pictures.

Formal guarantees: the HTML has only elements and attributes written in this file, around escaped text. It contains no
address that a browser loads by itself except pictures on this device; every other address is a link, which opens only
when clicked.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from protocol import formatting
from protocol.bodies import Piece, escaped
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.pages", "words.toml")
LINK = 'rel="noreferrer noopener external" target="_blank"'
WITH_DIRECTION = frozenset({"p", "h2", "h3", "h4", "li", "th", "td", "figcaption"})
"""Elements whose direction follows their own text."""


class ShownPicture(NamedTuple):
    """A picture on this device: its address here, and its size in pixels."""

    address: str
    width: int
    height: int


def story_html(
    pieces: Sequence[Piece],
    picture: Callable[[int], ShownPicture | None],
    is_home: Callable[[str], bool] = lambda url: False,
) -> str:
    """Return the HTML of a text.

    picture: the device's own copy of the text's n-th picture, from 1; None if it isn't here. is_home: whether a link
    leads to the host of this very page; such links are left out.
    """
    parts: list[str] = []
    count, links = 0, list[bool]()
    for piece in pieces:
        if piece.kind == "text":
            parts.append(escaped(piece.value))
        elif piece.value == "img":
            count += 1
            parts.append(_picture(piece.attributes, picture(count), is_home))
        elif piece.value in ("audio", "video"):
            parts.append(_media(piece, is_home))
        elif piece.value == "a":
            if piece.kind == "start":
                links.append(not is_home(piece.attributes["href"]))
                parts.append(f'<a href="{escaped(piece.attributes["href"])}" {LINK}>' if links[-1] else "")
            elif links.pop():
                parts.append("</a>")
        else:
            parts.append(_tag(piece))
    return "".join(parts)


def _tag(piece: Piece) -> str:
    name, starts = piece.value, piece.kind == "start"
    if name == "table":
        region = f'<div class="wide" role="region" aria-label="{escaped(WORDS("table_of_text"))}" tabindex="0"><table>'
        return region if starts else "</table></div>"
    if name == "pre":
        return '<pre dir="ltr" tabindex="0">' if starts else "</pre>"
    if not starts:
        return f"</{name}>"
    return f'<{name} dir="auto">' if name in WITH_DIRECTION else f"<{name}>"


def _picture(attributes: Mapping[str, str], here: ShownPicture | None, is_home: Callable[[str], bool]) -> str:
    alt, title, source = attributes.get("alt", ""), attributes.get("title", ""), attributes.get("src", "")
    parts = []
    if here is not None:
        size = f'width="{here.width}" height="{here.height}" loading="lazy" decoding="async"'
        parts.append(f'<img class="of-text" src="{escaped(here.address)}" alt="{escaped(alt or title)}" {size}>')
    else:
        words = WORDS("picture_not_here", alt=alt) if alt else WORDS("picture_without_words")
        link = _link(source, WORDS("picture_at", host=_host(source))) if source and not is_home(source) else ""
        parts.append(f'<p class="no-picture" dir="auto">{escaped(words)}{" " if link else ""}{link}</p>')
    if title:
        parts.append(f'<p class="picture-title" dir="auto">{escaped(title)}</p>')
    return "".join(parts)


def _media(piece: Piece, is_home: Callable[[str], bool]) -> str:
    attributes = piece.attributes
    source = attributes["src"]
    if is_home(source):
        return ""
    facts = []
    if seconds := int(attributes.get("seconds", "0")):
        facts.append(WORDS("media_minutes", minutes=max(1, (seconds + 30) // 60)))
    if size := int(attributes.get("bytes", "0")):
        facts.append(formatting.size(size))
    facts.append(WORDS("media_visit"))
    link = _link(source, WORDS("listen_at" if piece.value == "audio" else "watch_at", host=_host(source)))
    return f'<p class="media">{link} <span class="soft">{escaped(" · ".join(facts))}</span></p>'


def _link(url: str, words: str) -> str:
    return f'<a href="{escaped(url)}" {LINK}>{escaped(words)}</a>'


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")

"""Text as the pool keeps it: plain, without control characters, every script and emoji intact."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser

# C0 and C1 controls, DEL and lone surrogates. Joiners and direction marks stay: emoji and Arabic need them.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# Word's <![if ...]>, at which html.parser gives up with an AssertionError where it doesn't know the word.
_MARKED_SECTION = re.compile(r"<!\[(?!CDATA\[)[^>]{0,200}>?", re.IGNORECASE)
_PARAGRAPH_BREAK = re.compile(r"\n\s*\n")
CUT = "\n\n[…]"
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "head"})
_BLOCKS = frozenset(
    """
    address article aside blockquote div dl dt dd fieldset figure figcaption footer form h1 h2 h3 h4 h5 h6
    header hr li main nav ol p pre section table tr ul
    """.split()  # noqa: SIM905 (a list would take a screen)
)


def one_line(text: str) -> str:
    """`text` without control characters, each run of white space one space."""
    return " ".join(_CONTROLS.sub("", text).split())


def paragraphs(text: str) -> str:
    """`text` without control characters, its paragraphs separated by one blank line."""
    parts = (one_line(part) for part in _PARAGRAPH_BREAK.split(_CONTROLS.sub("", text)))
    return "\n\n".join(part for part in parts if part)


def plain(html: str) -> str:
    """The readable text of a piece of HTML as paragraphs; scripts, styles and all markup are gone."""
    if "<" not in html and "&" not in html:
        return paragraphs(html)
    reader = _TextReader()
    reader.feed(_MARKED_SECTION.sub("", _CONTROLS.sub("", html)))
    reader.close()
    return paragraphs("".join(reader.parts))


def shortened(text: str, limit_chars: int) -> str:
    """`text` cut after a whole word to at most `limit_chars`, with an ellipsis where something was cut."""
    if len(text) <= limit_chars:
        return text
    head = text[: limit_chars - 1]
    return (head.rsplit(" ", 1)[0] if " " in head else head).rstrip(" ,;:.") + "…"


class _TextReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BLOCKS:
            self.parts.append("\n\n")
        elif tag == "br":
            self.parts.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HIDDEN:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def longest_whole(sizes: Iterable[int], limit: int) -> int:
    """The length at which texts of such sizes are cut so that they come to `limit` together at most: the shorter stay
    whole, and each of the longer has the same share of what they leave."""
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        level = limit // (len(ordered) - place)
        if size > level:
            return level
        limit -= size
    return ordered[-1] if ordered else 0


def cut_text(text: str, level: int) -> str:
    """Its whole paragraphs up to `level` characters, and a mark that there is more; the first is cut if it must be."""
    if len(text) <= level:
        return text
    begun = text[: max(level - len(CUT), 0)]
    return ((begun.rpartition("\n\n")[0] or begun) + CUT)[:level]

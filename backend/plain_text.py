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

_TAIL_CHARS = 500
_NAMED_CHARS = 160
"""Of a title or a site's name in a trailer; a trailer has two of them."""
_CUT_MARK = re.compile(r"\s*\[\s*(?:…|\.\.\.)\s*\]$")
_LEAD = re.compile(
    r"(?:^|(?<=[.!?…\])\"”’»\n])\s*)(?:(?:The|This) (?:post|article|story|entry)|(?:Der|Dieser) (?:Beitrag|Artikel)|"
    r"(?:L[’']|Cet )article|(?:La|Esta) entrada|(?:El|Este) artículo|(?:L[’']|Questo )articolo|"
    r"(?:O|Este) (?:post|artigo)|(?:Het|Dit) (?:bericht|artikel)) "
)
_APPEARED = re.compile(
    r" (?:appeared first on|first appeared on|originally appeared on|was originally published (?:on|in|at)|"
    r"erschien zuerst auf|est apparu en premier sur|(?:se publicó|apareció|aparece) primero en|proviene da|"
    r"è apparso per primo su|(?:apareceu|aparece) primeiro em|verscheen (?:eerst|als eerste) op) "
    rf"(?P<site>[^\n]{{1,{_NAMED_CHARS}}})$"
)
_GO_ON = (
    r"(?:continue reading|keep reading|read more|read on|read (?:the )?(?:full|whole|entire) (?:article|story|post)|"
    r"read the rest of this (?:article|story|post|entry)|weiterlesen|mehr lesen|lire la suite|leer más|seguir leyendo|"
    r"leggi tutto|continua a leggere|lees (?:verder|meer)|ler mais|continue lendo|läs mer|\(more)"
)
_GO_ON_ALONE = re.compile(
    rf"(?:^|\n\n|(?<=[.!?…\])\"”’»])\s+)[\[(]?{_GO_ON}(?P<what>[^\n]{{0,{_NAMED_CHARS}}}?)\s*(?:…|\.\.\.)?[\])]?$",
    re.IGNORECASE,
)
_GO_ON_ARROW = re.compile(
    rf"(?:^|\s+)[\[(]?{_GO_ON}(?:\s[^\n.!?]{{0,{_NAMED_CHARS}}}?)?\s*[→»›>]+[\])]?$", re.IGNORECASE
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


def untrailed(text: str, title: str) -> str:
    """Paragraphs of a feed's entry without what programs of publishers put below them: "The post <title> appeared first
    on <site>.", "Continue reading". Where a way on stood there, "[…]" says that there is more.

    A sentence that only looks like it stays: the first form has the entry's own title in it, the second no full stop.
    """
    if text == "Comments":
        return ""
    teased, before = False, None
    while text != before:
        before, tail = text, text[-_TAIL_CHARS:]
        text = text[: len(text) - len(tail) + _appeared_at(tail, title)].rstrip()
        tail = text[-_TAIL_CHARS:]
        told = _GO_ON_ARROW.search(tail) or _GO_ON_ALONE.search(tail)
        if told and (told.re is _GO_ON_ARROW or _names(told["what"], title)):
            text, teased = text[: len(text) - len(tail) + told.start()].rstrip(), True
    if not teased or not text or _CUT_MARK.search(text):
        return text
    return text.rstrip(" …") + " […]"


def _appeared_at(tail: str, title: str) -> int:
    """Where the sentence on the site where it appeared begins; the end of `tail` where there is none."""
    end = _APPEARED.search(tail)
    if end is None or re.search(r"\w{4,}[.!?]\s", end["site"]):
        return len(tail)
    whole = _letters(title)
    for lead in _LEAD.finditer(tail, max(0, end.start() - 2 * _NAMED_CHARS)):
        said = tail[lead.end() : end.start()]
        named = _letters(said)
        if named and (named == whole or (said.endswith(("…", "...")) and whole.startswith(named))):
            return lead.start()
    return len(tail)


def _names(what: str, title: str) -> bool:
    """Whether these words after "Read more" are none, or the entry's title, and no sentence ends with them."""
    return _letters(what) == _letters(title) if _letters(what) else not re.search(r"[.!?]", what)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def beginning(text: str, limit_chars: int) -> str:
    """The first `limit_chars` of a text as one line, with an ellipsis where its feed cut it or this does."""
    line = one_line(text)
    whole = _CUT_MARK.sub("", line)
    if whole != line and not whole.endswith((".", "!", "?", "”", '"')):
        whole = whole.rstrip(" …") + "…"
    return shortened(whole, limit_chars)


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

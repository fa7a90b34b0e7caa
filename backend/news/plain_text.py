"""Converts text and HTML to plain text without control characters; all scripts and emoji stay intact."""

import re
from collections.abc import Iterable
from functools import cache
from html import unescape
from typing import Any

# C0 and C1 controls, DEL and lone surrogates. Joiners and direction marks stay: emoji and Arabic need them.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_PARAGRAPH_BREAK = re.compile(r"\n\s*\n")
HIDDEN = frozenset(
    """
    script style template noscript svg math iframe object embed applet canvas head title textarea select option button
    xmp noembed noframes plaintext
    """.split()  # noqa: SIM905 (a list would take a screen)
)
"""Elements that no reader sees as text."""
_BLOCKS = frozenset(
    """
    address article aside blockquote br div dl dt dd fieldset figure figcaption footer form h1 h2 h3 h4 h5 h6
    header hr li main nav ol p pre section table tr ul
    """.split()  # noqa: SIM905 (a list would take a screen)
)

_TAIL_CHARS = 500
_NAMED_CHARS = 160
"""Maximum length of the title and of the site's name in a trailer."""
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
    """`text` without control characters, with each run of white space as one space."""
    return " ".join(_CONTROLS.sub("", text).split())


def paragraphs(text: str) -> str:
    """`text` without control characters, its paragraphs separated by one blank line."""
    parts = (one_line(part) for part in _PARAGRAPH_BREAK.split(_CONTROLS.sub("", text)))
    return "\n\n".join(part for part in parts if part)


def plain(html: str) -> str:
    """The readable text of a piece of HTML as paragraphs, without scripts, styles and markup."""
    if "<" not in html and "&" not in html:
        return paragraphs(html)
    cleaned = _cleaner().clean(_CONTROLS.sub("", html)).replace("<br>", "\n")
    return paragraphs(unescape(re.sub("<[^>]*>", "\n\n", cleaned)))


@cache
def _cleaner() -> Any:
    import nh3  # the bare command reads OPML with this module and has no nh3

    return nh3.Cleaner(tags=set(_BLOCKS), clean_content_tags=set(HIDDEN), attributes={}, link_rel=None)


def shortened(text: str, limit_chars: int) -> str:
    """`text` cut after a whole word to at most `limit_chars`, with an ellipsis if something was cut."""
    if len(text) <= limit_chars:
        return text
    head = text[: limit_chars - 1]
    return (head.rsplit(" ", 1)[0] if " " in head else head).rstrip(" ,;:.") + "…"


def untrailed(text: str, title: str) -> str:
    """The text without trailers that publishing software appends to a feed's entries.

    Examples: "The post <title> appeared first on <site>.", "Continue reading". If the trailer linked to more text,
    "[…]" marks that there is more. Similar sentences stay: a trailer of the first form contains the entry's own title,
    one of the second has no full stop.
    """
    if text == "Comments":
        return ""
    teased, before = False, None
    while text != before:
        before, tail = text, text[-_TAIL_CHARS:]
        text = text[: len(text) - len(tail) + _appeared_at(tail, title)].rstrip()
        tail = text[-_TAIL_CHARS:]
        found = _GO_ON_ARROW.search(tail) or _GO_ON_ALONE.search(tail)
        if found and (found.re is _GO_ON_ARROW or _names(found["what"], title)):
            text, teased = text[: len(text) - len(tail) + found.start()].rstrip(), True
    if not teased or not text or _CUT_MARK.search(text):
        return text
    return text.rstrip(" …") + " […]"


def _appeared_at(tail: str, title: str) -> int:
    """Where the "appeared first on" sentence begins; the end of `tail` if there is none."""
    end = _APPEARED.search(tail)
    if end is None or re.search(r"\w{4,}[.!?]\s", end["site"]):
        return len(tail)
    letters = _letters(title)
    for lead in _LEAD.finditer(tail, max(0, end.start() - 2 * _NAMED_CHARS)):
        candidate = tail[lead.end() : end.start()]
        named = _letters(candidate)
        if named and (named == letters or (candidate.endswith(("…", "...")) and letters.startswith(named))):
            return lead.start()
    return len(tail)


def _names(what: str, title: str) -> bool:
    """Whether the text after "Read more" is empty or the entry's title, and doesn't end a sentence."""
    return _letters(what) == _letters(title) if _letters(what) else not re.search(r"[.!?]", what)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def beginning(text: str, limit_chars: int) -> str:
    """The first `limit_chars` of a text as one line, with an ellipsis if it was cut here or by its feed."""
    line = one_line(text)
    uncut = _CUT_MARK.sub("", line)
    if uncut != line and not uncut.endswith((".", "!", "?", "”", '"')):
        uncut = uncut.rstrip(" …") + "…"
    return shortened(uncut, limit_chars)


def longest_whole(sizes: Iterable[int], limit: int) -> int:
    """The length at which to cut texts of these sizes so that together they have at most `limit` characters."""
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        level = limit // (len(ordered) - place)
        if size > level:
            return level
        limit -= size
    return ordered[-1] if ordered else 0

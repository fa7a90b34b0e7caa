"""Read and write story texts: HTML of one small vocabulary (`bodies.toml`).

A text is read strictly and written in only one way. A text is a sequence of pieces: start tags, end tags and text.
Code that shows a text writes its pieces and never the received string, so that no second HTML parser can disagree with
this one. The vocabulary has no element whose content HTML parses by other rules (script, style, textarea, svg, math),
so a browser can't understand the markup differently.

Imports nothing outside the standard library but `protocol.links`: the feed parser's own process needs it.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from protocol.links import leads_out

_TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ELEMENTS: Mapping[str, Mapping[str, Any]] = _TABLE["elements"]
TOP: frozenset[str] = frozenset(_TABLE["top"])
HOLDS: Mapping[str, frozenset[str]] = {name: frozenset(element["holds"]) for name, element in ELEMENTS.items()}
VOID = frozenset(name for name, holds in HOLDS.items() if not holds)
LIMITS: Mapping[str, int] = _TABLE["limits"]
BODY_CHARS = LIMITS["chars"]
TEXT_PICTURES_LIMIT = LIMITS["pictures"]
"""Pictures of one text that travel to devices (`protocol.pictures`)."""
CUT = "[…]"
"""The last paragraph of a text that was cut before it was sent."""

_PIECE = re.compile(r'<(?P<end>/?)(?P<name>[a-z][a-z0-9]*)(?P<attributes>(?: [a-z]+="[^"<>]*")*)>|(?P<text>[^<>]+)')
_ATTRIBUTE = re.compile(r' ([a-z]+)="([^"]*)"')
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot);)?")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters but tab and line feed, and lone surrogates."""
_MAIL = re.compile(r"mailto:[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")


class BodyError(ValueError):
    """The text is outside the vocabulary; says where and why."""


class Piece(NamedTuple):
    """A piece of a text.

    value is the element's name for a start or end tag, else the unescaped text.
    """

    kind: Literal["start", "end", "text"]
    value: str
    attributes: Mapping[str, str] = {}


def read_body(body: str) -> list[Piece]:
    """Return the pieces of a text of the vocabulary; takes time linear in its length.

    Raises BodyError.

    Formal guarantees: every element, attribute and nesting of the result is in `bodies.toml` and within its limits;
    every address passes `is_link` or `leads_out`; start and end tags match.
    """
    if len(body) > BODY_CHARS:
        raise BodyError(f"{len(body)} characters, the limit is {BODY_CHARS}")
    pieces: list[Piece] = []
    around: list[str] = []
    at = 0
    while at < len(body):
        found = _PIECE.match(body, at)
        if found is None:
            raise BodyError(f"character {at}: neither a tag of the vocabulary nor escaped text")
        if len(pieces) == LIMITS["pieces"]:
            raise BodyError(f"more than {LIMITS['pieces']} pieces")
        pieces.append(_piece(found, around, at))
        at = found.end()
    if around:
        raise BodyError(f"<{around[-1]}> is not closed")
    return pieces


def _piece(found: re.Match[str], around: list[str], at: int) -> Piece:
    """Check one piece against the open elements `around` it, and update these. Raises BodyError."""
    text, name = found["text"], found["name"]
    holds = HOLDS[around[-1]] if around else TOP
    if text is not None:
        if "text" not in holds:
            raise BodyError(f"character {at}: text directly in <{around[-1] if around else 'body'}>")
        return Piece("text", _unescaped(text, at))
    if name not in ELEMENTS:
        raise BodyError(f"character {at}: <{name[:20]}> is not in the vocabulary")
    if found["end"]:
        if found["attributes"] or not around or around.pop() != name:
            raise BodyError(f"character {at}: </{name}> closes no element")
        return Piece("end", name)
    if ELEMENTS[name]["kind"] not in holds or (name == "a" and "a" in around):
        raise BodyError(f"character {at}: <{name}> is not allowed in <{around[-1] if around else 'body'}>")
    attributes = _attributes(name, found["attributes"], at)
    if name not in VOID:
        around.append(name)
        if len(around) > LIMITS["depth"]:
            raise BodyError(f"character {at}: more than {LIMITS['depth']} nested elements")
    return Piece("start", name, attributes)


def _attributes(name: str, written: str, at: int) -> dict[str, str]:
    forms = ELEMENTS[name].get("attributes", {})
    found: dict[str, str] = {}
    for key, value in _ATTRIBUTE.findall(written):
        if key not in forms or key in found:
            raise BodyError(f"character {at}: <{name}> has the unknown attribute {key[:20]}")
        found[key] = _unescaped(value, at)
        if not is_of_form(found[key], forms[key]):
            raise BodyError(f"character {at}: {key} of <{name}> is not a valid {forms[key]}")
    if missing := [key for key in ELEMENTS[name].get("needs", ()) if key not in found]:
        raise BodyError(f"character {at}: <{name}> lacks the attribute {missing[0]}")
    return found


def is_of_form(value: str, form: str) -> bool:
    """Return whether an attribute's value has this form (a name from `bodies.toml`)."""
    if form == "number":
        return re.fullmatch(r"[0-9]+", value) is not None and len(value) <= LIMITS["number_chars"]
    if form == "words":
        return len(value) <= LIMITS["words_chars"]
    if len(value) > LIMITS["link_chars"]:
        return False
    return leads_out(value) or (form == "link" and _MAIL.fullmatch(value) is not None)


def _unescaped(text: str, at: int) -> str:
    if _NOT_TEXT.search(text):
        raise BodyError(f"character {at}: a control character")
    if "&" not in text:
        return text

    def replacement(found: re.Match[str]) -> str:
        if found[1] is None:
            raise BodyError(f"character {at}: & is not escaped")
        return _ENTITIES[found[1]]

    return _REFERENCE.sub(replacement, text)


def escaped(text: str) -> str:
    """Return the text escaped for use between tags and in attributes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def write_body(pieces: Iterable[Piece]) -> str:
    """Return the pieces as HTML, in the one canonical form; `read_body` returns the same pieces."""
    return "".join(map(_written, pieces))


def _written(piece: Piece) -> str:
    if piece.kind == "text":
        return escaped(piece.value)
    if piece.kind == "end":
        return f"</{piece.value}>"
    attributes = (f' {key}="{escaped(value)}"' for key, value in piece.attributes.items())
    return f"<{piece.value}{''.join(attributes)}>"


def body_of_text(text: str) -> str:
    """Return plain text (paragraphs separated by blank lines) as a body, cut at the limit."""
    return cut_body(write_body(_pieces_of_text(text)), BODY_CHARS)


def _pieces_of_text(text: str) -> list[Piece]:
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", _NOT_TEXT.sub("", text))]
    shown = [part for part in parts if part][: LIMITS["pieces"] // 3]
    return [piece for part in shown for piece in (Piece("start", "p"), Piece("text", part), Piece("end", "p"))]


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a text, which is read as plain text if it is outside the vocabulary."""
    if text.startswith("<"):
        try:
            return read_body(text)
        except BodyError:
            pass  # its markup is shown as characters, which can do nothing
    return _pieces_of_text(text)


def in_vocabulary(text: str) -> str:
    """Return a text as a body, cut at the limit.

    A body stays unchanged; any other text is read as plain text.
    """
    return cut_body(write_body(pieces_of(text)), BODY_CHARS)


def text_of_body(pieces: Iterable[Piece], *, pictures: bool = False) -> str:
    """Return the plain text, with blank lines between blocks.

    pictures: include their alternative texts and titles.
    """
    parts: list[str] = []
    for piece in pieces:
        if piece.kind == "text":
            parts.append(piece.value)
        elif piece.value == "br":
            parts.append("\n")
        elif ELEMENTS[piece.value]["kind"] != "inline":
            shown = (piece.attributes.get(key, "") for key in ("alt", "title")) if pictures else ()
            parts += ("\n\n", *(f"{words}\n\n" for words in shown if words))
    blocks = (block.strip(" \t\n") for block in re.split(r"\n[ \t\n]*\n", "".join(parts)))
    return "\n\n".join(block for block in blocks if block)


def blocks_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Return the top-level elements, each with all its pieces."""
    found: list[list[Piece]] = []
    depth = 0
    for piece in pieces:
        if depth == 0:
            found.append([])
        found[-1].append(piece)
        if piece.kind == "end" or (piece.kind == "start" and piece.value not in VOID):
            depth += 1 if piece.kind == "start" else -1
    return found


def cut_body(body: str, limit: int) -> str:
    """Return a body of at most `limit` characters.

    body: the body, or its first part if that is longer than `limit`. Keeps whole blocks, and ends with a paragraph
    saying that there is more. If the first block alone is too long, its text is cut.
    """
    if len(body) <= limit:
        return body
    mark = f"<p>{CUT}</p>"
    room = limit - len(mark)
    around: list[str] = []
    at = complete = partly = 0
    closers = ""
    while found := _PIECE.match(body, at):
        name = found["name"]
        if name and not found["end"] and name not in VOID:
            around.append(name)
        elif name and found["end"]:
            around.pop()
        at = found.end()
        ends = "".join(f"</{one}>" for one in reversed(around))
        if at + len(ends) > room:
            if not complete and found["text"] and (left := room - len(ends) - found.start()) > 0:
                kept = re.sub(r"&[a-z]*$", "", found["text"][:left])
                return body[: found.start()] + kept + ends + mark
            break
        if around:
            partly, closers = at, ends
        else:
            complete = at
    return (body[:complete] if complete else body[:partly] + closers) + (mark if room >= 0 else "")

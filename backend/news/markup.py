"""Turns a publisher's HTML into an article's body, which has only the elements allowed in `protocol.bodies`.

nh3 parses the HTML as browsers do, drops scripts, styles and hidden elements, and writes well-formed HTML. This module
converts that piece by piece: paragraphs around loose text, headings of three sizes, pictures as separate blocks,
absolute links. Whatever nh3 lets pass, only allowed elements are written.

Deep nesting can keep nh3 busy for long, so it runs in a process that can be stopped (`sources.feed_parser`). For that
process this module imports nothing of Ownfeed except `protocol.bodies` and `plain_text`.
"""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import nh3

from backend.news.plain_text import HIDDEN, untrailed
from protocol.bodies import (
    BODY_CHARS,
    CUT,
    ELEMENTS,
    HOLDS,
    LIMITS,
    TOP,
    VOID,
    Piece,
    blocks_of,
    body_of_text,
    cut_body,
    escaped,
    is_of_form,
    read_body,
    text_of_body,
    write_body,
)

SAME = {
    "h1": "h2", "h5": "h4", "h6": "h4", "tfoot": "tbody", "b": "strong", "i": "em", "cite": "em", "dfn": "em",
    "var": "em", "s": "del", "strike": "del", "tt": "code", "kbd": "code", "samp": "code",
}  # fmt: skip
"""Elements that are replaced by an allowed one."""
BREAKS = frozenset(
    """
    address article aside center details dd div dl dt fieldset footer header main nav picture section summary caption
    """.split()  # noqa: SIM905 (a list would take a screen)
)
"""Elements that end a paragraph and are otherwise dropped."""
MEDIA = frozenset({"audio", "video", "source", "iframe"})
_TAGS = frozenset(ELEMENTS) | frozenset(SAME) | BREAKS | MEDIA
_ATTRIBUTES = {
    "a": {"href"},
    "img": {"src", "srcset", "data-src", "data-lazy-src", "data-original", "data-srcset", "alt", "title", "width",
            "height", "class"},
    "audio": {"src"},
    "video": {"src"},
    "source": {"src"},
    "iframe": {"src", "data-src"},
}  # fmt: skip
_CLEANER = nh3.Cleaner(
    tags=set(_TAGS), clean_content_tags=set(HIDDEN - MEDIA), attributes=_ATTRIBUTES, link_rel=None, strip_comments=True
)
_TOKEN = re.compile(r'<(/?)([a-z][a-z0-9]*)((?:\s[a-z-]+="[^"]*")*)\s*/?>|([^<]+)|<')
_ATTRIBUTE = re.compile(r'\s([a-z-]+)="([^"]*)"')
_TABLES = frozenset({"table", "thead", "tbody", "tfoot", "tr", "td", "th"})
_EMPTY = (VOID | {"source"}) - {"audio", "video"}
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_CONTENTS = {"ul": "li", "ol": "li", "table": "tbody", "thead": "tr", "tbody": "tr", "tr": "td"}
"""The element that wraps text inside one that can't contain text; elsewhere a paragraph."""
_IN_TABLE = {"section": 0, "row": 1, "cell": 2}
"""How many elements are between a table and an element of this kind."""
BLOCKS_LIMIT, MARKS_LIMIT = 14, 8
"""Nesting limits of blocks, and of inline elements within them."""
PICTURES_LIMIT = 100
SMALL_PIXELS = 48
"""Pictures declared no larger than this are emoji or tracking pixels: only their alternative text is kept."""
_SMILEY = re.compile(r"\b(?:emoji|wp-smiley|smiley)\b")
_MARK = " […]"
_YOUTUBE = re.compile(r"https?://(?:www\.)?youtube(?:-nocookie)?\.com/embed/([\w-]{5,20})")
_VIMEO = re.compile(r"https?://player\.vimeo\.com/video/(\d{3,15})")


class Sanitised(NamedTuple):
    """A body, '' if nothing can be shown, and the address of each of its pictures, in order."""

    body: str
    pictures: tuple[str, ...] = ()


def sanitised(html: str, base: str = "", title: str = "") -> Sanitised:
    """A piece of HTML as a body.

    base: for relative addresses. title: the entry's; identifies trailers to remove (`untrailed`).
    """
    if "<" not in html:
        return Sanitised(without_trailer(body_of_text(unescape(html)), title))
    tokens = list(_TOKEN.finditer(_CLEANER.clean(_CONTROLS.sub("", html))))
    layout = _layout(tokens)
    builder = _Builder(base)
    for at, token in enumerate(tokens):
        if builder.full:
            break
        if at not in layout:
            builder.take(token)
        elif token[2] in ("table", "td", "th"):
            builder.end_paragraph()
    body = without_trailer(builder.finished(), title)
    return Sanitised(body, tuple(builder.pictures[: body.count("<img")]))  # only the end was cut


def without_trailer(body: str, title: str) -> str:
    """The body without the trailers that publishing software appends to it (`untrailed`)."""
    pieces = read_body(body)
    text = text_of_body(pieces)
    kept = untrailed(text, title)
    if kept == text:
        return body
    teased = kept.endswith(_MARK) and not text.startswith(kept)
    left = len("".join(kept.removesuffix(_MARK).split() if teased else kept.split()))
    found: list[Piece] = []
    for block in blocks_of(pieces):
        size = sum(len("".join(piece.value.split())) for piece in block if piece.kind == "text")
        if size and not left:
            break
        found += block if size <= left else _shortened(block, left)
        left = max(0, left - size)
    if teased and found:
        last = found[-1].value
        if last == "p":
            found.insert(-1, Piece("text", _MARK))
        else:
            found += [Piece("start", "p"), Piece("text", CUT), Piece("end", "p")]
    return cut_body(write_body(found), BODY_CHARS)


def _shortened(block: Sequence[Piece], chars: int) -> list[Piece]:
    """The first `chars` characters of a block, not counting white space, without elements left empty."""
    found: list[Piece] = []
    for piece in block:
        if piece.kind == "text":
            at = 0
            while at < len(piece.value) and chars:
                chars -= not piece.value[at].isspace()
                at += 1
            if at:
                found.append(Piece("text", piece.value[:at] if chars else piece.value[:at].rstrip()))
        elif piece.kind == "end" and found and found[-1].kind == "start" and found[-1].value == piece.value:
            found.pop()
        elif chars or piece.kind == "end" or piece.value not in VOID:
            found.append(piece)
    return found


class _Source(NamedTuple):
    """An open element of the HTML, and how many blocks (None: it isn't one) and inline marks were open around it."""

    name: str
    blocks: int | None
    marks: int


def _layout(tokens: Sequence[re.Match[str]]) -> set[int]:
    """Indices of the tags of layout tables: those that never have two cells in one row."""
    found: set[int] = set()
    tables: list[tuple[list[int], list[int]]] = []  # per open table: indices of its tags; cells in this row and at most
    for at, token in enumerate(tokens):
        end, name = token[1], token[2]
        if name == "table" and not end:
            tables.append(([], [0, 0]))
        if not tables or name not in _TABLES:
            continue
        places, cells = tables[-1]
        places.append(at)
        if name == "tr":
            cells[0] = 0
        elif name in ("td", "th") and not end:
            cells[0] += 1
            cells[1] = max(cells)
        elif name == "table" and end:
            if cells[1] < 2:
                found.update(places)
            tables.pop()
    return found


class _Builder:
    """Takes well-formed HTML token by token and collects the pieces of a body.

    An element is written once it has content, so none is empty.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self._pieces: list[Piece] = []
        self._sources: list[_Source] = []
        self._blocks: list[str] = []
        self._written = 0  # of the blocks
        self._marks: list[Piece] = []
        self._open_marks: list[Piece] = []
        self._space = self._fresh = False
        self._breaks = self._chars = 0
        self.pictures: list[str] = []
        self._raw = False

    @property
    def full(self) -> bool:
        """Whether a limit is reached."""
        return self._chars > BODY_CHARS or len(self._pieces) > LIMITS["pieces"] - 2 * LIMITS["depth"] - 8

    def take(self, token: re.Match[str]) -> None:
        """Add one token."""
        end, name, attributes, text = token.groups()
        if name is None:
            if not self._raw:
                self._text(unescape(text or "<"))
        elif end:
            self._end(name)
        else:
            self._start(name, {key: unescape(value) for key, value in _ATTRIBUTE.findall(attributes)})

    def finished(self) -> str:
        full = self.full
        self._close_blocks(0)
        if not full:
            return write_body(self._pieces)
        return cut_body(write_body(self._pieces) + " " * BODY_CHARS, BODY_CHARS)

    # Input.

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        same = SAME.get(name, name)
        if name not in _EMPTY:
            blocks = len(self._blocks) if same in ELEMENTS and ELEMENTS[same]["kind"] != "inline" else None
            if blocks and self._context() == "p":
                blocks -= 1  # this block ends the paragraph
            self._sources.append(_Source(name, blocks, len(self._marks)))
        if name in MEDIA:
            self._media(name, attributes)
            return
        name = same
        if name in BREAKS:
            self.end_paragraph()
        elif name == "br":
            self._breaks += 1
            if self._context() != "pre" and self._breaks == 2:
                self.end_paragraph()
        elif name == "img":
            self._picture(attributes)
        elif name == "hr":
            self._void("hr", {})
        elif ELEMENTS[name]["kind"] == "inline":
            self._mark(name, attributes)
        else:
            self._block(name)

    def _end(self, name: str) -> None:
        at = next((at for at in range(len(self._sources) - 1, -1, -1) if self._sources[at].name == name), None)
        if at is None:
            return
        source = self._sources[at]
        del self._sources[at:]
        self._raw = self._raw and name != "iframe"
        if name in BREAKS:
            self.end_paragraph()
        if source.blocks is not None and name not in MEDIA:
            self._close_blocks(source.blocks)
        self._close_marks_beyond(source.marks)

    def _text(self, text: str) -> None:
        text = _CONTROLS.sub("", text)
        if self._context() == "pre":
            if self._fresh:
                text = text.removeprefix("\n")
            if text:
                self._write_text(text)
            return
        words = " ".join(text.split())
        if not words:
            self._space = self._space or bool(text)
            return
        self._make_room_for_text()
        if self._space or text[0].isspace():
            words = f" {words}"
        self._write_text(words if self._written_text() else words.lstrip())
        self._space = text[-1].isspace()

    def _mark(self, name: str, attributes: Mapping[str, str]) -> None:
        kept: dict[str, str] = {}
        if name == "a":
            href = self._link(attributes.get("href", ""))
            if not href or any(mark.value == "a" for mark in self._marks):
                return
            kept = {"href": href}
        if len(self._marks) < MARKS_LIMIT and all(mark.value != name for mark in self._marks):
            self._marks.append(Piece("start", name, kept))

    def _block(self, name: str) -> None:
        self.end_paragraph()
        if ELEMENTS[name]["kind"] in _IN_TABLE and "table" in self._blocks:
            table = len(self._blocks) - self._blocks[::-1].index("table")
            self._close_blocks(table + _IN_TABLE[ELEMENTS[name]["kind"]])
            while not self._holds(name):
                self._open_block(_CONTENTS[self._context()])
        while self._blocks and not self._holds(name):
            if "text" in HOLDS[self._context()] and "block" not in HOLDS[self._context()]:
                self._close_blocks(len(self._blocks) - 1)
            elif ELEMENTS[name]["kind"] == "block" and self._context() in _CONTENTS:
                self._open_block(_CONTENTS[self._context()])
            else:
                return
        if not self._holds(name):
            if name == "li":
                self._open_block("ul")
            elif name != "figcaption":
                return
            else:
                name = "p"
        if len(self._blocks) < BLOCKS_LIMIT:
            self._open_block(name)
            if name in ("td", "th"):
                self._write_blocks()  # an empty cell keeps its place

    def _picture(self, attributes: Mapping[str, str]) -> None:
        alt = _words(attributes.get("alt", ""))
        small = min(_pixels(attributes.get("width", "")), _pixels(attributes.get("height", ""))) <= SMALL_PIXELS
        if small or _SMILEY.search(attributes.get("class", "")):
            if 0 < len(alt) <= 20:
                self._text(alt)
            return
        address = self._address(source_of(attributes))
        title = _words(attributes.get("title", ""))
        if not address or len(self.pictures) == PICTURES_LIMIT:
            return
        self.pictures.append(address)
        shown = {
            "src": address if is_of_form(address, "web") else "",
            "alt": alt,
            "title": "" if title == alt else title,
        }
        self._void("img", {key: value for key, value in shown.items() if value})

    def _media(self, name: str, attributes: Mapping[str, str]) -> None:
        address = self._address(attributes.get("src") or attributes.get("data-src") or "")
        self._raw = self._raw or name == "iframe"
        if name == "iframe":
            name, address = "video", player_page(address)
        elif name == "source":
            around = self._sources[-1].name if self._sources else ""
            if around not in ("audio", "video"):
                return
            name = around
        if is_of_form(address, "web") and Piece("start", name, {"src": address}) not in self._pieces[-3:]:
            self._void(name, {"src": address})

    # Output.

    def _context(self) -> str:
        return self._blocks[-1] if self._blocks else ""

    def _holds(self, name: str) -> bool:
        return ELEMENTS[name]["kind"] in (HOLDS[self._context()] if self._blocks else TOP)

    def _make_room_for_text(self) -> None:
        while "text" not in (HOLDS[self._context()] if self._blocks else TOP):
            self._open_block(_CONTENTS.get(self._context(), "p"))

    def _void(self, name: str, attributes: Mapping[str, str]) -> None:
        self.end_paragraph()
        while not self._holds(name):
            if "text" in HOLDS[self._context()]:
                self._close_blocks(len(self._blocks) - 1)
            else:
                self._open_block(_CONTENTS.get(self._context(), "p"))
        self._close_marks()
        self._write_blocks()
        self._add(Piece("start", name, attributes))
        self._space = False

    def _open_block(self, name: str) -> None:
        self._close_marks()
        self._blocks.append(name)
        self._space, self._breaks, self._fresh = False, 0, True

    def end_paragraph(self) -> None:
        """End the current paragraph, whether loose text or a tag began it."""
        if self._context() == "p":
            self._close_blocks(len(self._blocks) - 1)
        elif self._open_marks or self._written_text():
            self._close_marks()
            self._breaks = max(self._breaks, 1)

    def _close_blocks(self, depth: int) -> None:
        while len(self._blocks) > depth:
            self._close_marks()
            name = self._blocks.pop()
            if self._written > len(self._blocks):
                self._written = len(self._blocks)
                if name == "pre":
                    self._end_without_lines()
                self._add(Piece("end", name))
            self._space, self._breaks = False, 0

    def _end_without_lines(self) -> None:
        at = len(self._pieces) - 1
        while self._pieces[at].kind == "end":
            at -= 1
        if self._pieces[at].kind == "text":
            self._pieces[at] = Piece("text", self._pieces[at].value.rstrip())

    def _close_marks(self) -> None:
        while self._open_marks:
            self._add(Piece("end", self._open_marks.pop().value))

    def _close_marks_beyond(self, depth: int) -> None:
        while len(self._open_marks) > depth:
            self._add(Piece("end", self._open_marks.pop().value))
        del self._marks[depth:]

    def _write_blocks(self) -> None:
        for name in self._blocks[self._written :]:
            self._add(Piece("start", name))
        self._written = len(self._blocks)

    def _write_text(self, text: str) -> None:
        began = self._written_text()
        self._write_blocks()
        if self._breaks and began and self._context() != "pre":
            self._close_marks()
            self._add(Piece("start", "br"))
            text = text.lstrip()
        elif self._breaks and self._context() == "pre":
            text = "\n" * self._breaks + text
        self._breaks, self._fresh = 0, False
        if text.startswith(" ") and self._context() != "pre" and len(self._open_marks) < len(self._marks):
            self._add(Piece("text", " "))
            text = text[1:]
        for mark in self._marks[len(self._open_marks) :]:
            self._add(mark)
            self._open_marks.append(mark)
        last = self._pieces[-1]
        if last.kind == "text":
            self._pieces[-1] = Piece("text", last.value + text)
            self._chars += len(escaped(text))
        else:
            self._add(Piece("text", text))

    def _written_text(self) -> bool:
        """Whether the innermost block has text or a line break just before this point."""
        if self._written < len(self._blocks) or not self._pieces:
            return False
        last = self._pieces[-1]
        if last.kind == "text":
            return True
        return ELEMENTS[last.value]["kind"] == "inline" and (last.kind == "end" or last.value == "br")

    def _add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._chars += len(write_body((piece,)))

    # Addresses.

    def _address(self, written: str) -> str:
        """An absolute http or https address, '' for any other."""
        if not written.strip():
            return ""
        try:
            address = urljoin(self._base, written.strip())
            parts = urlsplit(address)
            fine = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            return ""
        return address.replace(" ", "%20") if fine and len(address) <= LIMITS["link_chars"] else ""

    def _link(self, written: str) -> str:
        mail = written.strip().partition("?")[0]
        if mail[:7].lower() == "mailto:":
            address = "mailto:" + mail[7:]
        elif written.strip().startswith("#"):
            return ""  # an anchor on the publisher's own page
        else:
            address = self._address(written)
        return address if is_of_form(address, "link") else ""


def source_of(attributes: Mapping[str, str]) -> str:
    """The address in a picture's attributes, those for lazy loading first; '' if there is none."""
    later = next((attributes[key] for key in ("data-src", "data-lazy-src", "data-original") if attributes.get(key)), "")
    source = later or attributes.get("src", "")
    if source and not source.startswith("data:"):
        return source
    listed = attributes.get("srcset") or attributes.get("data-srcset") or ""
    sizes = [part.split() for part in re.split(r",\s+", listed) if part.strip()]
    widths = [(_pixels(size[-1].rstrip("wx")) if len(size) > 1 else 1, size[0]) for size in sizes]
    return max(widths)[1] if widths else ""


def player_page(address: str) -> str:
    """The page of the video that an embedded player shows; '' for other frames."""
    if found := _YOUTUBE.match(address):
        return f"https://www.youtube.com/watch?v={found[1]}"
    if found := _VIMEO.match(address):
        return f"https://vimeo.com/{found[1]}"
    return ""


def _pixels(value: str) -> int:
    digits = value.strip().removesuffix("px")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else 10**9


def _words(text: str) -> str:
    return " ".join(_CONTROLS.sub("", text).split())[: LIMITS["words_chars"]]

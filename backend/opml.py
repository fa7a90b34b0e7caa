"""OPML: lists of feeds as feed readers exchange them, read within limits and written.

Feeds are the outlines with an `xmlUrl`; outlines without one are folders (OPML 2.0, "Subscription lists"). Expat reads
the document element by element, and a document that declares entities is refused before one of them is expanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from backend.errors import OwnfeedError
from backend.plain_text import one_line, shortened

OPML_LIMIT_BYTES = 5_000_000
FEEDS_IN_A_LIST = 1_000
DEPTH_LIMIT = 30
LABEL_CHARS = 80


class OpmlRefused(OwnfeedError):
    """A list of feeds can't be read; the message names the file, and the line where there is one."""

    code, status, title = "opml-refused", 422, "This list of feeds can't be read"


@dataclass(frozen=True)
class Subscription:
    """A feed of a list: its address, its name, the folder it lies in (the innermost; '' for none), and its line.

    section: chosen for it by a person; a list says none.
    """

    url: str
    title: str = ""
    folder: str = ""
    line: int = 0
    section: str | None = None


def read_opml(path: Path) -> list[Subscription]:
    """The feeds of a file in its order, each address once. Raises OpmlRefused."""
    try:
        with path.open("rb") as stream:
            data = stream.read(OPML_LIMIT_BYTES + 1)
    except OSError as failed:
        raise OpmlRefused(f"{path} can't be read: {(failed.strerror or type(failed).__name__).lower()}.") from failed
    if len(data) > OPML_LIMIT_BYTES:
        raise OpmlRefused(f"{path} is larger than the limit of {OPML_LIMIT_BYTES:,} bytes.")
    return parse_opml(data, str(path))


def parse_opml(data: bytes, name: str) -> list[Subscription]:
    """The feeds of a document that messages call `name`. Raises OpmlRefused: not XML, not OPML, entities, too many."""
    reader = _Reader(name)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as broken:
        raise reader.refused(f"is not well-formed ({expat.ErrorString(broken.code)})", broken.lineno) from broken
    except (LookupError, ValueError) as broken:  # of the encoding that it says it has
        raise reader.refused(f"can't be decoded ({broken})") from broken
    if not reader.found:
        raise OpmlRefused(f"{name} lists no feed: none of its outlines has an xmlUrl.")
    return list(reader.found.values())


class _Reader:
    """Expat's handlers, and what they have found by address."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: dict[str, Subscription] = {}
        self._open: list[str] = []
        self._folders: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity
        self.parser.ExternalEntityRefHandler = self._entity

    def refused(self, why: str, line: int | None = None) -> OpmlRefused:
        return OpmlRefused(f"{self.name}, line {line or self.parser.CurrentLineNumber}: {why}.", field="opml")

    def _entity(self, *_: object) -> int:
        raise self.refused("declares entities, which no list of feeds needs")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._open and tag.lower() != "opml":
            kind = "a feed itself; name its address" if tag.lower() in {"rss", "feed", "rdf:rdf"} else "no OPML"
            raise self.refused(f"is {kind} (it begins with <{tag[:40]}>)")
        self._open.append(tag)
        if len(self._open) > DEPTH_LIMIT:
            raise self.refused(f"is nested more than {DEPTH_LIMIT} deep")
        if tag.lower() != "outline":
            self._folders.append("")
            return
        given = {key.lower(): value.strip() for key, value in attributes.items()}
        label = shortened(one_line(given.get("title") or given.get("text") or ""), LABEL_CHARS)
        url = given.get("xmlurl", "")
        if url and url not in self.found:
            if len(self.found) >= FEEDS_IN_A_LIST:
                raise self.refused(f"lists more than {FEEDS_IN_A_LIST:,} feeds")
            folder = next((one for one in reversed(self._folders) if one), "")
            self.found[url] = Subscription(url, label, folder, self.parser.CurrentLineNumber)
        self._folders.append("" if url else label)

    def _end(self, _: str) -> None:
        self._open.pop()
        self._folders.pop()


def write_opml(subscriptions: Sequence[Subscription], title: str) -> bytes:
    """A document of these feeds, one folder for each folder name, that `parse_opml` reads as the same feeds."""
    root = ElementTree.Element("opml", version="2.0")
    ElementTree.SubElement(ElementTree.SubElement(root, "head"), "title").text = title
    body = ElementTree.SubElement(root, "body")
    in_order = sorted(subscriptions, key=lambda one: one.folder)
    for folder, members in groupby(in_order, key=lambda one: one.folder):
        _write_feeds(ElementTree.SubElement(body, "outline", text=folder) if folder else body, members)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _write_feeds(parent: ElementTree.Element, feeds: Iterable[Subscription]) -> None:
    for one in feeds:
        ElementTree.SubElement(parent, "outline", type="rss", text=one.title or one.url, xmlUrl=one.url)

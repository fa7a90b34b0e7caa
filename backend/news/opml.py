"""Reads and writes OPML, the format in which feed readers exchange lists of feeds, within limits.

Feeds are the outlines with an `xmlUrl`; outlines around them are folders (OPML 2.0, "Subscription lists"). Lists are
written by many programs and by hand, so they are read as leniently as feeds: by libxml2's HTML parser, which takes bare
ampersands, missing quotes and end tags, and expands no entity that a document declares.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from lxml import etree

from backend.errors import OwnfeedError
from backend.news.errors import FeedRefused
from backend.news.feed_addresses import checked_url, completed
from backend.news.plain_text import one_line, shortened

OPML_LIMIT_BYTES = 5_000_000
FEEDS_IN_A_LIST = 10_000
DEPTH_LIMIT = 200
"""libxml2 itself stops at about 250 nested elements."""
LABEL_CHARS = 500
FOLDER_CHARS = 200
SHOWN_CHARS = 200
NAMESPACE = "urn:ownfeed:opml"
"""Namespace of our own attribute `section`; OPML 2.0 asks other programs to ignore it."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}encoding\s*=\s*[\"']([\w.:-]{1,40})")
_FEED = re.compile(r"<(rss|feed|rdf:rdf)[\s>]", re.IGNORECASE)
_ADDRESSES = ("xmlurl", "xml_url", "feedurl")
_NOT_FEEDS = {"link": "is a link, not a feed", "include": "is another list, which isn't fetched"}


class OpmlRefused(OwnfeedError):
    """A list of feeds can't be read at all; the message names the file, and the line if there is one."""

    code, status, title = "opml-refused", 422, "This list of feeds can't be read"


@dataclass(frozen=True)
class Subscription:
    """A feed of a list: its address, title, folder (outermost first), line, section and site.

    title: '' if the list gives only its address. section: as chosen by a person.
    """

    url: str
    title: str = ""
    folder: tuple[str, ...] = ()
    line: int = 0
    section: str | None = None
    site: str = ""


class RefusedSubscription(NamedTuple):
    """An entry of a list that can't be followed: where it is, its address or title, and why."""

    where: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.name or '(no name)'}: {self.reason}"


@dataclass
class FeedList:
    """The feeds of a list in order, each address once; the refused entries; and how many were repeated."""

    feeds: list[Subscription] = field(default_factory=list)
    refused: list[RefusedSubscription] = field(default_factory=list)
    repeated: int = 0


def read_opml(path: Path) -> FeedList:
    """The feeds of a file. Raises OpmlRefused."""
    try:
        with path.open("rb") as stream:
            data = stream.read(OPML_LIMIT_BYTES + 1)
    except OSError as failed:
        raise OpmlRefused(f"{path} can't be read: {(failed.strerror or type(failed).__name__).lower()}.") from failed
    if len(data) > OPML_LIMIT_BYTES:
        raise OpmlRefused(f"{path} is larger than the limit of {OPML_LIMIT_BYTES:,} bytes.")
    return parse_opml(data, str(path))


def parse_opml(data: bytes, name: str) -> FeedList:
    """The feeds of a document; `name` stands for it in messages.

    Formal guarantees: no entity that the document declares is expanded, and nothing that it names is opened.

    Raises OpmlRefused for a document that lists no feed, is nested too deep, or has too many.
    """
    text = _decoded(data)
    # libxml2's HTML parser knows HTML's entities only, and reads a document type's declarations as comments.
    parser = etree.HTMLParser(recover=True, no_network=True, encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode(), parser) if text.strip() else None
    except etree.XMLSyntaxError:  # nothing in it is markup
        root = None
    outlines = [] if root is None else list(root.iter("outline"))
    if not outlines:
        kind = (
            "is a feed, not a list; add its address" if _FEED.search(text[:4_000]) else "has no outlines: it isn't OPML"
        )
        raise OpmlRefused(f"{name} {kind}.", field="opml")
    found = _listed(outlines, name)
    if not found.feeds and not found.refused:
        raise OpmlRefused(f"{name} lists no feeds: none of its outlines has an xmlUrl.", field="opml")
    return found


def _decoded(data: bytes) -> str:
    """The text of a document in UTF-8, else in the encoding that it declares, else in Windows-1252.

    UTF-8 comes first: text in another encoding is rarely valid UTF-8, and wrong declarations are common.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").replace("\0", "")
    found = _DECLARED.search(data[:1_000])
    wide = "utf-16-le" if data[1:2] == b"\0" else "utf-16-be" if data[:1] == b"\0" else "utf-8"
    for encoding in (wide, found[1].decode("ascii", "replace") if found else "utf-8"):
        try:
            return data.decode(encoding).replace("\0", "")
        except (LookupError, ValueError):  # no such encoding, or not this one
            continue
    return data.decode("cp1252", "replace").replace("\0", "")


def _listed(outlines: Sequence[etree._Element], name: str) -> FeedList:
    found, known = FeedList(), set[str]()
    folders: dict[etree._Element, tuple[str, ...]] = {}
    for outline in outlines:
        given = {str(key).lower(): one_line(str(value)) for key, value in outline.attrib.items()}
        label = given.get("text") or given.get("title") or ""
        above = folders.get(outline.getparent(), ())
        line = outline.sourceline or 0
        if sum(1 for _ in outline.iterancestors("outline")) >= DEPTH_LIMIT:
            raise OpmlRefused(f"{name}, line {line}: nested more than {DEPTH_LIMIT} deep.", field="opml")
        address = next((given[key] for key in _ADDRESSES if given.get(key)), "")
        kind = given.get("type", "").lower()
        if not address and kind not in _NOT_FEEDS:
            address = given.get("url", "")
        if not address:
            folders[outline] = (*above, shortened(label, FOLDER_CHARS)) if label else above
            reason = _NOT_FEEDS.get(kind, "has no xmlUrl" if kind or given.get("htmlurl") else "")
            if reason and not len(outline):
                where = f"{name}, line {line}"
                found.refused.append(RefusedSubscription(where, shortened(label, SHOWN_CHARS), reason))
            continue
        folders[outline] = above
        try:
            url = checked_url(completed(address))
        except FeedRefused as refused:
            found.refused.append(RefusedSubscription(f"{name}, line {line}", address[:SHOWN_CHARS], refused.why))
            continue
        if url in known:
            found.repeated += 1
            continue
        if len(known) >= FEEDS_IN_A_LIST:
            raise OpmlRefused(f"{name}, line {line}: more than {FEEDS_IN_A_LIST:,} feeds.", field="opml")
        known.add(url)
        title = "" if label == address else shortened(label, LABEL_CHARS)
        section = given.get("ownfeed:section") or None
        found.feeds.append(Subscription(url, title, above, line, section, given.get("htmlurl", "")))
    return found


def write_opml(subscriptions: Sequence[Subscription], title: str) -> bytes:
    """An OPML document of these feeds in their folders, which `parse_opml` reads back unchanged."""
    root = ElementTree.Element("opml", {"version": "2.0", "xmlns:ownfeed": NAMESPACE})
    ElementTree.SubElement(ElementTree.SubElement(root, "head"), "title").text = title
    folders: dict[tuple[str, ...], ElementTree.Element] = {(): ElementTree.SubElement(root, "body")}
    for one in subscriptions:
        for depth, name in _missing(one.folder, folders):
            folders[one.folder[:depth]] = ElementTree.SubElement(
                folders[one.folder[: depth - 1]], "outline", text=name, title=name
            )
        label = one.title or one.url
        about = {"type": "rss", "text": label, "title": label, "xmlUrl": one.url}
        about |= {"htmlUrl": one.site} if one.site else {}
        about |= {"ownfeed:section": one.section} if one.section else {}
        ElementTree.SubElement(folders[one.folder], "outline", about)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _missing(path: tuple[str, ...], folders: dict[tuple[str, ...], ElementTree.Element]) -> Iterator[tuple[int, str]]:
    """Yield depth and name of the folders of a path that aren't written yet, the outermost first."""
    return ((depth, name) for depth, name in enumerate(path, 1) if path[:depth] not in folders)

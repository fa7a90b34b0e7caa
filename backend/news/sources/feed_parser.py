"""Runs feedparser in a separate process for each document, with limits on its time, its memory and its output.

feedparser's regular expressions take quadratic time on malformed input: 60 KB of nested tags keep it busy for minutes.
nh3, which sanitises an entry's text, takes 2 s for 100 KB of nested lists, and four times as long for twice as much. No
check in advance finds all such documents, so both run in a process that can be stopped.

`parse` runs this file as a script. It loads the files in `_HELPERS` by their paths, since the package `sources` would
import the rest of the server.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[3]))  # where the package is not installed
from backend.server.child_processes import limit_this_process
from backend.server.forked_scripts import FORK, ForkedScript, serve_forks

PARSE_CPU_SEC = 30
"""Processor time for one feed; one of 10,000 entries and 5.8 MB took 9 s."""
PARSE_WALL_SEC = 600
"""Elapsed time, as a second limit on a busy machine."""
PARSE_MEMORY_BYTES = 2 * 1024**3
NICENESS = 10
"""Niceness of the parsing processes: while hundreds of feeds are refreshed, pages are answered first."""
_DECLARED = re.compile(rb"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|\"[^\"]*\"|'[^']*'|<!|>", re.DOTALL)
ANSWER_LIMIT_BYTES = 100 * 1024 * 1024
ENTRIES_LIMIT = 10_000
LABEL_CHARS = 80
_FEED_ROOT = re.compile(rb"<(?:rss|feed|rdf:RDF)[\s>]")
PERIODS_SEC = {
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": 2_592_000.0,
    "yearly": 31_536_000.0,
}
BEGINNING_CHARS = 400
DATES = ("published", "created", "updated")
GUESSED_ENCODINGS = (
    "gb18030", "big5", "shift_jis", "euc_jp", "iso2022_jp", "euc_kr", "cp1251", "koi8_r", "iso8859_5", "cp1253",
    "iso8859_7", "cp1255", "cp1256",
)  # fmt: skip
GUESSED_FROM_BYTES, FOREIGN_BYTES, FOREIGN_SHARE = 20_000, 40, 0.3
"""An encoding is guessed from this many bytes of text, if at least this many and this share aren't ASCII."""
_SINGLE_BYTES = re.compile(r"(?:us-?)?ascii|iso-?8859|latin|windows-?\d|cp-?12\d\d|koi8|(?:x-)?mac|l\d")
_HELPERS = [
    str(Path(__file__).parents[1] / "plain_text.py"),
    *(str(Path(__file__).with_name(name)) for name in ("picture_links.py", "feed_dates.py", "json_feed.py")),
]
OUT_OF_MEMORY, ANSWER_TOO_LONG = 3, 4
"""Exit codes of the parsing process for limits that Python reports as an exception; 1 is a crash."""
_EXAMPLE = (
    b'<rss version="2.0"><channel><title>A</title><item><title>A &amp; B</title><link>https://a.example/1</link>'
    b"<description>&lt;p>A&lt;/p></description><pubDate>Fri, 27 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>"
)
"""A feed that uses what most feeds use."""


class FeedUnreadable(ValueError):
    """The document isn't a feed, or can't be read within the limits; the message continues after its name."""


class ParsedFeed(NamedTuple):
    """A parsed feed as plain JSON values; missing parts are empty or None.

    head and entries: title, link, labels (categories in lower case, in the feed's order; 'Sport/Football' and 'Sport >
    Football' are two), published and updated (year, month, day, hour, minute and second in UTC).
    head only: every_sec (the interval at which the feed says it publishes, 0 if it doesn't say).
    entries only: guid, enclosure (its address), beginning (of the text, for an entry without a title), summary and
    content (article bodies), summary_pictures and content_pictures (addresses), pictures and media (the values of
    `PictureLink` and `MediaLink`), fault (why its texts can't be read).
    fault: why the document is not well-formed XML, None if it is. left_out: how many entries are beyond the limit.
    """

    head: dict[str, Any]
    entries: list[dict[str, Any]]
    fault: str | None
    left_out: int


def parse(data: bytes, *, content_type: str = "", base: str = "") -> ParsedFeed:
    """Parse the feed in `data`, whose links are relative to `base`. Raises FeedUnreadable."""
    with tempfile.TemporaryFile() as document, tempfile.TemporaryFile() as answer:
        document.write(data)
        document.seek(0)
        code = _process().run([__file__, *_HELPERS], [content_type, base], document, answer, PARSE_WALL_SEC)
        answer.seek(0)
        output = answer.read(ANSWER_LIMIT_BYTES + 1)
    if code != 0:
        raise FeedUnreadable(_broken_off(code))
    if len(output) > ANSWER_LIMIT_BYTES:
        raise FeedUnreadable(_broken_off(ANSWER_TOO_LONG))
    found = json.loads(output)
    if "refused" in found:
        raise FeedUnreadable(found["refused"])
    return ParsedFeed(**found)


@cache
def _process() -> ForkedScript:
    process = ForkedScript()
    atexit.register(process.close)
    return process


def _broken_off(code: int) -> str:
    """Return why the process ended without an answer; a negative code is the signal that ended it."""
    ended_by = signal.Signals(-code).name if code < 0 else ""
    if ended_by in ("SIGXCPU", "SIGKILL"):
        return f"can't be read within {PARSE_CPU_SEC} s of processor time"
    if ended_by == "SIGALRM":
        return f"takes longer than {PARSE_WALL_SEC} s to read"
    if code == OUT_OF_MEMORY:
        return f"can't be read within {PARSE_MEMORY_BYTES // 1024**2:,} MiB of memory"
    if code == ANSWER_TOO_LONG:
        return f"has more than {ANSWER_LIMIT_BYTES // 1024**2:,} MiB once it is parsed"
    return f"made the parser fail ({ended_by or f'exit code {code}'}), which is a bug in Ownfeed or feedparser"


def element(data: bytes) -> bytes:
    """UTF-8 XML from its first element on.

    Formal guarantees: the result begins with a start tag, and XML allows declarations only before it, so no parser can
    find a declared entity in it. A document type and its declarations are dropped, and nothing is fetched.

    Raises FeedUnreadable for a document without an element.
    """
    at = 0
    while (at := data.find(b"<", at)) >= 0:
        if data.startswith(b"<!--", at):
            at = _after(data, b"-->", at + 4)
        elif data.startswith(b"<?", at):
            at = _after(data, b">", at + 2)
        elif data.startswith(b"<!", at):
            at = _after_declaration(data, at + 2)
        elif data[at + 1 : at + 2].isalpha() or data[at + 1 : at + 2] == b"_":
            return data[at:]
        else:
            at += 1
    raise FeedUnreadable("has no root element")


def looks_like_feed(data: bytes) -> bool:
    """Whether the first element is one of RSS, RDF or Atom; the rest is not read."""
    try:
        return _FEED_ROOT.match(element(data)) is not None
    except FeedUnreadable:
        return False


def _after(data: bytes, end: bytes, start: int) -> int:
    found = data.find(end, start)
    return len(data) if found < 0 else found + len(end)


def _after_declaration(data: bytes, start: int) -> int:
    """The end of a declaration that begins before `start`, including the declarations nested in it."""
    depth = 1
    for found in _DECLARED.finditer(data, start):
        depth += {b"<!": 1, b">": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(data)


def _utf8(data: bytes, content_type: str) -> bytes:
    """The document in UTF-8, by feedparser's rules. Raises FeedUnreadable.

    Two kinds of declarations are ignored as wrong: UTF-16 or UTF-32 in a declaration that itself is in ASCII, and a
    single-byte encoding of text that is valid UTF-8. If no declaration fits, `_guessed_encoding` decides.
    """
    from feedparser import encodings

    encodings.lazy_chardet_encoding = _guessed_encoding  # whatever detector is installed
    data = re.sub(rb"^\s*<\?xml[^>]{0,80}encoding=.utf-?(16|32)[^>]{0,80}>", b"", data, count=1, flags=re.IGNORECASE)
    data = data.lstrip()
    declaration = re.match(rb"<\?xml[^>]{0,80}?\sencoding\s*=\s*[\"']([\w.:-]{1,40})[\"'][^>]{0,80}>", data)
    declared = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", content_type, re.IGNORECASE)
    named = [one[1] if isinstance(one[1], str) else one[1].decode() for one in (declaration, declared) if one]
    if any(_SINGLE_BYTES.match(name.lower()) for name in named) and not data.isascii() and _is_utf8(data):
        data, content_type = data[declaration.end() if declaration else 0 :], ""
    try:
        found: bytes = encodings.convert_to_utf8({"content-type": content_type} if content_type else {}, data, {})
    except (ValueError, LookupError) as unreadable:  # ValueError covers malformed bytes and null bytes
        raise FeedUnreadable("declares an encoding that doesn't exist or doesn't fit") from unreadable
    return found


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _guessed_encoding(data: bytes) -> str:
    """The encoding of a document whose declaration doesn't fit; '' if it has too few non-ASCII letters to tell.

    feedparser then reads it as Western European.
    """
    if _is_utf8(data):
        return "utf-8"
    text = re.sub(rb"<[^>]{0,2000}>|&[#\w]{1,10};|[\s\d]+", b" ", data)[:GUESSED_FROM_BYTES]
    foreign = len(re.sub(rb"[\x00-\x7f]+", b"", text))
    if foreign < FOREIGN_BYTES or foreign < FOREIGN_SHARE * len(text):
        return ""
    from charset_normalizer import from_bytes

    best = from_bytes(text, cp_isolation=list(GUESSED_ENCODINGS), preemptive_behaviour=False).best()
    return best.encoding if best is not None else ""


def _read(data: bytes, content_type: str, base: str, *helpers: ModuleType) -> dict[str, Any]:
    from io import BytesIO

    from feedparser import parse

    *_, json_feed = helpers
    if not data.strip():
        raise FeedUnreadable("is empty")
    if json_feed.is_json(data):
        try:
            head, entries = json_feed.read_json_feed(data)
        except json_feed.NoJsonFeed as refused:
            raise FeedUnreadable(str(refused)) from refused
        return _found(head, entries, None, base, helpers)
    data = element(_utf8(data, content_type))
    named = re.match(rb"<([^\s/>]{1,60})", data)
    root = named[1].decode("utf-8", "replace") if named else ""
    if root.lower() == "html":
        raise FeedUnreadable("is a web page (HTML), not a feed")
    headers = {"content-type": "application/xml; charset=utf-8"} | ({"content-location": base} if base else {})
    written = b'<?xml version="1.0" encoding="utf-8"?>\n' + data
    try:
        parsed = parse(BytesIO(written), response_headers=headers, sanitize_html=False)  # markup.py sanitises
    except MemoryError:
        raise
    except Exception as broken:  # elements in unexpected places cause errors of all kinds
        raise FeedUnreadable(f"is too malformed to read ({type(broken).__name__}: {broken})") from broken
    if not parsed.entries and not parsed.version:
        fault = f" ({parsed.bozo_exception})" if parsed.bozo else ""
        raise FeedUnreadable(f"has the root <{root}>, neither RSS nor Atom{fault}")
    return _found(parsed.feed, parsed.entries, str(parsed.bozo_exception) if parsed.bozo else None, base, helpers)


def _found(
    head: Any, entries: list[Any], fault: str | None, base: str, helpers: tuple[ModuleType, ...]
) -> dict[str, Any]:
    """The values of a `ParsedFeed`, from a head and entries as feedparser returns them."""
    from urllib.parse import urlsplit

    words, pictures, dates, _ = helpers
    left_out, entries = max(0, len(entries) - ENTRIES_LIMIT), entries[:ENTRIES_LIMIT]
    try:
        host = urlsplit(base or head.get("link") or "").hostname or ""
    except ValueError:
        host = ""
    written = [_date(each, name) for each in (head, *entries) for name in DATES]
    reader = dates.DateReader(written, head.get("language") or "", host)
    return {
        "head": _title_and_link(head, words) | _moments(head, reader) | {"every_sec": _every_sec(head)},
        "entries": [
            (fields := _title_and_link(entry, words))
            | _moments(entry, reader)
            | _named(entry, fields["title"], words)
            | _texts(entry, fields["title"], base)
            | {"pictures": pictures.links_of(entry), "media": pictures.media_of(entry)}
            for entry in entries
        ],
        "fault": fault,
        "left_out": left_out,
    }


def _moments(element: Any, reader: Any) -> dict[str, list[int] | None]:
    """When an entry was published and last changed; if one is missing, both are the other."""
    published, created, updated = (
        reader.read(written) if (written := _date(element, name)) else None for name in DATES
    )
    published = published or created
    return {"published": published or updated, "updated": updated or published}


def _date(element: Any, name: str) -> str:
    # dict.keys, since feedparser returns 'published' for a missing 'updated', with a deprecation warning.
    written = element[name] if name in dict.keys(element) else ""
    return written if isinstance(written, str) else ""


def _title(element: Any, words: ModuleType) -> str:
    """The title as plain text, converted from HTML unless its type is text/plain."""
    written = element.get("title") or ""
    kind = (element.get("title_detail") or {}).get("type") or "text/html"
    text = written if kind == "text/plain" else words.plain(written)
    return words.one_line(text)  # type: ignore[no-any-return]


def _named(entry: Any, title: str, words: ModuleType) -> dict[str, str]:
    """An entry's guid, and replacements for a missing link (enclosure) and title (beginning)."""
    guid = entry.get("id") or ""
    linked = [one.get("href") or "" for one in entry.get("enclosures") or ()]
    linked += [one.get("url") or "" for one in entry.get("media_content") or ()]
    found = {"guid": guid.strip(), "enclosure": next((one.strip() for one in linked if one.strip()), "")}
    return found | {"beginning": "" if title else _beginning(entry, words)}


def _beginning(entry: Any, words: ModuleType) -> str:
    """The beginning of the text, or the alternative text of its first picture."""
    texts = [entry.get("summary") or "", *(part.get("value") or "" for part in entry.get("content") or ())]
    for text in texts:
        try:
            if found := words.one_line(words.plain(text)):
                return found[:BEGINNING_CHARS]  # type: ignore[no-any-return]
        except (ValueError, AssertionError):  # html.parser asserts properties of its input
            continue
    for text in texts:
        for shown in re.findall(r"<img\b[^>]{0,2000}?\salt\s*=\s*[\"']([^\"'>]{1,400})[\"']", text, re.IGNORECASE):
            if found := words.one_line(words.plain(shown)):
                return found  # type: ignore[no-any-return]
    return ""


def _title_and_link(element: Any, words: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = {
        "title": "",
        "link": element.get("feedburner_origlink") or element.get("link") or "",
        "labels": [],
        "fault": None,
    }
    try:
        found["title"] = _title(element, words)
    except (ValueError, AssertionError) as broken:  # html.parser asserts properties of its input
        found["fault"] = str(broken)
    terms = [tag.get("label") or tag.get("term") or "" for tag in element.get("tags", ())]
    parts = [part for term in terms if "://" not in term for part in term.replace(">", "/").split("/")]
    try:
        labels = [words.shortened(words.one_line(words.plain(part)).lower(), LABEL_CHARS) for part in parts]
    except (ValueError, AssertionError):  # the entry's other fields are used without it
        labels = []
    found["labels"] = list(dict.fromkeys(label for label in labels if label))
    return found


def _texts(entry: Any, title: str, base: str) -> dict[str, Any]:
    """An entry's summary and content as article bodies ('' if missing), and the addresses of their pictures."""
    from backend.news.markup import sanitised, without_trailer
    from protocol.bodies import body_of_text

    summary = {"value": entry.get("summary") or "", "type": (entry.get("summary_detail") or {}).get("type")}
    content: Any = next((part for part in entry.get("content") or () if part.get("value")), {})
    found: dict[str, Any] = {}
    for name, part in (("summary", summary), ("content", content)):
        text = part.get("value") or ""
        if (part.get("type") or "") == "text/plain":
            found |= {name: without_trailer(body_of_text(text), title), f"{name}_pictures": ()}
        else:
            body, shown = sanitised(text, part.get("base") or entry.get("link") or base, title)
            found |= {name: body, f"{name}_pictures": shown}
    return found


def _every_sec(feed: Any) -> float:
    """Seconds between updates as the feed declares them: RSS's ttl, else sy:updatePeriod; 0 without either."""
    try:
        ttl = 60.0 * float(feed.get("ttl") or 0)
        often = float(feed.get("sy_updatefrequency") or 1)
    except ValueError:
        return 0.0
    if 0 < ttl < float("inf"):
        return ttl
    period = PERIODS_SEC.get(str(feed.get("sy_updateperiod") or "").strip().lower(), 0.0)
    return period / often if 0 < often < float("inf") else 0.0


def _helper(file: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _limit() -> None:
    if hasattr(os, "nice"):  # not on Windows
        os.nice(NICENESS)
    limit_this_process(PARSE_CPU_SEC, PARSE_MEMORY_BYTES, ANSWER_LIMIT_BYTES)


def _main() -> None:
    if sys.argv[1] != FORK:
        *paths, content_type, base = sys.argv[1:]
        _answer(content_type, base, [_helper(path) for path in paths])
        return
    helpers = [_helper(path) for path in sys.argv[3:]]
    _read(_EXAMPLE, "", "", *helpers)  # imports what a feed needs
    serve_forks(int(sys.argv[2]), lambda arguments: _answer(arguments[0], arguments[1], helpers))


def _answer(content_type: str, base: str, helpers: list[ModuleType]) -> None:
    """Read standard input within the limits, and write the answer to standard output."""
    _limit()
    try:
        found = _read(sys.stdin.buffer.read(), content_type, base, *helpers)
    except FeedUnreadable as refused:
        found = {"refused": str(refused)}
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
    try:
        sys.stdout.buffer.write(json.dumps(found).encode())
        sys.stdout.buffer.flush()
    except OSError:  # Python ignores SIGXFSZ, so a file at its limit is a write error
        sys.exit(ANSWER_TOO_LONG)


if __name__ == "__main__":
    _main()

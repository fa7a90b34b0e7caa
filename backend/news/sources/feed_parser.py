"""feedparser in a process of its own, with a limit on its time, its memory and its answer.

feedparser reads almost anything, by regular expressions whose time grows with the square of what is malformed: 60 KB of
nested tags keep it busy for minutes. So does html.parser, by which `backend.plain_text` takes the markup out of what an
entry says: 60 KB of "<a <a <a" took it a minute. No check beforehand finds all such documents, so both work where they
can be stopped.

This file is both sides: `parse` runs it as a script, in which nothing of Ownfeed is imported but the files of
`plain_text` and `picture_links`, which need nothing else.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

PARSE_CPU_SEC = 30
"""Processor time for one feed; one of 10,000 entries and 5.8 MB took 9 s."""
PARSE_WALL_SEC = 600
"""The net below it, for a machine that is very busy."""
PARSE_MEMORY_BYTES = 2 * 1024**3
ANSWER_LIMIT_BYTES = 100 * 1024 * 1024
ENTRIES_LIMIT = 10_000
LABEL_CHARS = 80
_HELPERS = [str(Path(__file__).parents[2] / f"{name}.py") for name in ("plain_text", "picture_links")]
OUT_OF_MEMORY, ANSWER_TOO_LONG = 3, 4
"""Exit codes of the parsing process for limits that Python meets as an exception; 1 is a crash."""


class FeedUnreadable(ValueError):
    """The document is no feed, or none that can be read within the limits; the message goes on from its name."""


class ParsedFeed(NamedTuple):
    """What feedparser has found, as plain JSON values.

    head and entries: title, summary and content as plain text, link, labels (categories in lower case, in the feed's
    order; 'Sport/Football' and 'Sport > Football' are two), published (a UTC time's year, month, day, hour, minute and
    second), of entries pictures (each a `PictureLink`'s values), each empty or None where it's missing; fault, of an
    entry whose texts can't be read: why. fault: why the document is not well-formed XML, None if it is. left_out:
    entries beyond the limit.
    """

    head: dict[str, Any]
    entries: list[dict[str, Any]]
    fault: str | None
    left_out: int


def parse(data: bytes, *, content_type: str = "", base: str = "") -> ParsedFeed:
    """The feed in `data`, whose links are relative to `base`. Raises FeedUnreadable."""
    from backend.child_environment import child_environment  # the script has no backend

    with tempfile.TemporaryFile() as document, tempfile.TemporaryFile() as answer:
        document.write(data)
        document.seek(0)
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(Path(__file__)), content_type, base, *_HELPERS],
                stdin=document,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                timeout=PARSE_WALL_SEC,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise FeedUnreadable(f"takes longer than {PARSE_WALL_SEC} s to read") from None
        answer.seek(0)
        said = answer.read(ANSWER_LIMIT_BYTES + 1)
    if done.returncode != 0:
        raise FeedUnreadable(_broken_off(done.returncode))
    if len(said) > ANSWER_LIMIT_BYTES:
        raise FeedUnreadable(_broken_off(ANSWER_TOO_LONG))
    found = json.loads(said)
    if "refused" in found:
        raise FeedUnreadable(found["refused"])
    return ParsedFeed(**found)


def _broken_off(code: int) -> str:
    """Why the process ended without an answer; a negative code is the signal that ended it."""
    ended_by = signal.Signals(-code).name if code < 0 else ""
    if ended_by in ("SIGXCPU", "SIGKILL"):
        return f"can't be read within {PARSE_CPU_SEC} s of processor time"
    if code == OUT_OF_MEMORY:
        return f"can't be read within {PARSE_MEMORY_BYTES // 1024**2:,} MiB of memory"
    if code == ANSWER_TOO_LONG:
        return f"says more than {ANSWER_LIMIT_BYTES // 1024**2:,} MiB once it is read"
    return (
        f"made the parser fail ({ended_by or f'exit code {code}'}), which is a defect of Ownfeed's or of feedparser's"
    )


def element(data: bytes) -> bytes:
    """UTF-8 XML from its first element on.

    Formal guarantees: what is returned begins with a start tag, and XML allows declarations before it only, so no
    parser can find an entity declared there. A document type without declarations of its own is left
    out and never fetched.

    Raises FeedUnreadable for one with declarations, and for a document without an element.
    """
    at = 0
    while (at := data.find(b"<", at)) >= 0:
        if data.startswith(b"<!--", at):
            at = _after(data, b"-->", at + 4)
        elif data.startswith(b"<?", at):
            at = _after(data, b">", at + 2)
        elif data.startswith(b"<!", at):
            end = _after(data, b">", at)
            said = data[at:end].lower()
            if not said.startswith(b"<!doctype") or b"[" in said or b"<!" in said[2:]:
                raise FeedUnreadable("declares entities in its document type, which are refused")
            at = end
        elif data[at + 1 : at + 2].isalpha() or data[at + 1 : at + 2] == b"_":
            return data[at:]
        else:
            at += 1
    raise FeedUnreadable("has no root element")


def _after(data: bytes, end: bytes, start: int) -> int:
    found = data.find(end, start)
    return len(data) if found < 0 else found + len(end)


def _read(data: bytes, content_type: str, base: str, words: ModuleType, pictures: ModuleType) -> dict[str, Any]:
    import re
    from io import BytesIO

    from feedparser import encodings, parse

    encodings.lazy_chardet_encoding = None  # chardet, where some package brings it, would have a feed read otherwise
    if not data.strip():
        raise FeedUnreadable("is empty")
    # Bytes in which these words can be read are not UTF-16, whatever they say of themselves.
    data = re.sub(rb"^\s*<\?xml[^>]{0,80}encoding=.utf-?(16|32)[^>]{0,80}>", b"", data, count=1, flags=re.IGNORECASE)
    said = {"content-type": content_type} if content_type else {}
    try:
        data = encodings.convert_to_utf8(said, data.lstrip(), {})
    except (ValueError, LookupError) as unreadable:  # the first is of its bytes, or of a zero among them
        raise FeedUnreadable("names an encoding that is none") from unreadable
    data = element(data)
    named = re.match(rb"<([^\s/>]{1,60})", data)
    root = named[1].decode("utf-8", "replace") if named else ""
    if root.lower() == "html":
        raise FeedUnreadable("is a web page (HTML), not a feed")
    headers = {"content-type": "application/xml; charset=utf-8"} | ({"content-location": base} if base else {})
    try:
        parsed = parse(BytesIO(b'<?xml version="1.0" encoding="utf-8"?>\n' + data), response_headers=headers)
    except MemoryError:
        raise
    except Exception as broken:  # of elements where it doesn't expect them it makes errors of all kinds
        raise FeedUnreadable(f"is malformed beyond reading ({type(broken).__name__}: {broken})") from broken
    if not parsed.entries and not parsed.version:
        fault = f" ({parsed.bozo_exception})" if parsed.bozo else ""
        raise FeedUnreadable(f"has the root <{root}>, neither RSS nor Atom{fault}")
    return {
        "head": _said(parsed.feed, words),
        "entries": [
            _said(entry, words) | {"pictures": pictures.links_of(entry)} for entry in parsed.entries[:ENTRIES_LIMIT]
        ],
        "fault": str(parsed.bozo_exception) if parsed.bozo else None,
        "left_out": max(0, len(parsed.entries) - ENTRIES_LIMIT),
    }


def _said(element: Any, words: ModuleType) -> dict[str, Any]:
    moment = element.get("published_parsed") or element.get("updated_parsed")
    found: dict[str, Any] = {
        "title": "",
        "link": element.get("feedburner_origlink") or element.get("link") or "",
        "summary": "",
        "content": "",
        "labels": [],
        "published": list(moment[:6]) if moment else None,
        "fault": None,
    }
    try:
        found["title"] = words.one_line(words.plain(element.get("title") or ""))
        texts = (element.get("summary"), next((p["value"] for p in element.get("content", ()) if "value" in p), ""))
        found["summary"], found["content"] = (words.untrailed(words.plain(one or ""), found["title"]) for one in texts)
    except (ValueError, AssertionError) as broken:  # html.parser asserts what a document says
        found["fault"] = str(broken)
    terms = [tag.get("label") or tag.get("term") or "" for tag in element.get("tags", ())]
    parts = [part for term in terms if "://" not in term for part in term.replace(">", "/").split("/")]
    try:
        labels = [words.shortened(words.one_line(words.plain(part)).lower(), LABEL_CHARS) for part in parts]
    except (ValueError, AssertionError):  # what its other fields say counts without it
        labels = []
    found["labels"] = list(dict.fromkeys(label for label in labels if label))
    return found


def _helper(file: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _limit() -> None:
    try:
        import resource
    except ImportError:  # not on Windows, where the parent's clock is the only limit
        return
    for what, most in (
        (resource.RLIMIT_CPU, PARSE_CPU_SEC),
        (resource.RLIMIT_AS, PARSE_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, ANSWER_LIMIT_BYTES),
    ):
        resource.setrlimit(what, (most, most))


def _main() -> None:
    _limit()
    try:
        found = _read(sys.stdin.buffer.read(), sys.argv[1], sys.argv[2], *map(_helper, sys.argv[3:]))
    except FeedUnreadable as refused:
        found = {"refused": str(refused)}
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
    try:
        sys.stdout.buffer.write(json.dumps(found).encode())
        sys.stdout.buffer.flush()
    except OSError:  # Python ignores SIGXFSZ, so that a file at its limit is an error of writing
        sys.exit(ANSWER_TOO_LONG)


if __name__ == "__main__":
    _main()

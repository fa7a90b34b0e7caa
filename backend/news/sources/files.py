"""Sources that are files, read once, line by line: JSON Lines, and MIND's news.tsv.

JSON Lines: one NewsItem per line, as `NewsItem.model_dump_json()` writes it.

MIND (Wu et al., "MIND: A Large-scale Dataset for News Recommendation", 2020): tab-separated, no header: id, category,
subcategory, title, abstract, url, title entities, abstract entities.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from pydantic import ValidationError

from backend.news.errors import SourceUnreachable
from backend.news.item import NewsItem, Rejection, rejection
from backend.news.plain_text import one_line
from backend.news.sources.links import canonical
from backend.news.sources.source import SourceOption, StaticSource

LINE_LIMIT_BYTES = 2_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ONE_LINE_FIELDS = ("title", "abstract", "publisher", "section", "topic", "story")
MIND_COLUMNS = 8
MIND_COLUMNS_USED = 6
"""The entities are not read, so a file without them works."""
UNKNOWN_CATEGORY = "unknown"


def open_source(path: Path) -> BinaryIO:
    """Open a source's file. Raises SourceUnreachable if it is missing, a folder or unreadable."""
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceUnreachable(str(path), (error.strerror or type(error).__name__).lower()) from error


class _File(StaticSource):
    name: ClassVar[str]
    file: Path

    @property
    def title(self) -> str:
        """Return its kind and the file's name."""
        return f"{self.name} {self.file.name}"[:200]


@dataclass(frozen=True)
class JsonLinesSource(_File):
    name: ClassVar[str] = "jsonl"
    help: ClassVar[str] = "A file with one article as JSON per line."

    file: Annotated[Path, SourceOption("One JSON object per line: id, title, section, topic, published_at, ...")]

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its articles, each with its own time."""
        return read_jsonl(self.file)


@dataclass(frozen=True)
class MindSource(_File):
    """A news.tsv of MIND."""

    name: ClassVar[str] = "mind"
    help: ClassVar[str] = "The catalogue of Microsoft's MIND dataset."

    file: Annotated[Path, SourceOption("MIND's news.tsv.")]

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its rows, all published `now`."""
        return read_mind(self.file, published_at=now)


def read_jsonl(path: Path) -> Iterator[NewsItem | Rejection]:
    """The articles of a JSON Lines file, without control characters and with canonical links, as for any source.

    Raises SourceUnreachable.
    """
    return _items(path, _json_fields)


def read_mind(path: Path, *, published_at: datetime | None = None) -> Iterator[NewsItem | Rejection]:
    """The articles of a news.tsv.

    published_at: the time of all rows, since MIND gives none; by default now. Raises SourceUnreachable, and ValueError
    for a time without a zone.
    """
    moment = published_at or datetime.now(UTC)
    if moment.tzinfo is None:
        raise ValueError("published_at needs a time zone")
    return _items(path, lambda line: {**_mind_fields(line), "published_at": moment})


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, str] | Rejection]:
    """(number from 1, text) of each line that is not blank; a Rejection for one that is too long or not UTF-8."""
    number = 0
    while line := stream.readline(LINE_LIMIT_BYTES + 1):
        number += 1
        if len(line) > LINE_LIMIT_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LINE_LIMIT_BYTES)
            yield Rejection(number, "row", f"longer than the limit of {LINE_LIMIT_BYTES:,} bytes")
            continue
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield Rejection(number, "row", f"not UTF-8 at byte {error.start + 1}")
            continue
        if text.strip():
            yield number, text


def _items(path: Path, fields_of: Callable[[str], dict[str, Any]]) -> Iterator[NewsItem | Rejection]:
    """Each line as an article. fields_of: returns a line's fields; raises ValueError with the reason."""
    with open_source(path) as stream:
        for line in read_lines(stream):
            yield line if isinstance(line, Rejection) else _item(*line, fields_of)


def _item(number: int, line: str, fields_of: Callable[[str], dict[str, Any]]) -> NewsItem | Rejection:
    try:
        fields = fields_of(line)
    except ValueError as error:
        return Rejection(number, "row", str(error))
    if isinstance(fields.get("url"), str) and fields["url"]:
        try:
            fields["url"] = canonical(fields["url"])
        except ValueError as error:
            return Rejection(number, "url", str(error))
    try:
        return NewsItem.model_validate(fields)
    except ValidationError as error:
        return rejection(number, error)


def _json_fields(line: str) -> dict[str, Any]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    for field in ONE_LINE_FIELDS:
        if isinstance(row.get(field), str):
            row[field] = one_line(row[field])
    return row


def _mind_fields(line: str) -> dict[str, Any]:
    columns = line.split("\t")
    if not MIND_COLUMNS_USED <= len(columns) <= MIND_COLUMNS:
        raise ValueError(f"{len(columns)} columns; MIND has {MIND_COLUMNS}, and {MIND_COLUMNS_USED} are required")
    news_id, category, subcategory, title, abstract, url = map(one_line, columns[:MIND_COLUMNS_USED])
    section = category.lower() or UNKNOWN_CATEGORY
    return {
        "id": news_id,
        "title": title,
        "abstract": abstract,
        "url": url,
        "section": section,
        "topic": subcategory.lower() or section,
    }

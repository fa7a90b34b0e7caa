"""JSON Lines: one NewsItem a line, as `NewsItem.model_dump_json()` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ValidationError

from backend.news.item import NewsItem
from backend.news.report import Rejection, rejection
from backend.news.sources.lines import open_source, read_lines
from backend.news.sources.links import canonical
from backend.news.sources.source import FeedLocation, SourceOption
from backend.news.sources.text import one_line, paragraphs

ONE_LINE_FIELDS = ("title", "abstract", "publisher", "section", "topic", "story")


@dataclass(frozen=True)
class JsonLinesSource:
    """A file of JSON lines."""

    name: ClassVar[str] = "jsonl"
    help: ClassVar[str] = "One news item as JSON a line."

    file: Annotated[Path, SourceOption("One JSON object a line: id, title, section, topic, published_at, ...")]

    @property
    def title(self) -> str:
        """Its kind and the file's name."""
        return f"{self.name} {self.file.name}"[:200]

    @property
    def feed(self) -> FeedLocation | None:
        """A file is read once."""
        return None

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its lines, each with its own time."""
        return read_jsonl(self.file)


def read_jsonl(path: Path) -> Iterator[NewsItem | Rejection]:
    """The news of a file of JSON lines. Control characters are removed and links made canonical, as for any source.

    Raises SourceUnreachable.
    """
    with open_source(path) as stream:
        for line in read_lines(stream):
            yield line if isinstance(line, Rejection) else _item(*line)


def _item(number: int, line: str) -> NewsItem | Rejection:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Rejection(number, "row", f"not JSON ({error})")
    if not isinstance(row, dict):
        return Rejection(number, "row", f"not a JSON object but {type(row).__name__}")
    for field in ONE_LINE_FIELDS:
        if isinstance(row.get(field), str):
            row[field] = one_line(row[field])
    if isinstance(row.get("body"), str):
        row["body"] = paragraphs(row["body"])
    if isinstance(row.get("url"), str) and row["url"]:
        try:
            row["url"] = canonical(row["url"])
        except ValueError as error:
            return Rejection(number, "url", str(error))
    try:
        return NewsItem.model_validate(row)
    except ValidationError as error:
        return rejection(number, error)

"""JSON Lines: one NewsItem a line, as `NewsItem.model_dump_json()` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backend.news.item import NewsItem
from backend.news.report import Rejection, rejection
from backend.news.sources.lines import open_source, read_lines
from backend.news.sources.links import canonical
from backend.news.sources.text import one_line, paragraphs

ONE_LINE_FIELDS = ("title", "abstract", "publisher", "section", "topic", "story")


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

"""MIND's news.tsv (Wu et al., "MIND: A Large-scale Dataset for News Recommendation", 2020).

Tab-separated, no header: id, category, subcategory, title, abstract, url, title entities, abstract entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ValidationError

from backend.news.item import NewsItem
from backend.news.report import Rejection, rejection
from backend.news.sources.lines import open_source, read_lines
from backend.news.sources.links import canonical
from backend.news.sources.source import FeedLocation, SourceOption
from backend.news.sources.text import one_line

COLUMNS = 8
COLUMNS_USED = 6
"""The entities are not read, so a file without them will do."""
UNKNOWN_CATEGORY = "unknown"


@dataclass(frozen=True)
class MindSource:
    """A news.tsv of MIND."""

    name: ClassVar[str] = "mind"
    help: ClassVar[str] = "The catalogue of Microsoft's MIND dataset."

    file: Annotated[Path, SourceOption("MIND's news.tsv.")]

    @property
    def title(self) -> str:
        """Its kind and the file's name."""
        return f"{self.name} {self.file.name}"[:200]

    @property
    def feed(self) -> FeedLocation | None:
        """A file is read once."""
        return None

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its rows, all published `now`."""
        return read_mind(self.file, published_at=now)


def read_mind(path: Path, *, published_at: datetime | None = None) -> Iterator[NewsItem | Rejection]:
    """The news of a news.tsv.

    published_at: MIND gives no times, so all rows get this one; by default the moment of reading, which makes the
    whole file news of today. Raises SourceUnreachable, and ValueError on a time without a zone.
    """
    moment = published_at or datetime.now(UTC)
    if moment.tzinfo is None:
        raise ValueError("published_at needs a time zone")
    with open_source(path) as stream:
        for line in read_lines(stream):
            yield line if isinstance(line, Rejection) else _item(*line, moment)


def _item(number: int, line: str, published_at: datetime) -> NewsItem | Rejection:
    columns = line.split("\t")
    if not COLUMNS_USED <= len(columns) <= COLUMNS:
        return Rejection(
            number, "row", f"{len(columns)} columns; MIND has {COLUMNS}, of which {COLUMNS_USED} are needed"
        )
    news_id, category, subcategory, title, abstract, url = map(one_line, columns[:COLUMNS_USED])
    section = category.lower() or UNKNOWN_CATEGORY
    try:
        link = canonical(url) if url else ""
    except ValueError as error:
        return Rejection(number, "url", str(error))
    try:
        return NewsItem(
            id=news_id,
            title=title,
            abstract=abstract,
            url=link,
            section=section,
            topic=subcategory.lower() or section,
            published_at=published_at,
        )
    except ValidationError as error:
        return rejection(number, error)

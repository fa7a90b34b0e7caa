"""One article as every source delivers it and the pool stores it, and the report of an ingest run."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from protocol.bodies import TEXT_PICTURES_LIMIT, in_vocabulary
from protocol.ids import NewsId
from protocol.links import leads_out

TITLE_LIMIT_CHARS = 1_000
ABSTRACT_LIMIT_CHARS = 5_000
UNSORTED = "unsorted"
"""Section of an article that arrived without one, until `backend.news.sections` assigns one by its vector."""

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


def _as_body(text: object) -> object:
    return in_vocabulary(text) if isinstance(text, str) else text


class NewsItem(BaseModel):
    """An article; a source builds it, the pool stores it, and nothing edits it in between.

    Raises pydantic's ValidationError, whose message names the field and the limit, on an empty title, a text over its
    limit, a malformed id or a time without a zone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    id: NewsId
    title: str = Field(min_length=1, max_length=TITLE_LIMIT_CHARS)
    abstract: str = Field(default="", max_length=ABSTRACT_LIMIT_CHARS)
    body: Annotated[str, BeforeValidator(_as_body)] = Field(
        default="", description="HTML of the allowed elements (`protocol.bodies`); other text is read as plain text."
    )
    url: str = Field(default="", max_length=2_000, description="Canonical link to a page of the web, or empty.")
    publisher: str = Field(default="", max_length=120)
    section: Label = Field(description="Broad category, lower case: 'politics'.")
    topic: Label = Field(description="Finer category within the section, lower case: 'elections'.")
    story: str | None = Field(default=None, max_length=80, description="Shared by the items of one developing story.")
    published_at: datetime = Field(description="When it was published; if its source gives no date, when it arrived.")
    dated: bool = Field(default=True, description="Whether its source says when it was published.")
    picture: str = Field(default="", max_length=2_000, description="Address of its publisher's picture, or empty.")
    text_pictures: tuple[Annotated[str, StringConstraints(max_length=2_000)], ...] = Field(
        default=(), max_length=TEXT_PICTURES_LIMIT, description="Addresses of the first pictures of its body, in order."
    )
    weight: float = Field(default=0.5, ge=0.0, le=1.0, description="Editorial weight: 1 leads a front page.")

    @field_validator("url")
    @classmethod
    def _leads_out(cls, url: str) -> str:
        """Drop a link that leads into the reader's own machine or network; the article stays."""
        return url if leads_out(url) else ""

    @field_validator("published_at")
    @classmethod
    def _in_utc(cls, value: datetime) -> datetime:
        if value.tzinfo is None or not 1 < value.year < 9_999:  # so that no conversion of zones overflows
            raise ValueError("needs a time zone, and a year from 2 to 9998")
        return value.astimezone(UTC)


LISTED_REJECTIONS = 1_000
"""A report lists this many rejections and counts the rest."""
KEPT_REJECTIONS = 50
"""The run's row in the database keeps this many of them, for the console."""
KEPT_REASON_CHARS = 500
COUNTS = ("added", "updated", "unchanged", "duplicates", "withheld", "rejected_count")


@dataclass(frozen=True, slots=True)
class Rejection:
    """One malformed row: its line (or entry) counted from 1, the invalid field, and the reason."""

    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        """JSON as stored with the run; an overlong reason is cut."""
        return asdict(self) | {"reason": self.reason[:KEPT_REASON_CHARS]}


def rejection(line: int, error: ValidationError) -> Rejection:
    """The first error that pydantic found in a row."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "row"
    return Rejection(line, where, first["msg"].removeprefix("Value error, "))


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Counts of one run: `added`, `updated` and `unchanged` articles are in the pool, the others are not.

    duplicates: how many of the added or updated articles repeat an older one. withheld: articles taken down earlier,
    older than the run's horizon, or which only another feed may change. rejected: the first 1,000 malformed rows;
    `rejected_count` counts all.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    duplicates: int = 0
    withheld: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    rejected_count: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> int:
        """How many rows of the pool the run wrote."""
        return self.added + self.updated

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        counts = (
            f"{self.added:,} added, {self.updated:,} updated, {self.unchanged:,} unchanged, "
            f"{self.duplicates:,} near-duplicates linked, {self.withheld:,} withheld, "
            f"{self.rejected_count:,} rejected in {self.seconds:.1f} s"
        )
        lines = [counts, *(f"  {rejected}" for rejected in self.rejected)]
        if self.rejected_count > len(self.rejected):
            lines.append(f"  and {self.rejected_count - len(self.rejected):,} more")
        return "\n".join(lines)


def total(reports: Iterable[IngestReport], seconds: float) -> IngestReport:
    """The sum of the batches of one run, which took `seconds` in total."""
    batches = list(reports)
    listed = [rejected for batch in batches for rejected in batch.rejected]
    counts = {name: sum(getattr(batch, name) for batch in batches) for name in COUNTS}
    return IngestReport(**counts, rejected=listed[:LISTED_REJECTIONS], seconds=seconds)

"""What became of the rows of a source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import ValidationError

LISTED_REJECTIONS = 1_000
"""A report lists so many rejections and counts the rest."""
KEPT_REJECTIONS = 50
"""The run's line in the database keeps so many of them, for the console."""
KEPT_REASON_CHARS = 500
COUNTS = ("added", "updated", "unchanged", "duplicates", "withheld", "rejected_count")


@dataclass(frozen=True, slots=True)
class Rejection:
    """One malformed row: its line (or entry) from 1, the field at fault, and why, with the limit."""

    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        """As it is kept with its run; an overlong reason is cut."""
        return asdict(self) | {"reason": self.reason[:KEPT_REASON_CHARS]}


def rejection(line: int, error: ValidationError) -> Rejection:
    """The first fault that pydantic found in a row."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "row"
    return Rejection(line, where, first["msg"].removeprefix("Value error, "))


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Counts of one run: `added`, `updated` and `unchanged` are in the pool, the others are not.

    duplicates: how many of the added or updated news repeat an older one.
    withheld: taken down before, older than the run's horizon, or another feed's to change.
    rejected: the first 1,000 malformed rows; `rejected_count` counts all.
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
    """The sum of the batches of one run, which took `seconds` in all."""
    batches = list(reports)
    listed = [rejected for batch in batches for rejected in batch.rejected]
    counts = {name: sum(getattr(batch, name) for batch in batches) for name in COUNTS}
    return IngestReport(**counts, rejected=listed[:LISTED_REJECTIONS], seconds=seconds)

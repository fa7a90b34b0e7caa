"""MIND's files as the laboratory reads them: titles, and readers with their histories."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from experiments.table import DataMissing


@dataclass(frozen=True)
class MindReader:
    """A real reader: clicked news ids, oldest first."""

    user: str
    clicks: tuple[str, ...]


def titles(folder: Path) -> dict[str, str]:
    """News id -> title, in the file's order. Raises DataMissing."""
    return {row[0]: row[3] for row in _rows(folder / "news.tsv") if len(row) > 3 and row[3].strip()}


def readers(folder: Path, *, least_clicks: int) -> list[MindReader]:
    """Readers with so many clicks or more, one a user (the longest history), by user id. Raises DataMissing."""
    longest: dict[str, tuple[str, ...]] = {}
    for row in _rows(folder / "behaviors.tsv"):
        history = tuple(row[3].split()) if len(row) > 3 else ()
        if len(history) > len(longest.get(row[1], ())):
            longest[row[1]] = history
    return [MindReader(user, longest[user]) for user in sorted(longest) if len(longest[user]) >= least_clicks]


def _rows(path: Path) -> list[list[str]]:
    if not path.is_file():
        raise DataMissing(f"{path} is not there (name the folder with --data or OWNFEED_DATA)")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

"""Tables of results, and the records they are stored in.

Each command has one committed record, experiments/results/NAME.json.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

Cell = str | int | float | None
FILE_WIDTH = 240


@dataclass(frozen=True)
class Table:
    """One table of results, with units in the column names.

    notes: what was measured and on what data. seeds: the seeds of all draws.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def show(self, console: Console) -> None:
        shown = RichTable(title=self.title, title_justify="left", title_style="bold")
        for place, column in enumerate(self.columns):
            shown.add_column(column, justify="left" if place == 0 else "right")
        for row in self.rows:
            shown.add_row(*(text_of(cell) for cell in row))
        if not console.is_terminal:
            # In a file or a pipe, columns are as wide as their content.
            console.width = max(console.width, FILE_WIDTH)
        console.print(shown)
        for note in self.notes:
            console.print(f"  {note}", style="dim", markup=False)

    def as_json(self) -> dict[str, Any]:
        """Return the table as JSON values, for --json."""
        return asdict(self)


def text_of(cell: Cell, nothing: str = "-") -> str:
    """Return a cell as text: four digits for a float, thousands separators for an integer."""
    if cell is None:
        return nothing
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def required(folder: Path) -> None:
    """Raise DataMissing if the folder does not exist."""
    if not folder.is_dir():
        raise DataMissing(f"research data: {folder} does not exist; name the folder with --data or OWNFEED_DATA")


class DataMissing(Exception):
    """Research data is missing; the message names it."""


FOLDER = Path(__file__).parent / "results"
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Record:
    """The tables of one command, and their provenance.

    command: without paths of this machine. machine: processor, cores and Python. load: one-minute load average when the
    command ended; on a busy machine, times are too long. version: of Ownfeed.
    """

    command: str
    machine: str
    measured_on: date
    version: str
    load: float
    tables: tuple[Table, ...]

    @classmethod
    def of_now(cls, command: str, tables: Sequence[Table]) -> Record:
        """Return a record measured now on this machine."""
        load = round(os.getloadavg()[0], 1)
        return cls(command, machine(), datetime.now(UTC).date(), version("ownfeed"), load, tuple(tables))

    def table(self, title: str) -> Table:
        """Return the table with this title. Raises KeyError that lists the titles."""
        for table in self.tables:
            if table.title == title:
                return table
        raise KeyError(f"{title!r} is not one of {[table.title for table in self.tables]}")

    def provenance(self, tables: Sequence[Table]) -> str:
        """Return command, date, machine, load, and the seeds and version of some of its tables, in one line."""
        parts = [f"`{self.command}`, {self.measured_on}, {self.machine}", f"load {self.load:g}"]
        if seeds := dict.fromkeys(seed for table in tables for seed in table.seeds):
            parts.append(f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}")
        parts.append(f"version {self.version}")
        return "; ".join(parts)


def machine() -> str:
    """Return processor, cores and Python of this machine."""
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def writer(name: str) -> str:
    """Return the shortest command that writes this record."""
    if name.startswith("bench-"):
        return f"ownfeed bench {name.removeprefix('bench-')}"
    return f"ownfeed evaluate {name.replace('-figures', ' --figures')}"


def write(name: str, record: Record, folder: Path | None = None) -> Path:
    """Write the record as JSON, atomically, and return its path."""
    path = (folder or FOLDER) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = asdict(record) | {"measured_on": record.measured_on.isoformat()}
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(scratch, path)
    return path


def read(name: str, folder: Path | None = None) -> Record:
    """Read a record. Raises FileNotFoundError, or ValueError naming the file and the field."""
    path = (folder or FOLDER) / f"{name}.json"
    try:
        kept: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        tables = tuple(
            Table(
                each["title"],
                tuple(each["columns"]),
                [tuple(row) for row in each["rows"]],
                tuple(each["notes"]),
                tuple(each["seeds"]),
            )
            for each in kept["tables"]
        )
        measured_on = date.fromisoformat(kept["measured_on"])
        return Record(**{**kept, "tables": tables, "measured_on": measured_on})
    except (KeyError, TypeError, json.JSONDecodeError) as broken:
        raise ValueError(f"{path.name} is not a record: {broken!r}") from None

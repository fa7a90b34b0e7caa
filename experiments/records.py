"""What the laboratory's commands measured, one committed file a command: experiments/results/NAME.json."""

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

from experiments.table import Table

FOLDER = Path(__file__).parent / "results"
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Record:
    """Tables with where they come from.

    command: as it was called, but for where its files lie. machine: processor, cores and Python. load: the machine's
    load average of one minute when the command ended; figures of time from a loaded machine are no bars. measured_on:
    the day. version: of Ownfeed.
    """

    command: str
    machine: str
    measured_on: date
    version: str
    load: float
    tables: tuple[Table, ...]

    @classmethod
    def of_now(cls, command: str, tables: Sequence[Table]) -> Record:
        """Measured just now, here."""
        load = round(os.getloadavg()[0], 1)
        return cls(command, machine(), datetime.now(UTC).date(), version("ownfeed"), load, tuple(tables))

    def table(self, title: str) -> Table:
        """Raises KeyError with the titles there are."""
        for table in self.tables:
            if table.title == title:
                return table
        raise KeyError(f"{title!r} is none of {[table.title for table in self.tables]}")

    def provenance(self, table: Table) -> str:
        """Where one of the tables comes from, in a line."""
        told = [f"`{self.command}`, {self.measured_on}, {self.machine}", f"load {self.load:g}"]
        if table.seeds:
            told.append(f"seed{'s' * (len(table.seeds) > 1)} {', '.join(map(str, table.seeds))}")
        told.append(f"version {self.version}")
        return "; ".join(told)


def machine() -> str:
    """Processor, cores and Python of this machine."""
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def writer(name: str) -> str:
    """The command that writes the record of this name, as short as it can be called."""
    return f"ownfeed bench {name.removeprefix('bench-')}" if name.startswith("bench-") else f"ownfeed evaluate {name}"


def write(name: str, record: Record, folder: Path | None = None) -> Path:
    """The record as JSON, whole or not at all; its file."""
    path = (folder or FOLDER) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = asdict(record) | {"measured_on": record.measured_on.isoformat()}
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(scratch, path)
    return path


def read(name: str, folder: Path | None = None) -> Record:
    """Raises FileNotFoundError, and ValueError naming the file and the field for what is no record."""
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
        raise ValueError(f"{path.name} is no record: {broken!r}") from None

"""README's table of figures, composed from the records that commands wrote: what it says is `summary.toml`.

A row there has `what`, a `figure` in words with places for cells, the record, and where in its tables each cell stands.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.records import Record, writer
from experiments.table import Cell

FILE = Path(__file__).with_name("summary.toml")
COLUMNS = ("what", "figure", "command", "measured")
EXTREMES: Mapping[str, Callable[[list[float]], float]] = {"least": min, "greatest": max}


def rows_of(file: Path = FILE) -> list[dict[str, Any]]:
    """The file's rows."""
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["row"]
    return rows


def summary(read: Callable[[str], Record], file: Path = FILE) -> str:
    """The table as markdown, with the machines at its foot.

    A row whose record isn't there says that it is not measured yet. Raises KeyError for a cell that a record hasn't.
    """
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    machines: dict[str, None] = {}
    for row in rows_of(file):
        try:
            record = read(row["record"])
        except FileNotFoundError:
            lines.append(f"| {row['what']} | not measured yet | `{writer(row['record'])}` |  |")
            continue
        figure = row["figure"].format(**{name: cell(record, where) for name, where in row["cells"].items()})
        lines.append(f"| {row['what']} | {figure} | `{record.command}` | {when(record)} |")
        machines[f"{record.machine}, version {record.version}"] = None
    return "\n".join(lines) + f"\n\n<sub>{'; '.join(machines)}</sub>\n"


def when(record: Record) -> str:
    """The day, and how busy the machine was."""
    return f"{record.measured_on}, load {record.load:g}"


def cell(record: Record, where: Mapping[str, Any]) -> Cell:
    """What stands in `column` of the row of `table` that begins with the cells of `row`; or, of all such rows, `of`
    says which: the least or the greatest. Raises KeyError where no row, or more than one, begins so."""
    table, begins = record.table(where["table"]), where.get("row", [])
    place = table.columns.index(where["column"])
    found = [row[place] for row in table.rows if list(row[: len(begins)]) == begins]
    numbers = [each for each in found if isinstance(each, int | float)]
    if "of" in where and numbers and len(numbers) == len(found):
        return EXTREMES[where["of"]](numbers)
    if len(found) != 1:
        raise KeyError(f"{len(found)} rows of {table.title!r} begin with {begins}")
    return found[0]

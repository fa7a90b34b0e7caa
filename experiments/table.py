"""A table of figures: rows with units in the column names, and what a reader must know to judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

Cell = str | int | float | None
FILE_WIDTH = 240


@dataclass(frozen=True)
class Table:
    """One table of figures. notes: what was measured against what, and on what data. seeds: of what was drawn."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def show(self, console: Console) -> None:
        """Print it."""
        shown = RichTable(title=self.title, title_justify="left", title_style="bold")
        for place, column in enumerate(self.columns):
            shown.add_column(column, justify="left" if place == 0 else "right")
        for row in self.rows:
            shown.add_row(*(text_of(cell) for cell in row))
        if not console.is_terminal:
            # In a file or a pipe no line breaks at the edge: every column may be as wide as its words.
            console.width = max(console.width, FILE_WIDTH)
        console.print(shown)
        for note in self.notes:
            console.print(f"  {note}", style="dim", markup=False)

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return asdict(self)


def text_of(cell: Cell, nothing: str = "-") -> str:
    """A cell as it is printed: four digits of a number with decimals, commas in a whole one."""
    if cell is None:
        return nothing
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def required(folder: Path) -> None:
    """Raise DataMissing if there is no such folder."""
    if not folder.is_dir():
        raise DataMissing(f"{folder} is not there (name the folder with --data or OWNFEED_DATA)")


class DataMissing(Exception):
    """A bench or study needs research data that is not there; the message names it."""

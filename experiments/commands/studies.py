"""What the commands of the laboratory share: where the data lies, how tables come out, and how a study refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from experiments.bench.table import Table

says = Console(stderr=True, highlight=False, soft_wrap=True)

DATA = Path("../shared/data")
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Data = Annotated[Path, typer.Option(help="The research data.", envvar="OWNFEED_DATA")]
Trainings = Annotated[int, typer.Option(min=1, help="Trainings at the same time.")]
Kept = Annotated[Path | None, typer.Option(help="JSON file of results; trainings it holds are not repeated.")]


@contextmanager
def refusals() -> Iterator[None]:
    """End the command with one line where research data is missing or a study does not know what was chosen."""
    from experiments.bench.table import DataMissing

    try:
        yield
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None


def show(tables: Sequence[Table], as_json: bool) -> None:
    """Print a study's tables: drawn, or as one JSON list."""
    if as_json:
        typer.echo(json.dumps([table.as_json() for table in tables], indent=2))
        return
    for table in tables:
        table.show(Console(highlight=False))

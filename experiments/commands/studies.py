"""What the commands of the laboratory share: where the data lies, how a study is conducted, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from experiments.study import Study
    from experiments.table import Table

says = Console(stderr=True, highlight=False, soft_wrap=True)

DATA = Path("../shared/data")
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Data = Annotated[Path, typer.Option(help="The research data.", envvar="OWNFEED_DATA")]
Trainings = Annotated[int, typer.Option(min=1, help="Trainings at the same time.")]
KeptOption = Annotated[Path | None, typer.Option(help="JSON file of results; trainings it holds are not repeated.")]
Recorded = Annotated[
    bool, typer.Option("--record", help="Write the tables to experiments/results, from which documents are made.")
]
OF_THIS_MACHINE = {"data", "out", "processes", "engine", "cluster", "as_json", "record"}
"""Options that change no figure."""


@contextmanager
def refusals() -> Iterator[None]:
    """End the command with one line where research data is missing or a study does not know what was chosen."""
    from experiments.table import DataMissing

    try:
        yield
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None


def evaluate(
    context: typer.Context,
    make: Callable[[], Study[Any, Any]],
    *,
    as_json: bool,
    record: bool,
    out: Path | None = None,
    processes: int = 1,
) -> None:
    """Conduct the study that `make` gives, or refuse; print its tables, and record them under the command's name."""
    from experiments.study import conduct

    with refusals():
        tables = conduct(make(), console=says, out=out, processes=processes)
    if record:
        keep(str(context.info_name), tables, called(context))
    show(tables, as_json)


def keep(name: str, tables: Sequence[Table], command: str) -> None:
    """Record what a command measured."""
    from experiments.records import Record, write

    path = write(name, Record.of_now(command, tables))
    says.print(f"{path.name} is written: python -m experiments.documents puts it into the documents", markup=False)


def called(context: typer.Context) -> str:
    """The command with the options that were given, but for those of this machine."""
    words = ["ownfeed", *context.command_path.split()[1:]]
    for option in context.command.params:
        name, source = str(option.name), context.get_parameter_source(str(option.name))
        if name in OF_THIS_MACHINE or source is None or source.name != "COMMANDLINE":
            continue
        given = context.params[name]
        for value in given if isinstance(given, list | tuple) else [given]:
            text = f'"{value}"' if " " in str(value) else str(value)
            words += [option.opts[0]] if value is True else [option.opts[0], text]
    return " ".join(words)


def show(tables: Sequence[Table], as_json: bool) -> None:
    """Print a study's tables: drawn, or as one JSON list."""
    if as_json:
        typer.echo(json.dumps([table.as_json() for table in tables], indent=2))
        return
    for table in tables:
        table.show(Console(highlight=False))

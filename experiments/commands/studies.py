"""Options and steps that the commands of `experiments` share."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from experiments.records import Table
    from experiments.study import Study

    AnyStudy = Study[Any, Any]
else:
    AnyStudy = Any  # importing studies imports torch

says = Console(stderr=True, highlight=False, soft_wrap=True)

DATA = Path("../shared/data")
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Data = Annotated[Path, typer.Option(help="Folder of the research data.", envvar="OWNFEED_DATA")]
Trainings = Annotated[int, typer.Option(min=1, help="Trainings that run at the same time.")]
KeptOption = Annotated[Path | None, typer.Option(help="JSON file of results; trainings in it are not repeated.")]
Figures = Annotated[bool, typer.Option("--figures", help="The paper's figures instead of its tables.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="The figures of two small rounds, as a test.")]
Recorded = Annotated[bool, typer.Option("--record", help="Write the tables to experiments/results, for the documents.")]
SHARED: dict[str, tuple[Any, Any]] = {
    "processes": (Trainings, 1),
    "out": (KeptOption, None),
    "record": (Recorded, False),
    "as_json": (AsJson, False),
}
"""Options of several commands: annotation and default."""
OF_THIS_MACHINE = {"data", "engine", "cluster", *SHARED}
"""Options that do not change the results."""


Make = Callable[..., AnyStudy]


def study_command(app: typer.Typer, name: str, *shared: str) -> Callable[[Make], Make]:
    """Return a decorator that makes a command from a function that returns a study.

    The command has the function's own options, `shared` of SHARED, --record and --json.
    """

    def register(make: Make) -> Make:
        own = inspect.signature(make, eval_str=True).parameters
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        added = [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for each, (kind, default) in SHARED.items()
            if each in (*shared, "record", "as_json")
        ]
        every = [context, *(each.replace(kind=each.KEYWORD_ONLY) for each in own.values()), *added]

        def command(*, context: typer.Context, **given: Any) -> None:
            evaluate(context, lambda: make(**{each: given[each] for each in own}), "processes" in own)

        command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in every}
        command.__doc__ = make.__doc__
        app.command(name)(command)
        return make

    return register


@contextmanager
def refusals() -> Iterator[None]:
    """End the command with a one-line error if research data is missing or the study doesn't know an option."""
    from experiments.records import DataMissing

    try:
        yield
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None


def evaluate(context: typer.Context, make: Make, alone: bool) -> None:
    """Run the study that `make` returns, print its tables, and record them under the command's name.

    alone: the study runs one job at a time and ignores the command's --processes.
    """
    from experiments.study import conduct

    parameters = context.params
    out = Path(parameters["out"]) if parameters.get("out") else None
    with refusals():
        tables = conduct(make(), console=says, out=out, processes=1 if alone else parameters.get("processes", 1))
    if parameters["record"]:
        keep(f"{context.info_name}{'-figures' * bool(parameters.get('figures'))}", tables, called(context))
    show(tables, parameters["as_json"])


def only_figures(figures: bool, smoke: bool) -> bool:
    """Return whether only figures are requested. Raises ValueError for --smoke without them."""
    if smoke and not figures:
        raise ValueError("smoke: only with --figures")
    return figures


def keep(name: str, tables: Sequence[Table], command: str) -> None:
    """Write a command's record."""
    from experiments.records import Record, write

    path = write(name, Record.of_now(command, tables))
    says.print(f"{path.name} is written; update the documents with: python -m experiments.documents", markup=False)


def called(context: typer.Context) -> str:
    """Return the command line without options that don't change the results."""
    words = ["ownfeed", *context.command_path.split()[1:]]
    for option in context.command.params:
        name, source = str(option.name), context.get_parameter_source(str(option.name))
        if name in OF_THIS_MACHINE or source is None or source.name != "COMMANDLINE":
            continue
        argument = context.params[name]
        for value in argument if isinstance(argument, list | tuple) else [argument]:
            text = f'"{value}"' if " " in str(value) else str(value)
            words += [option.opts[0]] if value is True else [option.opts[0], text]
    return " ".join(words)


def show(tables: Sequence[Table], as_json: bool) -> None:
    """Print a study's tables, as text or as one JSON list."""
    if as_json:
        typer.echo(json.dumps([table.as_json() for table in tables], indent=2))
        return
    for table in tables:
        table.show(Console(highlight=False))

"""`python -m exporters`: exports every model and reports its graphs' sizes and differences from torch."""

import time
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import nn

from exporters.architectures import architectures
from exporters.exported import ExportedModel
from exporters.package import export_model
from exporters.parity import GRADIENT_TOLERANCE, SCORE_TOLERANCE, ParityError

SEED = 7


def main(
    models: Annotated[list[str] | None, typer.Argument(help="Export these models only.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Export every model, check it and print the table.")] = False,
    names: Annotated[bool, typer.Option("--list", help="Print models and graphs; export nothing.")] = False,
) -> None:
    """Export models to ONNX with gradients and compare each graph with torch.

    Exits with 1 if one differs.
    """
    known = architectures()
    if unknown := [each for each in models or [] if each not in known]:
        raise typer.BadParameter(f"no model {', '.join(unknown)}; there are {', '.join(known)}")
    console = Console()
    if names:
        _list(console, models or list(known))
        return
    if not (every or models):
        raise typer.BadParameter("give --all, --list or the names of models")
    torch.manual_seed(SEED)
    table = Table("model", "parameters", "graph", "bytes", "nodes", "export s", "largest difference", "bar")
    failures = []
    started = time.perf_counter()
    with _progress() as progress:
        task = progress.add_task("", total=len(models or known))
        for name in models or known:
            progress.update(task, description=name)
            model = known[name].build()
            try:
                exported = export_model(name, known[name].kind, model, known[name].graphs(model))
            except ParityError as failed:
                failures.append(f"{name}: {failed}")
            else:
                _tell(table, exported, _count(model))
            progress.advance(task)
    console.print(table)
    console.print(f"{time.perf_counter() - started:.1f} s")
    for failure in failures:
        console.print(failure, style="red", markup=False)
    if failures:
        raise typer.Exit(1)


def _list(console: Console, names: list[str]) -> None:
    known = architectures()
    for name in names:
        model = known[name].build()
        for spec in known[name].graphs(model):
            inputs = ", ".join(f"{each.name} {list(each.axes)}" for each in spec.inputs)
            line = f"{name:21} {_count(model):>9,}  {spec.purpose:14} {inputs} -> {spec.output}"
            gradients = " and gradients" if spec.with_gradients else ""
            console.print(line + gradients, markup=False, highlight=False, soft_wrap=True)


def _tell(table: Table, exported: ExportedModel, parameters: int) -> None:
    for each in exported.reports:
        table.add_row(
            exported.architecture,
            f"{parameters:,}",
            each.purpose,
            f"{each.size_bytes:,}",
            str(each.nodes),
            f"{each.export_sec:.1f}",
            f"{each.largest_difference:.1e}",
            f"{GRADIENT_TOLERANCE if each.purpose.endswith('gradient') else SCORE_TOLERANCE:.0e}",
        )


def _progress() -> Progress:
    """A progress bar on the terminal's error stream; nothing without a terminal."""
    columns = (TextColumn("{task.description:21}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _count(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


if __name__ == "__main__":
    typer.run(main)

"""`python -m exporters`: which models export to what, and how well."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from torch import nn

from exporters.package import ExportedModel, export_ranker, export_recall, ranker_graphs, recall_graphs
from exporters.parity import ParityError
from exporters.signature import GraphSpec
from models.builders import cosine_ranker, nrms_256, uni_fedrec_recall
from models.shapes import NEWS_DIM

Row = tuple[nn.Module, list[GraphSpec], Callable[[], ExportedModel]]


def catalogue() -> dict[str, Row]:
    """Every preset that can be released: the model, its graphs, its export."""
    recall, cosine, nrms = uni_fedrec_recall(), cosine_ranker(), nrms_256()
    return {
        "basis": (recall, recall_graphs(NEWS_DIM), lambda: export_recall(recall)),
        "cosine": (cosine, ranker_graphs(cosine), lambda: export_ranker(cosine)),
        "nrms": (nrms, ranker_graphs(nrms), lambda: export_ranker(nrms)),
    }


def main(
    models: Annotated[list[str] | None, typer.Argument(help="Export these models only.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Export every model, check it and print the table.")] = False,
    names: Annotated[bool, typer.Option("--list", help="Print models and graphs; export nothing.")] = False,
) -> None:
    """Export models to ONNX with gradients, and compare each graph with torch."""
    console = Console()
    known = catalogue()
    if unknown := [each for each in models or [] if each not in known]:
        raise typer.BadParameter(f"no model {', '.join(unknown)}; there are {', '.join(known)}")
    if names:
        for name, (model, specs, _) in known.items():
            for spec in specs:
                inputs = ", ".join(f"{each.name} {list(each.axes)}" for each in spec.inputs)
                line = f"{name:7} {_count(model):>9,}  {spec.purpose:10} {inputs} -> {spec.output}"
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    if not (every or models):
        raise typer.BadParameter("say --all, --list or the names of models")
    table = Table("model", "parameters", "graph", "bytes", "nodes", "export s", "largest difference")
    started = time.perf_counter()
    for name in models or known:
        model, _, export = known[name]
        try:
            exported = export()
        except ParityError as failed:
            console.print(f"{name}: {failed}", style="red", markup=False)
            raise typer.Exit(1) from failed
        for each in exported.reports:
            table.add_row(
                name,
                f"{_count(model):,}",
                each.purpose,
                f"{each.size_bytes:,}",
                str(each.nodes),
                f"{each.export_sec:.1f}",
                f"{each.largest_difference:.1e}",
            )
    console.print(table)
    console.print(f"{time.perf_counter() - started:.1f} s")


def _count(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


if __name__ == "__main__":
    typer.run(main)

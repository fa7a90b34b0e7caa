"""Runs benches by name and prints their tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console

from experiments.table import DataMissing, Table

BENCHES = {
    "embed": "experiments.bench.embed",
    "index": "experiments.bench.index",
    "endpoint": "experiments.bench.recall_endpoint",
    "recall": "experiments.bench.recall",
    "latency": "experiments.bench.latency",
    "feed": "experiments.bench.feed",
    "overload": "experiments.bench.overload",
    "round": "experiments.bench.round",
    "secagg": "experiments.bench.secagg",
    "efficient": "experiments.bench.efficient",
    "quality": "experiments.bench.quality",
    "replay": "experiments.bench.replay",
    "groups": "experiments.bench.groups",
    "graphs": "experiments.bench.graphs",
    "paillier": "experiments.bench.paillier",
}


def run_benches(names: Sequence[str], *, data: Path, console: Console) -> dict[str, list[Table]]:
    """Run each, show its tables on `console` and return them; one whose data is missing says so and is left out."""
    results: dict[str, list[Table]] = {}
    for name in names:
        console.print(f"bench {name} ...", style="bold")
        try:
            tables: list[Table] = import_module(BENCHES[name]).run(data)
        except DataMissing as missing:
            console.print(f"  left out: {missing}", style="yellow", markup=False)
            continue
        for table in tables:
            table.show(console)
        results[name] = tables
    return results

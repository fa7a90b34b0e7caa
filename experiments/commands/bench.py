"""`ownfeed bench`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.studies import DATA, AsJson, Recorded, keep, says


class BenchName(StrEnum):
    """What can be measured."""

    embed = "embed"
    search = "index"
    endpoint = "endpoint"
    recall = "recall"
    latency = "latency"
    feed = "feed"
    overload = "overload"
    round = "round"
    secagg = "secagg"
    efficient = "efficient"
    quality = "quality"
    replay = "replay"
    groups = "groups"
    graphs = "graphs"
    paillier = "paillier"
    all = "all"


def bench(
    what: Annotated[BenchName, typer.Argument(help="What to measure.")] = BenchName.all,
    data: Annotated[
        Path, typer.Option(help="The research data; what needs it says so where it is missing.", envvar="OWNFEED_DATA")
    ] = DATA,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Measure; every figure comes with its reference from the same run."""
    from experiments.bench.run import run_benches

    names = [each.value for each in BenchName if each is not BenchName.all] if what is BenchName.all else [what.value]
    results = run_benches(names, data=data, console=says)
    if record:
        for name, tables in results.items():
            keep(f"bench-{name}", tables, f"ownfeed bench {name}")
    if as_json:
        told = {name: [table.as_json() for table in tables] for name, tables in results.items()}
        typer.echo(json.dumps(told, indent=2))

"""`ownfeed bench`: runs benchmarks and records their tables."""

from __future__ import annotations

import json
import signal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.studies import DATA, AsJson, Recorded, keep, says
from experiments.records import Table


class BenchName(StrEnum):
    """The benches and their groups: `timings` measure time and need a quiet machine; `short` take minutes."""

    embed = "embed"
    search = "index"
    endpoint = "endpoint"
    large_pools = "large-pools"
    capacity = "capacity"
    recall = "recall"
    pools = "pools"
    latency = "latency"
    feed = "feed"
    overload = "overload"
    polls = "polls"
    changes = "changes"
    round = "round"
    systems = "systems"
    secagg = "secagg"
    quality = "quality"
    replay = "replay"
    groups = "groups"
    graphs = "graphs"
    paillier = "paillier"
    simulation = "simulation"
    short = "short"
    timings = "timings"
    all = "all"


def bench(
    what: Annotated[BenchName, typer.Argument(help="What to measure.")] = BenchName.all,
    data: Annotated[
        Path, typer.Option(help="Folder of the research data; some benches need it.", envvar="OWNFEED_DATA")
    ] = DATA,
    news: Annotated[
        list[int] | None, typer.Option(help="With large-pools: articles in a pool; may be repeated.")
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(help="With systems: only this system; may be repeated. The record keeps other rows."),
    ] = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Measure Ownfeed's speed, size and quality; each figure is shown with its reference or limit."""
    from experiments.bench.run import GROUPS, run_bench, run_group

    # SIGTERM works like Ctrl-C, so that the processes of a bench are stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name = what.value
    if news and what is not BenchName.large_pools:
        raise typer.BadParameter("--news is only for the bench large-pools", param_hint="--news")
    if system:
        _check_systems(what, system)
    if name in GROUPS:
        found = run_group(GROUPS[name], ["--data", str(data), *(["--record"] if record else [])], says)
        output, failed = found.tables, bool(found.failed)
    else:
        tables, failed = run_bench(name, data=data, console=says, sizes=news or (), systems=system or ()), False
        if tables is not None and record:
            chosen = "".join(f" --news {size}" for size in news or ())
            keep(f"bench-{name}", _beside_recorded(tables) if system else tables, f"ownfeed bench {name}{chosen}")
        output = {} if tables is None else {name: [table.as_json() for table in tables]}
    if as_json:
        typer.echo(json.dumps(output, indent=2))
    if failed:
        raise typer.Exit(1)


def _check_systems(what: BenchName, systems: list[str]) -> None:
    from experiments.bench.systems import by_hand

    if what is not BenchName.systems:
        raise typer.BadParameter("--system is only for the bench systems", param_hint="--system")
    known = by_hand()
    for name in systems:
        if name not in known:
            raise typer.BadParameter(f"unknown system {name!r}; choose from {', '.join(known)}", param_hint="--system")


def _beside_recorded(tables: list[Table]) -> list[Table]:
    from experiments.bench.systems import beside_recorded

    return [beside_recorded(table) for table in tables]

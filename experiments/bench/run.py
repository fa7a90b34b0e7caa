"""Runs benches: one in this process, several one after the other in a process each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from experiments.table import DataMissing, Table

STOP_SEC = 60.0
"""For a bench to stop its servers once it was told to end."""
QUIET_LOAD = 0.5
"""Load average of a minute above which others are using the machine."""


@dataclass(frozen=True)
class Bench:
    """limit_min: when it is ended, as one of several. timed: whether its figures are times of this machine.
    short: whether it ends within minutes."""

    module: str
    limit_min: float
    timed: bool = False
    short: bool = False


BENCHES = {
    "embed": Bench("experiments.bench.embed", 20, timed=True, short=True),
    "embed-cluster": Bench("experiments.bench.embed_cluster", 20, timed=True),
    "index": Bench("experiments.bench.index", 30, timed=True, short=True),
    "endpoint": Bench("experiments.bench.recall_endpoint", 30, timed=True, short=True),
    "large-pools": Bench("experiments.bench.large_pools", 120, timed=True),
    "capacity": Bench("experiments.bench.capacity", 1),
    "recall": Bench("experiments.bench.recall", 120),
    "pools": Bench("experiments.bench.pools", 120),
    "latency": Bench("experiments.bench.latency", 10, timed=True, short=True),
    "feed": Bench("experiments.bench.feed", 30),
    "overload": Bench("experiments.bench.overload", 10, timed=True, short=True),
    "workers": Bench("experiments.bench.workers", 15, timed=True, short=True),
    "round": Bench("experiments.bench.round", 15, timed=True, short=True),
    "systems": Bench("experiments.bench.systems", 90),
    "secagg": Bench("experiments.bench.secagg", 30, timed=True, short=True),
    "growth": Bench("experiments.bench.growth", 60, timed=True),
    "efficient": Bench("experiments.bench.efficient", 30, timed=True, short=True),
    "fednewsrec": Bench("experiments.bench.fednewsrec", 30, timed=True, short=True),
    "quality": Bench("experiments.bench.quality", 60, timed=True),
    "replay": Bench("experiments.bench.replay", 120),
    "groups": Bench("experiments.bench.groups", 120),
    "graphs": Bench("experiments.bench.graphs", 20, timed=True, short=True),
    "paillier": Bench("experiments.bench.paillier", 20, timed=True),
}
GROUPS = {
    "short": tuple(name for name, bench in BENCHES.items() if bench.short),
    "timings": tuple(name for name, bench in BENCHES.items() if bench.timed),
    "all": tuple(BENCHES),
}


def run_bench(
    name: str, *, data: Path, console: Console, sizes: Sequence[int] = (), systems: Sequence[str] = ()
) -> list[Table] | None:
    """Run it here, show its tables on `console` and return them; None, and a line, where its data is missing.

    sizes: of the pools of "large-pools", instead of its own. systems: of "systems", instead of all.
    """
    console.print(f"bench {name} ...", style="bold")
    try:
        given = {"sizes": tuple(sizes), "systems": tuple(systems)}
        chosen = {option: values for option, values in given.items() if values}
        tables: list[Table] = import_module(BENCHES[name].module).run(data, **chosen)
    except DataMissing as missing:
        console.print(f"  left out: {missing}", style="yellow", markup=False)
        return None
    for table in tables:
        table.show(console)
    return tables


@dataclass
class GroupOutcome:
    """tables: as JSON, by the bench's name. failed: why, by name."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run_group(
    names: Sequence[str], options: Sequence[str], console: Console, command: Sequence[str] = ("-m", "ownfeed", "bench")
) -> GroupOutcome:
    """Each in a process of its own, so that none is measured in the memory of another and none ends the others.

    options: of each, besides its name and --json. A bench that fails or is at its limit is told, and the next begins.
    """
    if (load := os.getloadavg()[0]) > QUIET_LOAD:
        console.print(f"Others are using this machine (load {load:.1f}): times will be too long.", style="yellow")
    found, started = GroupOutcome(), time.monotonic()
    for number, name in enumerate(names, 1):
        minutes = (time.monotonic() - started) / 60
        limit = BENCHES[name].limit_min
        console.print(
            f"[{number} of {len(names)}, {name}: after {minutes:.0f} min, at most {limit:g} min]", markup=False
        )
        try:
            told = _ended([sys.executable, *command, name, *options, "--json"], limit * 60)
        except TimeoutError:
            found.failed[name] = f"ended after {limit:g} min"
        except subprocess.CalledProcessError as failed:
            found.failed[name] = f"exit code {failed.returncode}"
        else:
            found.tables |= json.loads(told)
            continue
        console.print(f"  {name} failed: {found.failed[name]}", style="red", markup=False)
    missing = [name for name in names if name not in found.tables and name not in found.failed]
    console.print(
        f"{len(found.tables)} of {len(names)} measured in {(time.monotonic() - started) / 60:.0f} min"
        + (f"; left out: {', '.join(missing)}" if missing else "")
        + (f"; failed: {', '.join(found.failed)}" if found.failed else ""),
        markup=False,
    )
    return found


def _ended(command: Sequence[str], limit_sec: float) -> str:
    """What it wrote to standard output. Raises TimeoutError, and CalledProcessError for an exit code other than 0."""
    # In a session of its own, so that Ctrl-C reaches us alone, and it is told once.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            written, _ = process.communicate(timeout=limit_sec)
        except subprocess.TimeoutExpired:
            _stop(process)
            raise TimeoutError from None
        except BaseException:
            _stop(process)
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return written


def _stop(process: subprocess.Popen[str]) -> None:
    """Ask it to end; what doesn't is killed with all that it has started."""
    process.terminate()
    try:
        process.communicate(timeout=STOP_SEC)
    except subprocess.TimeoutExpired:
        for each in (*psutil.Process(process.pid).children(recursive=True), process):
            each.kill()

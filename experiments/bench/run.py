"""Runs benches: one in this process, or several in sequence, each in its own process."""

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

from experiments.records import DataMissing, Table

STOP_SEC = 60.0
"""Time for a bench to stop its servers after SIGTERM."""
QUIET_LOAD = 0.5
"""One-minute load average above which the machine counts as busy."""


@dataclass(frozen=True)
class Bench:
    """A bench's module.

    limit_min: time limit within a group. timed: whether it measures times. short: whether it takes only minutes.
    """

    module: str
    limit_min: float
    timed: bool = False
    short: bool = False


BENCHES = {
    "embed": Bench("experiments.bench.embed", 20, timed=True, short=True),
    "index": Bench("experiments.bench.index", 30, timed=True, short=True),
    "endpoint": Bench("experiments.bench.recall_endpoint", 30, timed=True, short=True),
    "large-pools": Bench("experiments.bench.large_pools", 120, timed=True),
    "capacity": Bench("experiments.bench.capacity", 1),
    "recall": Bench("experiments.recall.frontier", 120),
    "pools": Bench("experiments.bench.pools", 120),
    "latency": Bench("experiments.bench.latency", 10, timed=True, short=True),
    "feed": Bench("experiments.bench.feed", 30),
    "overload": Bench("experiments.bench.overload", 10, timed=True, short=True),
    "changes": Bench("experiments.bench.changes", 5),
    "polls": Bench("experiments.bench.polls", 10, timed=True, short=True),
    "round": Bench("experiments.bench.round", 15, timed=True, short=True),
    "systems": Bench("experiments.bench.systems", 90),
    "secagg": Bench("experiments.bench.secagg", 30, timed=True, short=True),
    "quality": Bench("experiments.bench.quality", 60, timed=True),
    "replay": Bench("experiments.bench.replay", 120),
    "groups": Bench("experiments.bench.groups", 120),
    "graphs": Bench("experiments.bench.graphs", 20, timed=True, short=True),
    "paillier": Bench("experiments.bench.paillier", 20, timed=True),
    "simulation": Bench("experiments.bench.simulation", 30, timed=True),
}
GROUPS = {
    "short": tuple(name for name, bench in BENCHES.items() if bench.short),
    "timings": tuple(name for name, bench in BENCHES.items() if bench.timed),
    "all": tuple(BENCHES),
}


def run_bench(
    name: str, *, data: Path, console: Console, sizes: Sequence[int] = (), systems: Sequence[str] = ()
) -> list[Table] | None:
    """Run a bench here, show its tables on `console` and return them; None if its data is missing.

    sizes: pools for "large-pools" instead of its own. systems: systems for "systems" instead of all.
    """
    console.print(f"bench {name} ...", style="bold")
    try:
        options = {"sizes": tuple(sizes), "systems": tuple(systems)}
        chosen = {option: values for option, values in options.items() if values}
        tables: list[Table] = import_module(BENCHES[name].module).run(data, **chosen)
    except DataMissing as missing:
        console.print(f"  skipped: {missing}", style="yellow", markup=False)
        return None
    for table in tables:
        table.show(console)
    return tables


@dataclass
class GroupOutcome:
    """tables: as JSON, by bench. failed: the reason, by bench."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run_group(
    names: Sequence[str], options: Sequence[str], console: Console, command: Sequence[str] = ("-m", "ownfeed", "bench")
) -> GroupOutcome:
    """Run each bench in its own process, so that none affects another's memory or ends the others.

    options: for each bench, besides its name and --json. If a bench fails or reaches its limit, the next one starts.
    """
    if (load := os.getloadavg()[0]) > QUIET_LOAD:
        console.print(f"This machine is busy (load {load:.1f}): times will be too long.", style="yellow")
    found, started = GroupOutcome(), time.monotonic()
    for number, name in enumerate(names, 1):
        minutes = (time.monotonic() - started) / 60
        limit = BENCHES[name].limit_min
        console.print(
            f"[{number} of {len(names)}: {name}, at most {limit:g} min; {minutes:.0f} min so far]", markup=False
        )
        try:
            output = _ended([sys.executable, *command, name, *options, "--json"], limit * 60)
        except TimeoutError:
            found.failed[name] = f"stopped after {limit:g} min"
        except subprocess.CalledProcessError as failed:
            found.failed[name] = f"exit code {failed.returncode}"
        else:
            found.tables |= json.loads(output)
            continue
        console.print(f"  {name} failed: {found.failed[name]}", style="red", markup=False)
    missing = [name for name in names if name not in found.tables and name not in found.failed]
    console.print(
        f"{len(found.tables)} of {len(names)} measured in {(time.monotonic() - started) / 60:.0f} min"
        + (f"; skipped: {', '.join(missing)}" if missing else "")
        + (f"; failed: {', '.join(found.failed)}" if found.failed else ""),
        markup=False,
    )
    return found


def _ended(command: Sequence[str], limit_sec: float) -> str:
    """Return the standard output of a command.

    Raises TimeoutError, and CalledProcessError for a non-zero exit code.
    """
    # In its own session, so that Ctrl-C reaches only this process, which then stops it once.
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
    """Terminate a process; kill it and its children if it does not end."""
    process.terminate()
    try:
        process.communicate(timeout=STOP_SEC)
    except subprocess.TimeoutExpired:
        for each in (*psutil.Process(process.pid).children(recursive=True), process):
            each.kill()

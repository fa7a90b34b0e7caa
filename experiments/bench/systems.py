"""Runs every system that an operator can start by hand, several rounds each, live over HTTP, in one server.

The readers allow everything and the gate is off, so that rounds don't affect each other. A round counts as applied when
it, or the last of the rounds it ordered, is applied; for other rounds the table gives the server's reason.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from backend.db.engine import open_engine
from backend.federation.systems import COMPOSED
from backend.federation.systems.uni_fedrec import BASIS_VOTE
from backend.operations.admin_client import Operator, OperatorRefused
from backend.releases.publish import publish_rankers
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings, load_settings
from device_app.fleet.fleet import Fleet, catch_up, train, warm_up
from device_app.settings import DeviceSettings
from experiments.bench.newspaper import free_port, prepared_newspaper, running_backend
from experiments.bench.quality import WILLING
from experiments.records import Cell, Table, machine, read
from protocol.rounds import RoundStatus

DEVICES, ROUNDS, ARTICLES = 24, 10, 1_500
BAR = 0.9
SEED = 7
SECONDS = 120.0
"""Time limit of each stage; a round that takes longer has failed."""
ENDED = ("applied", "failed")
TITLE = "Rounds of every system in a row"
COLUMNS = (
    "system",
    "applied",
    "median s",
    "within the bar",
    "the others",
    "measured on",
    "load then",
    "version",
    "machine",
)


@dataclass
class SystemRuns:
    """Rounds of one system: seconds of each applied round, and the count of each reason for the others.

    load: the machine's one-minute load average at the end of the last round.
    """

    seconds: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    load: float = 0.0


def run(data: Path, systems: Sequence[str] = ()) -> list[Table]:
    """Return the table, one row for each system or each named system. Needs no research data."""
    return [systems_table(measured(systems or by_hand(), devices=DEVICES, rounds=ROUNDS, articles=ARTICLES))]


def beside_recorded(table: Table, folder: Path | None = None) -> Table:
    """Return the table together with the recorded rows of other systems, in the usual order.

    Each row says when and where it was measured. Measuring all systems takes longer than a machine stays idle, so a few
    can be measured at a time.
    """
    rows = {row[0]: row for row in (*_recorded(folder), *table.rows)}
    return replace(table, rows=[rows[name] for name in by_hand() if name in rows])


def _recorded(folder: Path | None) -> list[tuple[Cell, ...]]:
    """Return the record's rows; rows of older records get date and machine from the record."""
    try:
        record = read("bench-systems", folder)
    except FileNotFoundError:
        return []
    measured_at = (record.measured_on.isoformat(), record.load, record.version, record.machine)
    return [(*row, *measured_at)[: len(COLUMNS)] for row in record.table(TITLE).rows]


def by_hand() -> list[str]:
    """Return the systems that an operator can start: those that no other round orders."""
    ordered = (
        {BASIS_VOTE.name}
        | {spec.begins_with for spec in COMPOSED.values()}
        | {spec.gate.system for spec in COMPOSED.values() if spec.gate}
    )
    return [name for name in COMPOSED if name not in ordered]


def measured(systems: Sequence[str], *, devices: int, rounds: int, articles: int) -> dict[str, SystemRuns]:
    """Run `rounds` rounds of each system, in sequence, with a fleet of `devices`."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        with running_backend(prepared_folder(home / "backend", articles)) as backend:
            fleet = Fleet(DeviceSettings(data_dir=home, backend_url=backend.url, privacy=WILLING), devices, seed=SEED)
            operator = Operator(backend.url, backend.settings.admin_token_file)
            try:
                fleet.run(warm_up)
                found: dict[str, SystemRuns] = {}
                for system in systems:
                    found[system] = _rounds(operator, fleet, system, rounds, devices)
                    line = " | ".join("" if cell is None else str(cell) for cell in _row(system, found[system]))
                    Console(stderr=True).print(f"  [{len(found)} of {len(systems)}] {line}", markup=False)
                return found
            finally:
                fleet.close()


def prepared_folder(folder: Path, articles: int) -> BackendSettings:
    """Copy the newspaper's folder with a release that has a graph for every system's model."""
    from models.rankers import RANKERS

    shutil.copytree(prepared_newspaper(articles).data_dir, folder)
    used = {spec.model for spec in COMPOSED.values()}
    wanted = {name for name, spec in RANKERS.items() if name in used and not spec.always}
    rankers = tuple(sorted(name.removeprefix("ranker.") for name in wanted))
    settings = load_settings(data_dir=folder, port=free_port(), rankers=rankers)
    publish_rankers(ReleaseStore.open(open_engine(settings.database_url), settings), settings.rankers)
    return settings


def _rounds(operator: Operator, fleet: Fleet, system: str, rounds: int, cohort: int) -> SystemRuns:
    ran = SystemRuns()
    for _ in range(rounds):
        started = time.monotonic()
        try:
            status = _ended(operator, fleet, operator.open_round(system, cohort=cohort, seconds=SECONDS))
        except OperatorRefused as refused:
            ran.reasons[f"refused: {refused}"] += 1
            continue
        if status.state == "applied":
            ran.seconds.append(time.monotonic() - started)
        else:
            ran.reasons[f"{status.system}: {status.reason}"] += 1
    ran.load = round(os.getloadavg()[0], 1)
    return ran


def _ended(operator: Operator, fleet: Fleet, status: RoundStatus) -> RoundStatus:
    """Return the ended round, or the last of the rounds that follow from it."""
    while True:
        while status.state not in ENDED:
            _attempts(fleet)
            status = operator.status(status.round)
        if status.orders is None:
            return status
        while status.followed_by is None:
            _attempts(fleet)
            status = operator.status(status.round)
        status = operator.status(status.followed_by)


def _attempts(fleet: Fleet) -> None:
    """Run one attempt of every device, after a poll for a release, as a demo's devices do repeatedly.

    A release with another news encoder can't be used before the server's catalogue has its vectors.
    """
    fleet.run(catch_up)
    fleet.run(train)


def systems_table(found: dict[str, SystemRuns]) -> Table:
    rows = [_row(system, ran) for system, ran in found.items()]
    note = f"{DEVICES} devices, {ARTICLES} articles, gate off; bar: {BAR:.0%} applied."
    return Table(TITLE, COLUMNS, rows, (note,), seeds=(SEED,))


def _row(system: str, ran: SystemRuns) -> tuple[Cell, ...]:
    played = len(ran.seconds) + ran.reasons.total()
    median = round(statistics.median(ran.seconds), 1) if ran.seconds else None
    reasons = "; ".join(f"{count} times: {reason}" for reason, count in ran.reasons.most_common())
    enough = len(ran.seconds) >= BAR * played
    return (
        system,
        f"{len(ran.seconds)} of {played}",
        median,
        "yes" if enough else "no",
        reasons or "-",
        *_here(ran.load),
    )


def _here(load: float) -> tuple[Cell, ...]:
    return (datetime.now(UTC).date().isoformat(), load, version("ownfeed"), machine())

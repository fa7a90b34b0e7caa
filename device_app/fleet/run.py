"""Run `ownfeed fleet`: simulated readers that read and join rounds until stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from device_app.composition import utc_now
from device_app.errors import DeviceError
from device_app.fleet.faults import FaultRates
from device_app.fleet.fleet import Fleet, Member, catch_up, is_busy, passes, patiently, pause_sec, read, search, warm_up
from device_app.fleet.interest_match import InterestMatch
from device_app.fleet.participation import FleetParticipation
from device_app.fleet.replay import RealReader, ReplayCatalogue, real_readers
from device_app.settings import DeviceSettings
from device_app.uplink.backend_client import Uplink
from protocol.fleet_figures import FleetFigures, RoundOfFleet, read_fleet_figures, write_fleet_figures
from protocol.rounds import RoundStatus

TAKES_DEVICES = ("open", "updates", "keys")
"""A round that others have already joined still accepts devices while it has places."""
LOOK_EVERY_SEC = 30.0
"""How often each device polls for rounds while there is none, like a real one.

The server estimates from these polls how many devices wait.
"""
VISIT_EVERY_SEC = 90.0
"""Each simulated reader visits at this interval, one after another rather than all at once."""


def run_fleet(
    settings: DeviceSettings,
    *,
    devices: int,
    replay: Path | None,
    seed: int,
    rounds: int | None,
    console: Console,
    faults: FaultRates | None = None,
    figures: Path | None = None,
) -> None:
    """Open the fleet, let it read, then take part in rounds.

    Ends when interrupted or when `rounds` are over, and then prints a table of the rounds. figures: file with figures
    of the simulated readers for the console; None writes none. Raises BackendUnreachable if nothing answers at the
    start, and ReplayRefused.
    """
    table = RoundTable(faults)
    readers = real_readers(replay, devices) if replay else []
    figures_writer = FleetFigureWriter(figures, len(readers) or devices)
    fleet = Fleet(settings, len(readers) or devices, seed=seed, prefix="replay" if replay else "fleet", faults=faults)
    try:
        if replay:
            _shelve(fleet, replay, readers, console)
        else:
            patiently(fleet.members[0].device.sync)
            _with_bar(fleet, "Readers reading", _settle, console, figures_writer.of_reader)
        clicks = sum(member.device.parts.stores.clicks.count() for member in fleet.members)
        console.print(
            f"{len(fleet.members)} readers with {clicks:,} clicks, releases {fleet.releases()}.", markup=False
        )
        figures_writer.of_reader(len(fleet.members))
        _live(fleet, settings, rounds, console, table, figures_writer, visits=not replay)
    except KeyboardInterrupt:
        console.print("Stopping the fleet ...")
    finally:
        fleet.close()
        table.print(console)


def _settle(member: Member) -> None:
    """Let a reader read and search until both views of its device can learn from it."""
    warm_up(member)
    search(member)


def _shelve(fleet: Fleet, folder: Path, readers: list[RealReader], console: Console) -> None:
    first = fleet.members[0].device
    patiently(first.sync)
    release = first.release()
    assert release is not None  # sync raises if there is none
    manifest = release.manifest
    catalogue = patiently(
        lambda: ReplayCatalogue(
            folder, first.parts.uplink.client, manifest.release, manifest.encoder, manifest.dimensions
        )
    )
    past = dict(zip((id(member) for member in fleet.members), readers, strict=True))
    _with_bar(
        fleet,
        "Replaying histories",
        lambda member: (
            member.device.sync(),
            catalogue.write_past(member.device.parts.stores, past[id(member)], utc_now()),
        ),
        console,
    )


def _with_bar(
    fleet: Fleet,
    title: str,
    step: Callable[[Member], object],
    console: Console,
    on_progress: Callable[[int], object] = lambda done: None,
) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(title, total=len(fleet.members))
        for done in fleet.each(step):
            bars.update(task, completed=done)
            on_progress(done)
    _print_failures(fleet, console)


class FleetFigureWriter:
    """Writes the file of fleet figures for the console; does nothing without a path."""

    def __init__(self, path: Path | None, readers: int) -> None:
        before = read_fleet_figures(path)  # keep rounds of an earlier run of the same demo
        self._path, self._tastes = path, InterestMatch(utc_now)
        self._figures = FleetFigures(readers=readers, rounds=() if before is None else before.rounds)
        self._write(began=utc_now())

    def of_reader(self, ready: int) -> None:
        """Record how many readers have read enough to take part in rounds."""
        self._write(ready=ready)

    def of_release(self, fleet: Fleet) -> None:
        """Measure how well the readers' current release matches their interests."""
        if self._path is not None and self._tastes.ask(fleet.members):
            self._write(curves=self._tastes.curves(), since=self._tastes.since)

    def of_round(self, round_id: str, became: Mapping[str, int]) -> None:
        """Record a finished round."""
        mine = RoundOfFleet(round=round_id, devices=sum(became.values()), became=became)
        others = tuple(each for each in self._figures.rounds if each.round != round_id)
        self._write(rounds=(*others, mine))

    def _write(self, **changes: object) -> None:
        if self._path is not None:
            self._figures = self._figures.model_copy(update=changes)
            write_fleet_figures(self._path, self._figures)


def _live(
    fleet: Fleet,
    settings: DeviceSettings,
    rounds: int | None,
    console: Console,
    table: RoundTable,
    figures_writer: FleetFigureWriter,
    *,
    visits: bool,
) -> None:
    """Poll for rounds, and for releases made outside rounds.

    In between, readers visit in turn. No answer of the server ends it: failures are printed, and requests retried when
    the server says.
    """
    over = 0
    known: set[str] = set()
    next_visitor, next_look = 0, 0.0
    looks = max(1, round(len(fleet.members) * settings.performance.training_poll_sec / LOOK_EVERY_SEC))
    while rounds is None or over < rounds:
        started, wait_sec = time.monotonic(), settings.performance.training_poll_sec
        try:
            if started >= next_look:
                next_look = started + settings.performance.sync_poll_sec
                if catch_up(fleet.members[0]):  # a model was trained elsewhere, or a release withdrawn
                    fleet.run(catch_up)
                figures_writer.of_release(fleet)
            if fresh := _fresh(fleet, known, looks):
                over += _take_part(fleet, fresh, known, console, table, figures_writer)
                continue
        except DeviceError as trouble:
            console.print(str(trouble), markup=False)
            if is_busy(trouble):
                wait_sec = max(wait_sec, pause_sec(trouble))
        if visits:
            due = max(1, round(len(fleet.members) * settings.performance.training_poll_sec / VISIT_EVERY_SEC))
            for _ in range(due):
                _visit(fleet, next_visitor, console)
                next_visitor = (next_visitor + 1) % len(fleet.members)
        time.sleep(max(0.0, wait_sec - (time.monotonic() - started)))


def _uplink(fleet: Fleet) -> Uplink:
    """Return the uplink of the first device, which polls for all; a device that crashed has a new one."""
    return fleet.members[0].device.parts.uplink


def _visit(fleet: Fleet, number: int, console: Console) -> None:
    try:
        read(fleet.members[number])
    except DeviceError as trouble:
        console.print(f"{fleet.members[number].device.settings.profile}: {trouble}", markup=False)


def _fresh(fleet: Fleet, known: set[str], looks: int = 1) -> list[RoundStatus]:
    """Return current rounds that accept devices and that the fleet hasn't joined, and mark them as known.

    looks: how many devices poll, always the same ones, since a server can't tell them apart.
    """
    found = _uplink(fleet).open_rounds()
    for member in fleet.members[1:looks]:
        member.device.parts.uplink.open_rounds()
    fresh = [each for each in found if each.state in TAKES_DEVICES and each.round not in known]
    known.update(each.round for each in fresh)
    return fresh


def _take_part(
    fleet: Fleet,
    fresh: list[RoundStatus],
    known: set[str],
    console: Console,
    table: RoundTable,
    figures_writer: FleetFigureWriter,
) -> int:
    """Let every member try to join, wait for the rounds to end, and adopt their releases.

    Rounds that open meanwhile are joined too. Returns how many have ended.
    """
    started = {each.round: time.monotonic() for each in fresh}
    statuses = {each.round: each for each in fresh}
    part = FleetParticipation(fleet)
    fleet.draw_faults()
    part.begin(started)
    over = 0
    while statuses:
        time.sleep(0.1)
        for each in patiently(lambda: _fresh(fleet, known), passes):
            statuses[each.round], started[each.round] = each, time.monotonic()
            part.begin([each.round])
        for round_id in list(statuses):
            status = patiently(partial(_uplink(fleet).round_status, round_id), passes)
            statuses[round_id] = status
            if status.state not in ("applied", "failed"):
                continue
            del statuses[round_id]
            over += 1
            took = time.monotonic() - started[round_id]
            figures_writer.of_round(round_id, part.became(round_id))
            outcomes, struck = part.ended(round_id), part.struck()
            if status.published is not None:
                fleet.run(catch_up)
                figures_writer.of_release(fleet)
            console.print(
                f"{status.round} {status.state}: {outcomes}, {status.uploaded} updates, "
                f"{status.received_bytes / 1e6:.1f} MB, all over in {took:.1f} s; releases {fleet.releases()}."
                + (f" {status.reason}" if status.reason else ""),
                markup=False,
            )
            table.add(status, outcomes, struck, took)
            _print_failures(fleet, console)
        part.go_on()
    return over


def _print_failures(fleet: Fleet, console: Console) -> None:
    if fleet.failures:
        console.print(f"{len(fleet.failures)} devices had trouble; the last: {fleet.failures[-1]}", markup=False)
        fleet.failures.clear()


FAULTS = ("dropout", "straggler", "crash", "malicious")


@dataclass
class RoundTable:
    """One row per round, with columns of faults if the fleet has any."""

    faults: FaultRates | None = None
    rows: list[tuple[RoundStatus, Mapping[str, int], Mapping[str, int], float]] = field(default_factory=list)

    def add(self, status: RoundStatus, outcomes: Mapping[str, int], struck: Mapping[str, int], seconds: float) -> None:
        """Add a finished round: how many devices ended in each state, and how many each fault hit."""
        self.rows.append((status, dict(outcomes), dict(struck), seconds))

    def print(self, console: Console) -> None:
        """Print the table; nothing if no round has ended."""
        if not self.rows:
            return
        table = Table(title="Rounds of this fleet")
        for name in ("round", "system", "end", "joined", "in the sum"):
            table.add_column(name, justify="left" if name in ("round", "system", "end") else "right")
        for name in FAULTS if self.faults else ():
            table.add_column(name, justify="right")
        for name in ("MB", "seconds", "why"):
            table.add_column(name, justify="left" if name == "why" else "right")
        for status, _, struck, seconds in self.rows:
            counted = status.uploaded if status.survivors is None else status.survivors
            table.add_row(
                status.round,
                status.system,
                status.state,
                str(status.joined),
                str(counted),
                *(str(struck.get(name, 0)) for name in (FAULTS if self.faults else ())),
                f"{status.received_bytes / 1e6:.1f}",
                f"{seconds:.1f}",
                status.reason or "",
            )
        console.print(table)
        applied = [row for row in self.rows if row[0].state == "applied"]
        console.print(
            f"{len(applied)} of {len(self.rows)} rounds applied, {median(row[3] for row in self.rows):.1f} s each "
            "(median).",
            markup=False,
        )

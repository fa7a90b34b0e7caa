"""`ownfeed fleet`: readers that read, join rounds and swap releases until they are stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from device_app.composition import utc_now
from device_app.errors import DeviceError
from device_app.fleet.faults import FaultRates
from device_app.fleet.fleet import Fleet, Member, catch_up, read, train, warm_up
from device_app.fleet.patience import is_busy, passes, patiently, pause_sec
from device_app.fleet.replay import RealReader, ReplayCatalogue, real_readers
from device_app.fleet.round_table import RoundTable
from device_app.settings import DeviceSettings
from device_app.uplink.faulty_transport import Crashed
from device_app.uplink.server import Uplink
from device_app.wire.rounds import RoundStatus, SumStage

SUM_STAGES = get_args(SumStage)
TAKES_DEVICES = ("open", "updates", "keys")
"""A round that others have joined already still takes devices while it has places."""
VISIT_EVERY_SEC = 90.0
"""Each simulated reader comes back after so many seconds, one after another rather than all at once."""


def run_fleet(
    settings: DeviceSettings,
    *,
    devices: int,
    replay: Path | None,
    seed: int,
    rounds: int | None,
    console: Console,
    faults: FaultRates | None = None,
) -> None:
    """Open the fleet, let it read, then take part in rounds until interrupted, or until `rounds` of them are over.

    At the end it prints a table of the rounds. Raises BackendUnreachable if nothing answers at the start, and
    ReplayRefused.
    """
    table = RoundTable(faults)
    readers = real_readers(replay, devices) if replay else []
    fleet = Fleet(settings, len(readers) or devices, seed=seed, prefix="replay" if replay else "fleet", faults=faults)
    try:
        if replay:
            _shelve(fleet, replay, readers, console)
        else:
            patiently(fleet.members[0].device.sync)
            _with_bar(fleet, "Readers reading", warm_up, console)
        clicks = sum(member.device.parts.stores.clicks.count() for member in fleet.members)
        console.print(
            f"{len(fleet.members)} readers with {clicks:,} clicks, releases {fleet.releases()}.", markup=False
        )
        _live(fleet, settings, rounds, console, table, visits=not replay)
    except KeyboardInterrupt:
        console.print("Stopping the fleet ...")
    finally:
        fleet.close()
        table.print(console)


def _shelve(fleet: Fleet, folder: Path, readers: list[RealReader], console: Console) -> None:
    first = fleet.members[0].device
    patiently(first.sync)
    release = first.release()
    assert release is not None  # sync raises where there is none
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


def _with_bar(fleet: Fleet, title: str, step: Callable[[Member], object], console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(title, total=len(fleet.members))
        for done in fleet.each(step):
            bars.update(task, completed=done)
    _tell_failures(fleet, console)


def _live(
    fleet: Fleet, settings: DeviceSettings, rounds: int | None, console: Console, table: RoundTable, *, visits: bool
) -> None:
    """Look for rounds; between them, let one reader after another pay a visit.

    No answer of the backend ends it: what it can't answer now is told, and asked again when it says.
    """
    over = 0
    known = ""
    next_visitor = 0
    while rounds is None or over < rounds:
        started, wait_sec = time.monotonic(), settings.performance.training_poll_sec
        try:
            status = _uplink(fleet).current_round()
            if status is not None and status.state in TAKES_DEVICES and status.round != known:
                known = status.round
                _take_part(fleet, status, console, table)
                over += 1
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
    """Of the first device, which looks for rounds for all of them; a crash in a round gives it another one."""
    return fleet.members[0].device.parts.uplink


def _visit(fleet: Fleet, number: int, console: Console) -> None:
    try:
        read(fleet.members[number])
    except DeviceError as trouble:
        console.print(f"{fleet.members[number].device.settings.profile}: {trouble}", markup=False)


def _take_part(fleet: Fleet, status: RoundStatus, console: Console, table: RoundTable) -> None:
    """Everybody tries to join; then wait for the round's end and swap to what it published."""
    known, started = status.round, time.monotonic()
    last: dict[int, str] = {}
    not_before: dict[int, float] = {}
    fleet.draw_faults()
    struck: Counter[str] = Counter()

    def take_part(member: Member) -> None:
        if last.get(id(member), "waiting") != "waiting" or time.monotonic() < not_before.get(id(member), 0.0):
            return
        try:
            outcome = train(member)
            put_off = outcome.state == "idle" and outcome.again_sec is not None
            if outcome.again_sec is not None and put_off:
                not_before[id(member)] = time.monotonic() + outcome.again_sec
            last[id(member)] = "waiting" if put_off else outcome.state
        except Crashed:
            struck["crash"] += 1
            last[id(member)] = "waiting"
            fleet.start_again(member)

    fleet.run(take_part)
    trained = time.monotonic() - started
    while status.state not in ("applied", "failed"):
        time.sleep(0.1)
        status = patiently(lambda: _uplink(fleet).round_status(known), passes)
        if status.state in SUM_STAGES or "waiting" in last.values():
            fleet.run(take_part)
    outcomes = dict(Counter(last.values()))
    struck.update(
        member.injected.fault
        for member in fleet.members
        if member.injected is not None and member.network is not None and member.network.struck
    )
    fleet.run(catch_up)
    console.print(
        f"{status.round} {status.state}: {outcomes}, {status.uploaded} updates, {status.received_bytes / 1e6:.1f} MB, "
        f"trained in {trained:.1f} s, all over in {time.monotonic() - started:.1f} s; releases {fleet.releases()}."
        + (f" {status.reason}" if status.reason else ""),
        markup=False,
    )
    table.add(status, outcomes, struck, time.monotonic() - started)
    _tell_failures(fleet, console)


def _tell_failures(fleet: Fleet, console: Console) -> None:
    if fleet.failures:
        console.print(f"{len(fleet.failures)} devices had trouble; the last: {fleet.failures[-1]}", markup=False)
        fleet.failures.clear()

"""`ownfeed fleet`: readers that read, join rounds and swap releases until they are stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

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
from device_app.wire.rounds import OpenRounds, RoundStatus

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
    known: set[str] = set()
    next_visitor = 0
    while rounds is None or over < rounds:
        started, wait_sec = time.monotonic(), settings.performance.training_poll_sec
        try:
            if fresh := _fresh(fleet, known):
                over += _take_part(fleet, fresh, known, console, table)
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


def _fresh(fleet: Fleet, known: set[str]) -> list[RoundStatus]:
    """Rounds under way that take devices and that the fleet has not been in; they are known from now on."""
    found = _uplink(fleet).open_rounds()
    rounds = found.rounds if isinstance(found, OpenRounds) else () if found is None else (found,)
    fresh = [each for each in rounds if each.state in TAKES_DEVICES and each.round not in known]
    known.update(each.round for each in fresh)
    return fresh


def _take_part(fleet: Fleet, fresh: list[RoundStatus], known: set[str], console: Console, table: RoundTable) -> int:
    """Everybody tries to join; then wait for the rounds' ends, and swap to what they published.

    Rounds that open meanwhile are joined as well. Returns how many have ended.
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
            outcomes, struck = part.ended(round_id), part.struck()
            if status.published is not None:
                fleet.run(catch_up)
            console.print(
                f"{status.round} {status.state}: {outcomes}, {status.uploaded} updates, "
                f"{status.received_bytes / 1e6:.1f} MB, all over in {took:.1f} s; releases {fleet.releases()}."
                + (f" {status.reason}" if status.reason else ""),
                markup=False,
            )
            table.add(status, outcomes, struck, took)
            _tell_failures(fleet, console)
        part.go_on()
    return over


class FleetParticipation:
    """What every member of a fleet does in the rounds under way, one after another and beside each other."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._open: set[str] = set()
        self._waits: set[int] = set()
        self._done: dict[int, set[str]] = {}
        self._not_before: dict[int, float] = {}
        self._crashes = 0

    def begin(self, rounds: Iterable[str]) -> None:
        """Rounds that have opened: everybody tries to join."""
        self._open.update(rounds)
        self.go_on()

    def go_on(self) -> None:
        """A step of each member that waits in a sum, or has not tried a round that is open."""
        self._fleet.run(self._step)

    def ended(self, round_id: str) -> dict[str, int]:
        """How many members ended how in a round that is over. A release may be another one now: all are tried again."""
        self._open.discard(round_id)
        self._done.clear()
        ways = (member.device.parts.stores.participations.get(round_id) for member in self._fleet.members)
        return dict(Counter("idle" if each is None else each.state for each in ways))

    def struck(self) -> Counter[str]:
        """How many members each fault has struck so far."""
        struck = Counter(
            member.injected.fault
            for member in self._fleet.members
            if member.injected is not None and member.network is not None and member.network.struck
        )
        return struck + Counter({"crash": self._crashes})

    def _step(self, member: Member) -> None:
        key = id(member)
        done = self._done.setdefault(key, set())
        if time.monotonic() < self._not_before.get(key, 0.0) or not (key in self._waits or self._open - done):
            return
        try:
            outcome = train(member)
        except Crashed:
            self._crashes += 1
            self._waits.add(key)
            self._fleet.start_again(member)
            return
        if outcome.state == "waiting" or (outcome.state == "idle" and outcome.again_sec is not None):
            self._waits.add(key)
            if outcome.state == "idle" and outcome.again_sec is not None:
                self._not_before[key] = time.monotonic() + outcome.again_sec
            return
        self._waits.discard(key)
        done.update(self._open if outcome.offer is None else {outcome.offer.manifest.round})


def _tell_failures(fleet: Fleet, console: Console) -> None:
    if fleet.failures:
        console.print(f"{len(fleet.failures)} devices had trouble; the last: {fleet.failures[-1]}", markup=False)
        fleet.failures.clear()

"""Rounds over a PostgreSQL that is restarted, an S3 server that refuses and is slow, and a disk that fills up for a
while."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from tests.doubles.postgres_server import restarted_postgres
from tests.doubles.s3_server import s3_server
from tests.qa.faults.kills import KillTally
from tests.qa.faults.processes import started
from tests.qa.faults.served_rounds import check, played
from tests.qa.faults.servers import FailingServers, prepare

UP_SEC, DOWN_SEC = (0.3, 4.0), (0.0, 1.0)
"""How long all is well before it isn't, and how long it isn't besides what a start takes."""
DISK, LEFT_BYTES = "64m", (0, 4_096, 16_384, 65_536)
"""A disk's size, and what room a full one has left: so that some writes find it and others don't."""


def restarted_database(
    folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> KillTally:
    """Run rounds until the database has been restarted this many times."""
    tally = KillTally()
    with restarted_postgres() as database:
        extra = {"OWNFEED_BACKEND_DATABASE_URL": database.url}
        with _serving(folder, extra) as servers:
            while tally.kills.total() < points and not tally.wrong:
                dice = random.Random(f"{seed} {tally.kills.total()}")

                def restart(dice: random.Random = dice) -> Iterator[str]:
                    how = dice.choice(("fast", "immediate"))
                    database.stop(how)
                    yield f"stopped: {how}"
                    database.start()

                _tried(servers, tally, say, _disturbed(restart, dice, tally))
    say(f"told meanwhile: {dict(servers.troubles)}")
    return tally


def failing_storage(
    folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> KillTally:
    """Run rounds this many times over S3, which refuses every third request and answers the others late."""
    tally = KillTally()
    for number in range(points):
        with s3_server(refuses_every=3, late_sec=0.05 * (1 + (seed + number) % 4)) as s3:
            extra = {**s3.environment, "OWNFEED_BACKEND_STORAGE": f"{s3.url}/backend"}
            with _serving(folder / str(number), extra) as servers:
                _tried(servers, tally, say, nullcontext())
                tally.kills["rounds over a storage that refuses and is slow"] += 1
                say(f"told meanwhile: {dict(servers.troubles)}")
    return tally


def full_disk(folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None) -> KillTally:
    """Run rounds until the server's disk has been full this many times. Needs the right to mount."""
    tally, disk = KillTally(), folder / "disk"
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)], check=True)
    try:
        with _serving(disk, {}, folder) as servers:
            while tally.kills.total() < points and not tally.wrong:
                dice = random.Random(f"{seed} {tally.kills.total()}")

                def fill(dice: random.Random = dice) -> Iterator[str]:
                    left = dice.choice(LEFT_BYTES)
                    ballast = disk / "ballast"
                    _filled(ballast, left)
                    yield f"full but for {left} bytes"
                    ballast.unlink()

                _tried(servers, tally, say, _disturbed(fill, dice, tally))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    say(f"told meanwhile: {dict(servers.troubles)}")
    return tally


def _filled(ballast: Path, left: int) -> None:
    """Fill a disk up to this much free space."""
    block = bytes(1 << 20)
    with ballast.open("wb", buffering=0) as file:
        size = 0
        try:
            while True:
                size += file.write(block)
        except OSError:
            file.truncate(max(0, size - left))


def _tried(
    servers: FailingServers, tally: KillTally, say: Callable[[str], object], disturbed: AbstractContextManager[None]
) -> None:
    """Run rounds under the disturbance; afterwards check what must hold."""
    try:
        with disturbed:
            receipts = played(servers)
        check(servers, receipts)
    except AssertionError as wrong:
        tally.wrong.append(str(wrong))
        say(f"wrong: {wrong}")


@contextmanager
def _serving(folder: Path, extra: Mapping[str, str], beside: Path | None = None) -> Iterator[FailingServers]:
    """Run servers; beside: where the processes' own notes go, if not there."""
    place, beside = folder / "data", beside or folder
    started(prepare, place, extra, watched=place, notes=beside / "prepared-notes").ended()
    servers = FailingServers([place], beside / "notes", extra)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@contextmanager
def _disturbed(disturb: Callable[[], Iterator[str]], dice: random.Random, tally: KillTally) -> Iterator[None]:
    """Disturb again and again until the block ends. disturb: yields what it did, and repairs it when resumed."""
    done = threading.Event()

    def go_on() -> None:
        while not done.wait(dice.uniform(*UP_SEC)):
            for what in disturb():
                done.wait(dice.uniform(*DOWN_SEC))
                tally.kills[what] += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()

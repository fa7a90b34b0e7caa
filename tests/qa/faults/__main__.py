"""Ownfeed under faults: `python -m tests.qa.faults NAME --points 100 --seed 1`.

reader: a device killed at seeded write points of a reader's day. operator: the same with an operator's commands: first
start, articles, releases, another key, backup and restore. server: a server killed at seeded write points and awaits of
plain and secure rounds, and restarted; servers: one of two, while the other continues alone. database: a PostgreSQL
stopped and started under live rounds. storage: an S3 server that answers 503, and slowly. disk-reader, disk-operator,
disk-server: each of these on a disk that is full at seeded writes, for one or some. disk: a server's disk that is full
for moments; it needs the right to mount. clocks: clocks of a server and its devices, set an hour forward and back under
rounds. files: a backend's files, cut off, empty, another file's, or with a flipped bit.

Each fault happens as often as `--points` says. Prints what was killed or done where and what was wrong; exits with 1 if
anything was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.qa.faults.clocks import set_clocks
from tests.qa.faults.failing_parts import failing_storage, full_disk, restarted_database
from tests.qa.faults.files import damaged_files
from tests.qa.faults.full_disks import full_at_points, full_servers
from tests.qa.faults.killed_servers import killed_servers
from tests.qa.faults.kills import KillTally, killed_at_points
from tests.qa.faults.operator import OperatorWork
from tests.qa.faults.reader import ReaderWork

DRIVERS: dict[str, Callable[..., KillTally]] = {
    "reader": partial(killed_at_points, ReaderWork()),
    "operator": partial(killed_at_points, OperatorWork()),
    "server": killed_servers,
    "servers": partial(killed_servers, servers=2),
    "database": restarted_database,
    "storage": failing_storage,
    "disk": full_disk,
    "disk-reader": partial(full_at_points, ReaderWork()),
    "disk-operator": partial(full_at_points, OperatorWork()),
    "disk-server": full_servers,
    "clocks": set_clocks,
    "files": damaged_files,
}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.qa.faults", description=__doc__)
    parser.add_argument("name", choices=DRIVERS)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ownfeed-faults-") as folder:
        say = partial(print, flush=True)
        tally = DRIVERS[given.name](Path(folder) / "tries", points=given.points, seed=given.seed, say=say)
    sys.stdout.write(f"{given.name}, seed {given.seed}: {tally}, {time.monotonic() - begun:.0f} s\n")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

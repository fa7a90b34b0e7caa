"""Kills one of several servers at seeded points of rounds, as `kills` does with work in one process."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.qa.faults.kills import KillTally, drawn
from tests.qa.faults.points import DeadlyPoint, PointKind
from tests.qa.faults.processes import started
from tests.qa.faults.served_rounds import check, played
from tests.qa.faults.servers import FailingServers, prepare


def killed_servers(
    folder: Path, *, points: int, seed: int, servers: int = 1, say: Callable[[str], object] = lambda _: None
) -> KillTally:
    """Run all tries. A single server is restarted where it was killed; of several, the others continue alone."""
    tally, prepared = KillTally(), folder / "prepared"
    started(prepare, prepared, {}, watched=prepared, notes=folder / "prepared-notes").ended()
    counts, _ = _played(folder, "whole", None, servers)
    tally.points.update({str(kind): count for kind, count in counts.items()})
    for number, deadly in enumerate(drawn(counts, points, random.Random(seed))):
        try:
            _, deaths = _played(folder, str(number), deadly, servers)
        except AssertionError as wrong:
            tally.wrong.append(f"{deadly}: {wrong}")
            say(f"wrong at {deadly}: {wrong}")
        else:
            tally.kills.update(what.partition(": ")[2] for what in deaths)
            shutil.rmtree(folder / str(number))
            shutil.rmtree(folder / f"{number}-notes")
    return tally


def _played(folder: Path, name: str, deadly: DeadlyPoint | None, count: int) -> tuple[dict[PointKind, int], list[str]]:
    place = folder / name
    shutil.copytree(folder / "prepared", place)
    servers = FailingServers([place] * count, folder / f"{name}-notes", restarts=count == 1)
    try:
        servers.start(deadly)
        check(servers, played(servers))
        servers.logged()
        return servers.passed(), servers.deaths
    finally:
        servers.stop()

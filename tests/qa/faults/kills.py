"""Kills a process at seeded points of its work, repeats the work, and checks the results against what was reported.

A `KilledWork` runs in its own process in a copy of a prepared folder: once undisturbed, to count its points, and then
once per drawn point, where it is killed. After each kill a new process does the work again, which must end.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.qa.faults.points import DeadlyPoint, FullFor, PointKind
from tests.qa.faults.processes import WatchedProcess, started


class KilledWork(Protocol):
    """Work that changes a folder, and may be killed at any point."""

    kinds: tuple[PointKind, ...]

    def prepare(self, folder: Path) -> None:
        """Make the folder of which each try gets a copy."""

    def run(self, folder: Path) -> None:
        """Do all of the work, from whatever a killed try has left. Called in a new process."""

    def check(self, folder: Path, *, killed: bool) -> None:
        """Raise AssertionError for what must not be; killed: the work was killed and not yet repeated."""


@dataclass
class KillTally:
    """The results of the tries."""

    kills: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = ", ".join(f"{count} {what}" for what, count in self.kills.most_common(12))
        return f"{self.kills.total()} kills of {dict(self.points)} points ({where}); {len(self.wrong)} wrong"


def drawn(counts: dict[PointKind, int], points: int, rng: random.Random) -> list[DeadlyPoint]:
    """Draw this many different points, alternating kinds as long as they last."""
    left = {kind: rng.sample(range(1, count + 1), min(count, points)) for kind, count in counts.items() if count}
    found: list[DeadlyPoint] = []
    while len(found) < points and any(left.values()):
        found += [DeadlyPoint(kind, numbers.pop()) for kind, numbers in left.items() if numbers][: points - len(found)]
    return found


def done_whole(work: KilledWork, folder: Path, full: FullFor | None = None) -> tuple[Path, WatchedProcess]:
    """Prepare the folder for the tries, and do the work once in a copy, which is deleted.

    folder: new, for everything that is written; full: as for `started`.
    """
    prepared, whole = folder / "prepared", folder / "whole"
    prepared.mkdir(parents=True)
    work.prepare(prepared)
    shutil.copytree(prepared, whole)
    done = started(work.run, whole, watched=whole, notes=folder / "whole-notes", full=full).ended()
    work.check(whole, killed=False)
    shutil.rmtree(whole)
    return prepared, done


def killed_at_points(
    work: KilledWork, folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> KillTally:
    """Run all tries. folder: new, for everything that is written."""
    tally, (prepared, first) = KillTally(), done_whole(work, folder)
    counts: dict[PointKind, int] = {kind: first.counts.passed(kind) for kind in work.kinds}
    tally.points.update({str(kind): count for kind, count in counts.items()})
    for number, deadly in enumerate(drawn(counts, points, random.Random(seed))):
        place, notes = folder / str(number), folder / f"{number}-notes"
        shutil.copytree(prepared, place)
        try:
            died = started(work.run, place, watched=place, notes=notes / "killed", deadly=deadly).ended()
            if died.killed:
                tally.kills[died.counts.what().partition(": ")[2]] += 1
                work.check(place, killed=True)
                started(work.run, place, watched=place, notes=notes / "again").ended()
            work.check(place, killed=False)
        except AssertionError as wrong:
            tally.wrong.append(f"{deadly}: {wrong}")
            say(f"wrong at {deadly}: {wrong}")
        else:
            shutil.rmtree(place)
            shutil.rmtree(notes)
    return tally

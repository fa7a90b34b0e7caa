"""Makes the disk full for a while from seeded moments on, and checks the results against what was reported.

A `KilledWork` runs once undisturbed, to count its requests for space, and then once per drawn moment. It gets an error
that the disk is full, or not; it retries, and must end as usual, in one process.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from tests.qa.faults.kills import KilledWork, KillTally, done_whole
from tests.qa.faults.points import FullFor
from tests.qa.faults.processes import started
from tests.qa.faults.served_rounds import check, played
from tests.qa.faults.servers import FailingServers, prepare

COUNTS = (1, 2, 8, 30)
"""How often in a row room is asked for in vain."""


def full_at_points(
    work: KilledWork, folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> KillTally:
    """Run all tries. folder: new, for everything that is written."""
    tally, (prepared, first) = KillTally(), done_whole(work, folder, FullFor(0, 0))
    asked, dice = first.counts.asked(), random.Random(seed)
    tally.points["room"] = len(asked)
    for number, moment in enumerate(moments(asked, points, dice)):
        place, notes, full = folder / str(number), folder / f"{number}-notes", FullFor(moment, dice.choice(COUNTS))
        shutil.copytree(prepared, place)
        try:
            done = started(work.run, place, watched=place, notes=notes, full=full).ended()
            reported = "told" if done.output.read_text(encoding="utf-8") else "not told"
            if what := done.counts.what().partition(": ")[2]:
                tally.kills[f"{reported}: {what}"] += 1
            work.check(place, killed=False)
        except AssertionError as wrong:
            tally.wrong.append(f"{full}: {wrong}")
            say(f"wrong at {full}: {wrong}")
        else:
            shutil.rmtree(place)
            shutil.rmtree(notes)
    return tally


def full_servers(folder: Path, *, points: int, seed: int, say: Callable[[str], object] = lambda _: None) -> KillTally:
    """Do the same with a server's rounds (`served_rounds`): it continues, answers 503 meanwhile, and nothing else."""
    tally, dice = KillTally(), random.Random(seed)
    started(prepare, folder / "prepared", {}, watched=folder, notes=folder / "prepared-notes").ended()
    with _serving(folder, "whole") as servers:
        begun = len(servers.asked())
        check(servers, played(servers))
        asked = servers.asked()[begun:]
    tally.points["room"] = len(asked)
    for number, moment in enumerate(moments(asked, points, dice)):
        full = FullFor(moment, dice.choice(COUNTS))
        try:
            with _serving(folder, str(number)) as servers:
                servers.refuse(full)
                check(servers, played(servers))
                what, logged = servers.refused(), servers.logged()
        except AssertionError as wrong:
            tally.wrong.append(f"{full}: {wrong}")
            say(f"wrong at {full}: {wrong}")
        else:
            if what:
                reported = "told" if servers.troubles or logged else "not told"
                tally.kills[f"{reported}: {what.partition(': ')[2]}"] += 1
            shutil.rmtree(folder / str(number))
            shutil.rmtree(folder / f"{number}-notes")
    return tally


@contextmanager
def _serving(folder: Path, name: str) -> Iterator[FailingServers]:
    place = folder / name
    shutil.copytree(folder / "prepared", place)
    servers = FailingServers([place], folder / f"{name}-notes", is_scarce=True)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def moments(asked: Sequence[str], points: int, dice: random.Random) -> list[int]:
    """Draw different moments, counted from 1: one of each kind of request for space, and again until there are enough.

    The kinds come in a random order: otherwise, with more kinds than moments, those late in the work would never be
    met.
    """
    kinds: dict[str, list[int]] = {}
    for number, what in enumerate(asked, start=1):
        kinds.setdefault(re.sub("[0-9a-f]{8,}", "*", what), []).append(number)
    for numbers in kinds.values():
        dice.shuffle(numbers)
    drawn = dice.sample([*kinds.values()], len(kinds))
    by_turns = [number for each in zip_longest(*drawn) for number in each if number is not None]
    return by_turns[:points]

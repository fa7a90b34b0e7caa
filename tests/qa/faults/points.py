"""The points of a process at which it may be killed or refused: every write that outlives it, and every await.

A write point is just before and just after a commit of a database, before a file below the watched folder is opened for
writing, renamed, removed, shortened or made, and before written data is synced to the disk. An await point is the
moment at which the event loop resumes something. Points are counted in memory shared with the parent process, so the
count survives; SIGKILL comes from the process itself, so nothing runs after the point. On a disk that is full for a
while, the points are the requests for space (`scarce_space`).
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import sqlite3
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.doubles.written_paths import written_path

PointKind = Literal["write", "await", "room"]
KINDS: tuple[PointKind, ...] = ("write", "await", "room")
COUNTS, REFUSED = struct.Struct("<qqq"), struct.Struct("<qq")
NOTES = COUNTS.size + REFUSED.size
WHAT_BYTES = 200
_open = open  # as it is before anything is watched


@dataclass(frozen=True)
class DeadlyPoint:
    """Kills at the n-th point of a kind, counted from 1."""

    kind: PointKind
    number: int


@dataclass(frozen=True)
class FullFor:
    """Refuses requests for space from the n-th on, counted from 1, this many times."""

    first: int
    count: int


class PointCounts:
    """How many points of each kind were passed, and at which one the process died; in a file that both sides map."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(NOTES + WHAT_BYTES))
        self._asked = path.with_name(f"{path.name}-asked")
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    def passed(self, kind: PointKind) -> int:
        """Return how many points of this kind were passed."""
        return int(COUNTS.unpack_from(self._memory)[KINDS.index(kind)])

    def add(self, kind: PointKind) -> int:
        """Count one more point; return the count."""
        counts = list(COUNTS.unpack_from(self._memory))
        counts[KINDS.index(kind)] += 1
        COUNTS.pack_into(self._memory, 0, *counts)
        return int(counts[KINDS.index(kind)])

    def refuse(self, full: FullFor) -> None:
        """Make the process be refused space; while it runs, counted from its last request."""
        first = self.passed("room") + full.first
        REFUSED.pack_into(self._memory, COUNTS.size, first, first + full.count)

    def asks_room(self, what: str) -> bool:
        """Count one request for space; return whether it is refused. Otherwise it is listed (`asked`)."""
        number = self.add("room")
        first, end = REFUSED.unpack_from(self._memory, COUNTS.size)
        if not end:
            with _open(self._asked, "a", encoding="utf-8") as file:
                file.write(f"{what}\n")
        if number == first:
            self.note(f"room {number}: {what}")
        return bool(first <= number < end)

    def asked(self) -> list[str]:
        """Return the requests for space, in order."""
        return self._asked.read_text(encoding="utf-8").splitlines() if self._asked.exists() else []

    def note(self, what: str) -> None:
        """Record where the process ends, or is first refused space."""
        text = what.encode(errors="replace")[:WHAT_BYTES]
        self._memory[NOTES : NOTES + WHAT_BYTES] = text.ljust(WHAT_BYTES, b"\0")

    def what(self) -> str:
        """Return what was recorded; empty if nothing was."""
        return self._memory[NOTES:].rstrip(b"\0").decode(errors="replace")


def watch(folder: Path, counts: PointCounts, deadly: DeadlyPoint | None) -> None:
    """Count this process's points from now on, and kill it at the deadly one. It can't be undone."""

    def point(kind: PointKind, what: str) -> None:
        number = counts.add(kind)
        if deadly is not None and (kind, number) == (deadly.kind, deadly.number):
            counts.note(f"{kind} {number}: {what}")
            os.kill(os.getpid(), signal.SIGKILL)

    _watch_files(folder, point)
    _watch_databases(point)
    _watch_awaits(point)


def _watch_files(folder: Path, point: Callable[[PointKind, str], None]) -> None:
    below = f"{folder}{os.sep}"

    def received(name: str, arguments: tuple[Any, ...]) -> None:
        path = written_path(name, arguments)
        if path is not None and path.startswith(below) and not path.endswith((".lock", ".log")):
            point("write", f"{name} {path.removeprefix(below)}")

    sys.addaudithook(received)
    fsync = os.fsync

    def watched(fd: Any) -> None:
        point("write", "fsync")
        fsync(fd)

    os.fsync = watched


def _watch_databases(point: Callable[[PointKind, str], None]) -> None:
    """Watch SQLite's commits, whoever opens the database.

    A commit is a statement or a call; a statement outside a transaction is its own commit.
    """

    class WatchedConnection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql.lstrip()[:6].upper() not in ("COMMIT", "VACUUM"):
                return super().execute(sql, *values)
            point("write", f"before {sql[:40]}")
            done = super().execute(sql, *values)
            point("write", f"after {sql[:40]}")
            return done

        def commit(self) -> None:
            within = self.in_transaction
            if within:
                point("write", "before commit")
            super().commit()
            if within:
                point("write", "after commit")

    connect = sqlite3.connect

    def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **{"factory": WatchedConnection} | options)

    # Its overloads are not to be declared again.
    sqlite3.connect = sqlite3.dbapi2.connect = watched  # type: ignore[assignment]


def _watch_awaits(point: Callable[[PointKind, str], None]) -> None:
    run = asyncio.Handle._run

    def watched(handle: asyncio.Handle) -> None:
        point("await", "the event loop goes on")
        run(handle)

    asyncio.Handle._run = watched  # type: ignore[method-assign, assignment]

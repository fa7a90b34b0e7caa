"""Ends a server or a device as SIGKILL does, at chosen points, without the cost of a new process.

A point is any moment at which something outlives the process: before and after each commit of a database, before each
change of a file or folder of the server, and when a request leaves a device or its answer arrives. After the kill, the
victim can change nothing more, so no `finally` of this process cleans up what a killed process would leave.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from sqlalchemy import Connection, Engine, event

from device_app.store.database import Database
from tests.doubles.written_paths import written_path

KilledSide = Literal["server", "device"]


class Killed(BaseException):
    """The process is dead.

    It is no Exception, so that no handler catches it; only the code that restarts it does.
    """


@dataclass
class Kills:
    """The points at which to kill: whose, at which stage of the round, and which occurrence there."""

    folder: Path
    deadly: Collection[tuple[KilledSide, str, int]]
    passed: Counter[tuple[KilledSide, str]] = field(default_factory=Counter)
    stage: str = ""
    armed: bool = False
    dead: KilledSide | None = None
    done: list[tuple[KilledSide, str, str]] = field(default_factory=list)

    def point(self, victim: KilledSide, what: str) -> None:
        """Raise Killed if this point is chosen, or if the victim has died and was not restarted."""
        if self.dead == victim:
            raise Killed
        if self.dead is not None or not self.armed:
            return
        self.passed[victim, self.stage] += 1
        if (victim, self.stage, self.passed[victim, self.stage]) in self.deadly:
            self.dead = victim
            self.done.append((victim, what, self.stage))
            raise Killed

    def revived(self) -> None:
        """Note that the victim was restarted."""
        self.dead = None

    def by_stage(self) -> Counter[tuple[str, str]]:
        """Return how many of each kind died at each stage."""
        return Counter((victim, stage) for victim, _, stage in self.done)

    def watch_server(self, engine: Engine) -> None:
        """Add points around every commit of this engine."""

        def commit(connection: Connection) -> None:
            if not connection.get_execution_options().get("ownfeed_writes"):
                return
            self.point("server", "before a commit")
            raw = cast(sqlite3.Connection, connection.connection.dbapi_connection)
            raw.execute("COMMIT")
            self.point("server", "after a commit")

        event.listen(engine, "commit", commit)

    def watch_device(self, patch: pytest.MonkeyPatch) -> None:
        """Add points around every commit of every device's store."""
        run = Database._run

        def watched(database: Database, sql: str, *values: Any) -> Any:
            if sql != "COMMIT":
                return run(database, sql, *values)
            self.point("device", "before a commit")
            result = run(database, sql, *values)
            self.point("device", "after a commit")
            return result

        patch.setattr(Database, "_run", watched)

    def received(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Handle an audit event of the interpreter."""
        path = written_path(name, arguments)
        if path is not None and path.startswith(f"{self.folder}{os.sep}") and not path.endswith(".lock"):
            self.point("server", f"{name} {Path(path).suffix}")


_listening: list[Kills] = []


def _audit(name: str, arguments: tuple[Any, ...]) -> None:
    if _listening:
        _listening[-1].received(name, arguments)


_hooked: list[bool] = []


def listen(kills: Kills | None) -> None:
    """Send the interpreter's file events to these kills.

    None stops it, because an audit hook can't be removed.
    """
    _listening.clear()
    if kills is not None:
        _listening.append(kills)
        if not _hooked:
            sys.addaudithook(_audit)
            _hooked.append(True)

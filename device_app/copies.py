"""Backs up a device's two databases once a day, and never keeps what its reader has deleted."""

import shlex
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock, RLock

from device_app.errors import StoreBroken
from device_app.privacy.accounting.limits import Limits
from device_app.settings import DeviceSettings
from device_app.store.database import Remedy
from device_app.store.database_copy import CopyStopped, DatabaseCopy
from device_app.store.profile import asides_of
from device_app.store.releases import Trust
from device_app.stores import searches_of
from protocol.private_files import overwrite

EVERY = timedelta(days=1)


class Copies:
    """Maintains one copy of each database, at most about a day old.

    Formal guarantees:
    - a copy contains neither keys nor vectors of a round in progress (`database_copy.LEFT_OUT`);
    - once a deletion is done, what the reader deleted is in no copy, nor in remains of one that a crash interrupted
    while it was being made or restored (`deleting`);
    - the limits in a copy are at least those in effect at any time since it was made (`allow`), so that a device that
      continues from it charges at least what was spent (`privacy.restored_copy`);
    - the reader's choices, such as switching reports off, are carried into the copy (`choose`);
    - so are the key that this device trusts and the release in use (`trust`): a device that continues from the copy
      accepts nothing signed by a key that was given up since, and no older release.

    Args:
        databases: the device's own first.
        limits: returns the limits in effect now.
    """

    def __init__(self, databases: Sequence[Path], limits: Callable[[], Limits], clock: Callable[[], datetime]) -> None:
        self.copies = tuple(DatabaseCopy(path) for path in databases)
        self._limits, self._clock = limits, clock
        self._lock = RLock()
        self._counting, self._waiting = Lock(), 0
        self._trusted: Trust | None = None

    def step(self) -> bool:
        """Copy each database whose copy is missing or a day old; return True if any was.

        Called by one background thread. Raises StoreDamaged for a damaged database (its old copy stays), and
        StoreBroken.
        """
        if self._given_up() or not self._lock.acquire(blocking=False):
            return False  # a deletion or choice is in progress: the next step makes the copy
        try:
            due = [copy for copy in self.copies if copy.original.exists() and self._due(copy)]
            for copy in due:
                copy.make(self._clock(), self._limits().model_dump_json(), self._given_up)
            return bool(due)
        except CopyStopped:
            return False
        finally:
            self._lock.release()

    def _given_up(self) -> bool:
        return self._waiting > 0

    def _wait(self, more: int) -> None:
        with self._counting:
            self._waiting += more

    def _due(self, copy: DatabaseCopy) -> bool:
        mark = copy.mark()
        return mark is None or not timedelta(0) <= self._clock() - mark.at < EVERY

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold off copying in this block; a copy in progress is abandoned first."""
        self._wait(1)
        try:
            self._lock.acquire()
        finally:
            self._wait(-1)
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def deleting(self) -> Iterator[None]:
        """Drop the copies before the block deletes data; a later step makes new copies.

        Raises StoreBroken.
        """
        with self.held():
            for copy in self.copies:
                copy.drop()
            yield

    def erase(self) -> None:
        """Remove the copies and all damaged databases kept aside. Call inside `deleting`.

        Raises StoreBroken.
        """
        for copy in self.copies:
            copy.drop()
            for path in asides_of(copy.original):
                try:
                    overwrite(path)
                except OSError as broken:
                    raise StoreBroken(path, broken.strerror or str(broken)) from broken

    def allow(self, limits: Limits) -> None:
        """Raise the limits in the copy before more may be spent; drops a copy that can't be written."""
        copy = self.copies[0]
        mark = copy.mark()
        if mark is None:
            return
        try:
            higher = Limits.read(mark.limits).or_higher(limits).model_dump_json()
            if higher != mark.limits:
                copy.write([("UPDATE copied SET limits = ?", (higher,))])
        except (StoreBroken, ValueError):
            copy.drop()

    def choose(self, choices: Iterable[tuple[str, str]]) -> None:
        """Carry the reader's choices (rows of `Preferences`) into the copy.

        Drops a copy that can't be written.
        """
        copy = self.copies[0]
        if copy.mark() is None:
            return
        rows = [("INSERT INTO preference (name, value) VALUES (?, ?)", row) for row in choices]
        try:
            copy.write([("DELETE FROM preference", ()), *rows])
        except StoreBroken:
            copy.drop()

    def trust(self, rows: Trust) -> None:
        """Carry the trusted key and the release in use into the copy, if they changed.

        Drops a copy that can't be written.
        """
        if rows == self._trusted:
            return
        with self.held():
            copy = self.copies[0]
            if copy.mark() is not None:
                # Earlier releases stay; rows of the other tables are replaced, as they may stem from another server.
                statements: list[tuple[str, tuple[object, ...]]]
                statements = [(f"DELETE FROM {table}", ()) for table in rows if table != "release"]
                for table, each in rows.items():
                    sql = f"INSERT OR REPLACE INTO {table} VALUES ({{}})"
                    statements += [(sql.format(", ".join("?" * len(row))), row) for row in each]
                try:
                    copy.write(statements)
                except StoreBroken:
                    copy.drop()
            self._trusted = rows

    def forget_drafts(self) -> None:
        """Remove the remains of copies that a crash interrupted while they were being made or restored. Raises
        StoreBroken."""
        for copy in self.copies:
            try:
                copy.forget_drafts()
            except (OSError, sqlite3.Error) as broken:
                raise StoreBroken(copy.path, str(broken)) from broken


def databases_of(settings: DeviceSettings) -> tuple[Path, Path]:
    """Return the paths of the device's own database and of the other view's store."""
    return settings.database, searches_of(settings.database)


def remedies(settings: DeviceSettings) -> Callable[[Path], Remedy]:
    """Return a function that says what a reader can do about a damaged database.

    It names the command to run.
    """
    command = f"ownfeed device --profile {settings.profile} --data-dir {shlex.quote(str(settings.data_dir.absolute()))}"

    def of(database: Path) -> Remedy:
        def remedy() -> str:
            mark = DatabaseCopy(database).mark()
            if mark is not None:
                return (
                    f"Its last copy is of {mark.at:%Y-%m-%d %H:%M} UTC; stop the device, and "
                    f"`{command} --restore-copy` restores it. The damaged file is kept."
                )
            return (
                "There is no copy of it. Keep the file, since it may be possible to repair it; "
                f"`{command} --start-anew` starts with an empty one, without any record of what was read or spent."
            )

        return remedy

    return of

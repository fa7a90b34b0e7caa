"""The copies of a device's two databases: made once a day, and never of what its reader has deleted."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock, RLock

from device_app.errors import StoreBroken
from device_app.privacy.limits import Limits
from device_app.private_files import overwrite
from device_app.settings import DeviceSettings
from device_app.store.database import Remedy
from device_app.store.database_copy import CopyStopped, DatabaseCopy
from device_app.store.profile import asides_of
from device_app.store.releases import Trust
from device_app.stores import searches_of

EVERY = timedelta(days=1)


class Copies:
    """One copy of each database, as it was at most about a day ago.

    Formal guarantees:

    - a copy holds neither keys nor vectors of a round under way (`database_copy.LEFT_OUT`);
    - what the reader deletes is in no copy when the deletion is done, nor in what a kill has left of one that was being
      made or put back (`deleting`);
    - the limits in a copy are at least those that held at any time since it was made (`allow`), so that a device that
      goes on from it charges at least what was spent (`privacy.restored_copy`);
    - the reader's choices, such as reports switched off, are carried into the copy (`choose`);
    - so are the key that this device trusts and the release in use (`trust`): a device that goes on from the copy takes
      nothing that a key signs which was given up since, and none of the releases that were left behind.

    Args:
        databases: the device's own first.
        limits: those that hold now.
    """

    def __init__(self, databases: Sequence[Path], limits: Callable[[], Limits], clock: Callable[[], datetime]) -> None:
        self.copies = tuple(DatabaseCopy(path) for path in databases)
        self._limits, self._clock = limits, clock
        self._lock = RLock()
        self._counting, self._waiting = Lock(), 0
        self._trusted: Trust | None = None

    def step(self) -> bool:
        """Copy each database whose copy is missing or a day old; True if any was. Made by one background thread.

        Raises StoreDamaged for a database that is damaged (its old copy stays), StoreBroken.
        """
        if self._given_up() or not self._lock.acquire(blocking=False):
            return False  # something is being deleted or chosen: the next look makes the copy
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
        """No copy is made inside; one that is being made is given up first."""
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
        """The copies are dropped, then the block deletes; the next look makes new ones. Raises StoreBroken."""
        with self.held():
            for copy in self.copies:
                copy.drop()
            yield

    def erase(self) -> None:
        """Remove the copies, and every damaged database that was kept aside. Inside `deleting`. Raises StoreBroken."""
        for copy in self.copies:
            copy.drop()
            for path in asides_of(copy.original):
                try:
                    overwrite(path)
                except OSError as broken:
                    raise StoreBroken(path, broken.strerror or str(broken)) from broken

    def allow(self, limits: Limits) -> None:
        """Write into the copy that more may be spent from now on, before it is. A copy that can't be written goes."""
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
        """Carry the reader's choices (rows of `Preferences`) into the copy. A copy that can't be written goes."""
        copy = self.copies[0]
        if copy.mark() is None:
            return
        rows = [("INSERT INTO preference (name, value) VALUES (?, ?)", row) for row in choices]
        try:
            copy.write([("DELETE FROM preference", ()), *rows])
        except StoreBroken:
            copy.drop()

    def trust(self, rows: Trust) -> None:
        """Carry the trusted key and the release in use into the copy, if they are others than last time. A copy that
        can't be written goes."""
        if rows == self._trusted:
            return
        with self.held():
            copy = self.copies[0]
            if copy.mark() is not None:
                # Of releases the earlier ones stay; of the others what stood there may be another server's.
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
        """Remove what a kill has left of copies that were being made or put back. Raises StoreBroken."""
        for copy in self.copies:
            try:
                copy.forget_drafts()
            except (OSError, sqlite3.Error) as broken:
                raise StoreBroken(copy.path, str(broken)) from broken


def databases_of(settings: DeviceSettings) -> tuple[Path, Path]:
    """The device's own database, and the store of the other view."""
    return settings.database, searches_of(settings.database)


def remedies(settings: DeviceSettings) -> Callable[[Path], Remedy]:
    """For each database what the reader can do when it is damaged, with the command that does it."""
    command = f"ownfeed device --profile {settings.profile} --data-dir {shlex.quote(str(settings.data_dir.absolute()))}"

    def of(database: Path) -> Remedy:
        def remedy() -> str:
            mark = DatabaseCopy(database).mark()
            if mark is not None:
                return (
                    f"Its last copy is of {mark.at:%Y-%m-%d %H:%M} UTC; stop the device, and "
                    f"`{command} --restore-copy` puts it in its place. The damaged file is kept."
                )
            return (
                "There is no copy of it. Keep the file, it may be mended; "
                f"`{command} --start-anew` begins an empty one, which knows nothing of what was read or spent."
            )

        return remedy

    return of

"""The last copy of one database, beside it: made whole, checked, and marked inside as a copy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from device_app.errors import StoreBroken
from device_app.private_files import make_file, overwrite
from device_app.store.database import (
    BUSY_TIMEOUT_SEC,
    Database,
    draft_of,
    forget_draft,
    overwrite_draft,
    store_error,
)
from device_app.store.integrity import damage
from device_app.store.preferences import MOVED_SEARCHES
from device_app.store.rows import from_us, to_us

MARK_TABLE = "copied"
LEFT_OUT = {"sum_part": "true", "parcel": "true", "preference": f"name = '{MOVED_SEARCHES}'"}
"""Which rows, by table. Secrets and masked vectors of rounds under way, and uploads on their way: none of them may be
used a second time. And the other view's searches on their way into its own file."""
PAGES_A_STEP = 256
STEPS_BETWEEN_LOOKS = 10_000
"""Of SQLite's virtual machine, between two looks at whether a copy is still wanted."""


class CopyStopped(Exception):
    """The making of a copy was given up, because what it would hold is about to change; nothing is left of it."""


@dataclass(frozen=True)
class CopyMark:
    """When a copy was made, and the limits (JSON of `privacy.limits.Limits`) that held at any time since."""

    at: datetime
    limits: str


class DatabaseCopy:
    """`device.copy.sqlite` beside `device.sqlite`: at most one a database, readable by its owner only.

    The copy has a table more, with when it was made: by whatever means it gets into the database's place, the device
    sees that it opens a copy, and charges for what may have been spent since (`privacy.restored_copy`).
    """

    def __init__(self, original: Path) -> None:
        self.original = original
        self.path = original.with_name(f"{original.stem}.copy{original.suffix}")
        self.draft = draft_of(self.path)

    def mark(self) -> CopyMark | None:
        """What the copy says of itself; None if there is no copy, or none that can be read."""
        if not self.path.exists():
            return None
        try:
            with closing(_opened(self.path, "ro")) as connection:
                at, limits = connection.execute(f"SELECT at, limits FROM {MARK_TABLE}").fetchone()
                return CopyMark(from_us(at), limits)
        except (sqlite3.Error, TypeError, ValueError, OverflowError, OSError):
            return None

    def make(self, at: datetime, limits: str, stopped: Callable[[], bool] = lambda: False) -> None:
        """Put a copy of the database as it is now in the place of the last one, which stays if this fails.

        Other threads go on reading and writing meanwhile. Raises CopyStopped soon after `stopped` says so, StoreDamaged
        if the database is damaged, StoreBroken if the copy can't be written.
        """
        try:
            overwrite_draft(self.path)
            make_file(self.draft)
            with closing(_opened(self.draft, "rw")) as draft:
                self._fill(draft, stopped)
                draft.set_progress_handler(lambda: int(stopped()), STEPS_BETWEEN_LOOKS)
                self._finish(draft, at, limits)
            with self.draft.open("rb") as written:
                os.fsync(written.fileno())
            if stopped():
                raise CopyStopped
            self.draft.replace(self.path)
        except sqlite3.Error as broken:
            if stopped():
                raise CopyStopped from None
            raise store_error(self.original, broken) from broken
        except OSError as broken:
            raise StoreBroken(self.path, broken.strerror or str(broken)) from broken
        finally:
            with suppress(OSError):
                overwrite_draft(self.path)

    def _fill(self, draft: sqlite3.Connection, stopped: Callable[[], bool]) -> None:
        def look(status: int, remaining: int, total: int) -> None:
            if stopped():
                raise CopyStopped

        with closing(_opened(self.original, "rw")) as source:
            source.execute("BEGIN")  # one state of the database, whatever is written meanwhile
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            source.backup(draft, pages=PAGES_A_STEP, progress=look, sleep=0)

    def _finish(self, draft: sqlite3.Connection, at: datetime, limits: str) -> None:
        draft.execute("PRAGMA journal_mode=DELETE")  # the copied header says WAL
        draft.execute("PRAGMA journal_mode=MEMORY")  # nothing of what is left out gets into a journal on the disk
        draft.execute("PRAGMA secure_delete=ON")
        draft.execute("BEGIN IMMEDIATE")
        for table, which in LEFT_OUT.items():
            if draft.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone():
                draft.execute(f"DELETE FROM {table} WHERE {which}")
        draft.execute(f"DROP TABLE IF EXISTS {MARK_TABLE}")
        draft.execute(f"CREATE TABLE {MARK_TABLE} (at INTEGER NOT NULL, limits TEXT NOT NULL) STRICT")
        draft.execute(f"INSERT INTO {MARK_TABLE} (at, limits) VALUES (?, ?)", (to_us(at), limits))
        draft.execute("COMMIT")
        if found := damage(draft, whole=False):
            raise sqlite3.DatabaseError(f"database disk image is malformed: {found}")

    def check(self) -> CopyMark:
        """Look through every page of the copy. Raises StoreBroken if there is none, or it is damaged itself."""
        if not self.path.exists():
            raise StoreBroken(self.path, "there is no copy")
        try:
            with closing(_opened(self.path, "ro")) as connection:
                found = damage(connection)
        except sqlite3.Error as broken:
            raise StoreBroken(self.path, f"the copy is damaged itself ({broken})") from broken
        mark = self.mark()
        if found or mark is None:
            raise StoreBroken(self.path, f"the copy is damaged itself ({found or 'it has no date'})")
        return mark

    def write(self, statements: Iterable[tuple[str, tuple[object, ...]]]) -> None:
        """Change the copy, in one transaction that waits for the disk. Raises StoreBroken if it can't be."""
        try:
            with closing(_opened(self.path, "rw")) as connection:
                connection.execute("PRAGMA secure_delete=ON")
                connection.execute("BEGIN IMMEDIATE")
                for sql, values in statements:
                    connection.execute(sql, values)
                connection.execute("COMMIT")
        except sqlite3.Error as broken:
            raise StoreBroken(self.path, str(broken)) from broken

    def drop(self) -> None:
        """Overwrite and remove the copy, and what is left of one being made or put back. Raises StoreBroken."""
        try:
            self.forget_drafts()
            for path in (self.path, self.path.with_name(self.path.name + "-journal")):
                overwrite(path)
        except (OSError, sqlite3.Error) as broken:
            raise StoreBroken(self.path, str(broken)) from broken

    def forget_drafts(self) -> None:
        """Remove what a kill has left of a copy that was being made, or was being put in the database's place."""
        overwrite_draft(self.path)
        forget_draft(self.original)


def mark_inside(database: Database) -> CopyMark | None:
    """What a database that is open says of itself, if it is a copy that nothing was charged for yet. StoreBroken."""
    if database.row("SELECT 1 FROM sqlite_schema WHERE name = ?", (MARK_TABLE,)) is None:
        return None
    row = database.row(f"SELECT at, limits FROM {MARK_TABLE}")
    if row is None:
        raise StoreBroken(database.path, "it is a copy, and does not say of when")
    return CopyMark(from_us(row[0]), row[1])


def unmark(database: Database) -> None:
    """Make a copy the database itself: inside the transaction that charges for what may have been spent since."""
    database.write(f"DROP TABLE {MARK_TABLE}")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    """A connection of its own, so that the device's own lock is not held; it makes no file."""
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT_SEC, isolation_level=None
    )

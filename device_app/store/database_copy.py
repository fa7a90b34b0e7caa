"""Keep a copy of the database next to it, and check that its content is readable.

There is at most one copy. It is written completely, checked, and marked inside as a copy. The row checks cover the rows
that no backend can provide again.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from device_app.errors import StoreBroken
from device_app.store.database import (
    BUSY_TIMEOUT_SEC,
    Database,
    draft_of,
    forget_draft,
    overwrite_draft,
    store_error,
)
from device_app.store.preferences import MOVED_SEARCHES
from device_app.store.rows import from_us, to_us
from protocol.private_files import make_file, overwrite
from protocol.releases import SignedManifest, verify


def _verified(manifest: str, signature: bytes, public_key: bytes) -> object:
    return verify(SignedManifest(manifest=manifest, signature=signature, public_key=public_key), public_key)


_OWN: dict[str, tuple[str, str, Callable[..., object]]] = {
    "the release in use": (
        "release", "SELECT manifest, signature, public_key FROM release ORDER BY id DESC LIMIT 1", _verified,
    ),
    "a setting": ("preference", "SELECT value FROM preference", json.loads),
    "what was spent": ("charge", "SELECT DISTINCT parameters FROM charge", json.loads),
    "the report in use": ("report_memo", "SELECT clear FROM report_memo", json.loads),
}  # fmt: skip


def unreadable_row(rows: Callable[[str], Iterable[tuple[Any, ...]]]) -> str | None:
    """Return what is wrong with the first unreadable row that only this device has; None if all are readable.

    rows: runs a query.
    """
    tables = {name for (name,) in rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for what, (table, sql, read) in _OWN.items():
        try:
            for row in rows(sql) if table in tables else ():
                read(*row)
        except ValueError:
            return f"{what} can't be read"
    return None


def damage(connection: sqlite3.Connection, *, whole: bool = True) -> str | None:
    """Return what is wrong with a database, as SQLite or this program describes it.

    None if nothing is wrong. Raises sqlite3.Error. whole: also check indices against their tables, which doubles the
    time.
    """
    (found,) = connection.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check(1)").fetchone()
    return unreadable_row(connection.execute) if found == "ok" else str(found)


MARK_TABLE = "copied"
LEFT_OUT = {"sum_part": "true", "parcel": "true", "preference": f"name = '{MOVED_SEARCHES}'"}
"""Rows left out of copies, by table.

They are secrets and masked vectors of running rounds, and pending uploads, none of which may be used a second time; and
searches waiting to be moved into the other view's own file.
"""
PAGES_A_STEP = 256
STEPS_BETWEEN_LOOKS = 10_000
"""Steps of SQLite's virtual machine between two checks of whether a copy is still wanted."""


class CopyStopped(Exception):
    """Copying was stopped because the data is about to change; nothing is left of the copy."""


@dataclass(frozen=True)
class CopyMark:
    """When a copy was made, and the limits in effect since then.

    limits is the JSON of `privacy.accounting.limits.Limits`.
    """

    at: datetime
    limits: str


class DatabaseCopy:
    """The copy `device.copy.sqlite` beside `device.sqlite`, at most one per database.

    Only its owner can read it. The copy has an additional table with the time it was made: however it gets into the
    database's place, the device sees that it opens a copy, and charges for what may have been spent since
    (`privacy.accounting.restored_copy`).
    """

    def __init__(self, original: Path) -> None:
        self.original = original
        self.path = original.with_name(f"{original.stem}.copy{original.suffix}")
        self.draft = draft_of(self.path)

    def mark(self) -> CopyMark | None:
        """Return the copy's mark; None if there is no readable copy."""
        if not self.path.exists():
            return None
        try:
            with closing(_opened(self.path, "ro")) as connection:
                at, limits = connection.execute(f"SELECT at, limits FROM {MARK_TABLE}").fetchone()
                return CopyMark(from_us(at), limits)
        except (sqlite3.Error, TypeError, ValueError, OverflowError, OSError):
            return None

    def make(self, at: datetime, limits: str, stopped: Callable[[], bool] = lambda: False) -> None:
        """Replace the copy by a new one of the database; the previous copy stays if this fails.

        Other threads can read and write meanwhile. Raises CopyStopped soon after `stopped` returns True, StoreDamaged
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
        """Check every page of the copy. Raises StoreBroken if it is missing or damaged."""
        if not self.path.exists():
            raise StoreBroken(self.path, "there is no copy")
        try:
            with closing(_opened(self.path, "ro")) as connection:
                found = damage(connection)
        except sqlite3.Error as broken:
            raise StoreBroken(self.path, f"the copy is damaged too ({broken})") from broken
        mark = self.mark()
        if found or mark is None:
            raise StoreBroken(self.path, f"the copy is damaged too ({found or 'it has no date'})")
        return mark

    def write(self, statements: Iterable[tuple[str, tuple[object, ...]]]) -> None:
        """Change the copy, in one transaction that waits for the disk.

        Raises StoreBroken if it can't be written.
        """
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
        """Overwrite and remove the copy and any drafts of it. Raises StoreBroken."""
        try:
            self.forget_drafts()
            for path in (self.path, self.path.with_name(self.path.name + "-journal")):
                overwrite(path)
        except (OSError, sqlite3.Error) as broken:
            raise StoreBroken(self.path, str(broken)) from broken

    def forget_drafts(self) -> None:
        """Remove drafts left by a crash while a copy was being made or restored."""
        overwrite_draft(self.path)
        forget_draft(self.original)


def mark_inside(database: Database) -> CopyMark | None:
    """Return the copy mark of an open database.

    None if it isn't a copy, or was already charged for. Raises StoreBroken.
    """
    if database.row("SELECT 1 FROM sqlite_schema WHERE name = ?", (MARK_TABLE,)) is None:
        return None
    row = database.row(f"SELECT at, limits FROM {MARK_TABLE}")
    if row is None:
        raise StoreBroken(database.path, "it is a copy without a date")
    return CopyMark(from_us(row[0]), row[1])


def unmark(database: Database) -> None:
    """Remove the mark that the database is a copy.

    Call it in the transaction that charges for what may have been spent since.
    """
    database.write(f"DROP TABLE {MARK_TABLE}")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    """Return a separate connection, so that the device's own lock is not held.

    It creates no file.
    """
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT_SEC, isolation_level=None
    )

"""Whether a database's file is what this device wrote: its pages, and the rows that no backend gives again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from device_app.wire.releases import SignedManifest, verify


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
    """What of a device's own in a database isn't what it wrote, in words; None if nothing is. rows: of a query."""
    tables = {name for (name,) in rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for what, (table, sql, read) in _OWN.items():
        try:
            for row in rows(sql) if table in tables else ():
                read(*row)
        except ValueError:
            return f"{what} can't be read"
    return None


def damage(connection: sqlite3.Connection, *, whole: bool = True) -> str | None:
    """What is wrong with a database, in SQLite's words or ours; None if nothing is. Raises sqlite3.Error.

    whole: indices are held against their tables too, which takes as long again.
    """
    (found,) = connection.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check(1)").fetchone()
    return unreadable_row(connection.execute) if found == "ok" else str(found)

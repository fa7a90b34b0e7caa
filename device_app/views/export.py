"""Everything this device keeps, as one JSON document for its reader."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import datetime
from typing import Any

from device_app.store.database import Database

LEFT_OUT = frozenset({"vector", "body"})
"""Vectors and texts of news say nothing about the reader that their ids don't say, and would be most of the bytes."""


def export_all(database: Database, profile: str, now: datetime) -> dict[str, Any]:
    """Every table by name, each row by column; blobs in base64, times as microseconds since 1970 (UTC)."""
    names = [row[0] for row in database.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    kept = [name for name in names if not name.startswith(("_yoyo", "yoyo", "sqlite_")) and name not in LEFT_OUT]
    return {
        "profile": profile,
        "exported_at": now.isoformat(),
        "tables": {name: _table(database, name) for name in kept},
    }


def _table(database: Database, name: str) -> list[dict[str, Any]]:
    columns = [row[1] for row in database.rows(f"PRAGMA table_info({name})")]
    return [
        {column: _plain(value) for column, value in zip(columns, row, strict=True)}
        for row in database.rows(f"SELECT * FROM {name}")
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value

"""Exports everything this device stores, as one JSON document for its reader."""

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from device_app.store.database import Database
from device_app.store.exported import VERSION
from device_app.store.preferences import MOVED_SEARCHES

LEFT_OUT = frozenset(
    {
        "article",
        "unindexed",
        "unjudged",
        "sum_part",
        "pool",
        "pool_part",
        "pool_card",
        "pool_indexed",
        "picture_list",
        "picture",
    }
)
"""Tables that are not exported.

These are technical tables of this file, the keys of a round in progress (which nobody may keep), and the pool's codes,
cards and publishers' pictures: every device has the same ones, they can be a hundred megabytes, and another device
downloads them itself.
"""
TOUCHED = "SELECT news_id FROM click UNION SELECT news_id FROM reaction"
OF_NEWS = f"news_id IN ({TOUCHED})"
"""Only rows for articles that the reader opened or reacted to.

All others would be most of the bytes, and the server has them.
"""
WHICH = {"vector": OF_NEWS, "body": OF_NEWS, "preference": f"name <> '{MOVED_SEARCHES}'"}
"""Tables of which only some rows are exported.

Searches being moved to another view's file aren't part of this one.
"""
BODIES_BYTES = 8 * 1024 * 1024
"""Total size of the newest request bodies that are exported from the log.

Older entries keep only length and hash. Masked vectors of rounds make up most of the log's 64 MiB, which is more than
another device imports.
"""
UPTO = "sum(length(body)) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
INSTEAD_OF = {("traffic", "body"): f"CASE WHEN {UPTO} <= {BODIES_BYTES} THEN body ELSE x'' END"}
"""What is exported for a column instead of its value."""
JSON_COLUMNS = frozenset(
    {
        "card",
        "clear",
        "content",
        "device_ms",
        "manifest",
        "news_ids",
        "parameters",
        "report",
        "server_ms",
        "value",
    }
)
"""Columns that contain JSON text."""


def export_all(database: Database, views: Mapping[str, Database | None], profile: str, now: datetime) -> dict[str, Any]:
    """Return every table by name, each row by column.

    Blobs are in base64, times in microseconds since 1970 (UTC). views are the stores of other views by name, each with
    its own tables; None if it doesn't exist yet. Another device can import the result (`device_app.moving`).
    """
    return {
        "version": VERSION,
        "profile": profile,
        "exported_at": now.isoformat(),
        "tables": _tables(database),
        "views": {name: _tables(each) for name, each in views.items() if each is not None},
    }


def _tables(database: Database) -> dict[str, list[dict[str, Any]]]:
    # Only plain tables: those of the word index just repeat the articles.
    found = database.rows("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name")
    names = [row[0] for row in found if not row[0].startswith(("_yoyo", "yoyo", "sqlite_"))]
    return {name: _table(database, name) for name in names if name not in LEFT_OUT}


def _table(database: Database, name: str) -> list[dict[str, Any]]:
    columns = [row[1] for row in database.rows(f"PRAGMA table_info({name})")]
    written = ", ".join(INSTEAD_OF.get((name, column), column) for column in columns)
    return [
        {column: plain_value(column, value) for column, value in zip(columns, row, strict=True)}
        for row in database.rows(f"SELECT {written} FROM {name} WHERE {WHICH.get(name, 'true')}")
    ]


def plain_value(column: str, value: Any) -> Any:
    """Return a column's value as JSON: bytes in base64, JSON text parsed.

    Text that other programs might not parse as JSON stays text, such as "[NaN]" or deeply nested brackets.
    """
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, str) and column in JSON_COLUMNS:
        try:
            parsed = json.loads(value)
            json.dumps(parsed, allow_nan=False)
        except (ValueError, RecursionError):
            return value
        return parsed
    return value

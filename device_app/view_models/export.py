"""Everything this device keeps, as one JSON document for its reader."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from device_app.store.database import Database
from device_app.store.exported import VERSION
from device_app.store.preferences import MOVED_SEARCHES

LEFT_OUT = frozenset(
    {"unindexed", "sum_part", "pool", "pool_part", "pool_card", "pool_indexed", "picture_list", "picture"}
)
"""What hangs on this very file; the keys of a round under way, which are for nobody to keep; and the pool's codes and
cards, and publishers' pictures: they are everybody's alike, may be a hundred megabytes, and are pulled again by whoever
wants them."""
TOUCHED = "SELECT news_id FROM click UNION SELECT news_id FROM reaction"
OF_NEWS = f"news_id IN ({TOUCHED})"
"""Of news that the reader opened or reacted to alone: those of all others would be most of the bytes, and the newsroom
has them."""
WHICH = {"vector": OF_NEWS, "body": OF_NEWS, "preference": f"name <> '{MOVED_SEARCHES}'"}
"""Rows of tables that don't go whole. Searches on their way into another view's file are none of this one's."""
BODIES_BYTES = 8 * 1024 * 1024
"""Of the log of requests the newest bodies up to this sum: of earlier ones the line stays, with length and hash. Masked
vectors of rounds are most of the log's 64 MiB, and as many again would pass what another device takes over."""
UPTO = "sum(length(body)) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
INSTEAD_OF = {("traffic", "body"): f"CASE WHEN {UPTO} <= {BODIES_BYTES} THEN body ELSE x'' END"}
"""What is written for a column, where that isn't its value."""
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
"""Columns whose text is JSON."""


def export_all(database: Database, views: Mapping[str, Database | None], profile: str, now: datetime) -> dict[str, Any]:
    """Every table by name, each row by column; blobs in base64, times as microseconds since 1970 (UTC).

    views are the stores of other views, by name, each with tables of its own; None where there is none yet. Another
    device takes it over (`device_app.moving`).
    """
    return {
        "version": VERSION,
        "profile": profile,
        "exported_at": now.isoformat(),
        "tables": _tables(database),
        "views": {name: _tables(each) for name, each in views.items() if each is not None},
    }


def _tables(database: Database) -> dict[str, list[dict[str, Any]]]:
    # Only plain tables: those of the word index hold nothing but the news again.
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
    """A value of a column as JSON has it: bytes in base64, and the JSON of a column of such as what it says.

    Text that no other program would read as JSON stays text: "[NaN]", or a thousand brackets.
    """
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, str) and column in JSON_COLUMNS:
        try:
            said = json.loads(value)
            json.dumps(said, allow_nan=False)
        except (ValueError, RecursionError):
            return value
        return said
    return value

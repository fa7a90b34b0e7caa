"""Both devices export the same log of requests: every line, and the newest bodies up to a limit.

Oracle: the rows that were written, and sums over them in Python.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from device_app.store.byte_log import ByteLog, Departure
from device_app.store.database import Database
from device_app.view_models.export import BODIES_BYTES, export_all
from tests.conformance.node_end import WEB, ask_node

MIB = 1024 * 1024
SIZES = (MIB, 1, 2 * MIB, 100, 2 * MIB, 2 * MIB - 1_000, 0, 2 * MIB, 900)
"""In the order in which they leave; from the end, those from the third one on have the bound's 8 MiB to the byte."""
NOW = datetime(2026, 3, 1, tzinfo=UTC)
ExportedLine = tuple[dict[str, Any], int]


@pytest.fixture(scope="module")
def exported_logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[ExportedLine], list[ExportedLine]]:
    """Return each line's columns, with the body's length instead of the body, from both devices."""
    path: Path = tmp_path_factory.mktemp("log") / "device.db"
    database = Database(path)
    log = ByteLog(database)
    for number, size in enumerate(SIZES):
        body = bytes([number]) * size
        log.record(Departure(NOW + timedelta(seconds=number), "training", "A sum.", "PUT", "http://a/b", b"PUT", body))
    traffic = export_all(database, {}, "reader", NOW)["tables"]["traffic"]
    database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    mine = [
        ({name: value for name, value in line.items() if name != "body"}, len(base64.b64decode(line["body"])))
        for line in traffic
    ]
    given = {"file": base64.b64encode(path.read_bytes()).decode()}
    (theirs,) = ask_node([("store_exported_log", given)])
    return mine, [(line, size) for line, size in theirs]


def test_newest_bodies_up_to_the_limit_are_exported(
    exported_logs: tuple[list[ExportedLine], list[ExportedLine]],
) -> None:
    within = [sum(SIZES[place:]) <= BODIES_BYTES for place in range(len(SIZES))]
    assert within == [False, False] + [True] * 7
    assert sum(SIZES[2:]) == BODIES_BYTES
    assert [size for _, size in exported_logs[0]] == [
        size if held else 0 for size, held in zip(SIZES, within, strict=True)
    ]


def test_every_exported_request_keeps_its_body_length_and_hash(
    exported_logs: tuple[list[ExportedLine], list[ExportedLine]],
) -> None:
    for place, (line, _) in enumerate(exported_logs[0]):
        assert line["body_bytes"] == SIZES[place]
        assert line["body_sha256"] == sha256(bytes([place]) * SIZES[place]).hexdigest()
        assert line["id"] == place + 1


def test_export_page_says_which_log_bodies_are_included() -> None:
    settings = (WEB / "templates" / "device" / "settings.html").read_text(encoding="utf-8")
    assert (
        f"the newest {BODIES_BYTES // MIB} MiB of what was sent in full; older requests are listed with length and hash"
        in settings
    )


def test_both_devices_export_the_same_log(exported_logs: tuple[list[ExportedLine], list[ExportedLine]]) -> None:
    mine, theirs = exported_logs
    assert mine == theirs

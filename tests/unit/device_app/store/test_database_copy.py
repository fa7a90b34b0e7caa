"""The copy of a database is complete, private and without a round's secrets, and delays nobody."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from device_app.errors import StoreBroken, StoreDamaged
from device_app.store.clicks import Clicks
from device_app.store.database import Database
from device_app.store.database_copy import CopyStopped, DatabaseCopy, mark_inside
from device_app.store.participations import SumPart, SumParts

PAGE_BYTES = 4_096


def held_by(copy: DatabaseCopy, table: str) -> int:
    with closing(sqlite3.connect(copy.path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_copy_is_one_complete_private_file_with_its_creation_time(database: Database, now: datetime) -> None:
    Clicks(database).add("N1", "f1", now)
    copy = DatabaseCopy(database.path)
    copy.make(now, "{}")
    assert copy.path.name == "device.copy.sqlite"
    assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600
    mark = copy.check()
    assert (mark.at, mark.limits, held_by(copy, "click")) == (now, "{}", 1)
    assert mark_inside(database) is None, "only a copy says that it is one"
    assert {path.name for path in database.path.parent.iterdir()} <= {
        "device.sqlite", "device.sqlite-wal", "device.sqlite-shm", "device.sqlite.lock", "device.copy.sqlite"
    }  # fmt: skip


def test_copy_holds_no_key_or_vector_of_a_running_sum(database: Database, now: datetime) -> None:
    state, vector = "seed-of-the-masks-" * 400, b"masked vector " * 2_000
    SumParts(database).begin(SumPart("round-7", "{}", state, vector), now)
    Clicks(database).add("N1", "f1", now)
    copy = DatabaseCopy(database.path)
    copy.make(now, "{}")
    content = copy.path.read_bytes()
    assert b"seed-of-the-masks" not in content
    assert b"masked vector" not in content
    assert (held_by(copy, "sum_part"), held_by(copy, "click")) == (0, 1)
    assert [part.round for part in SumParts(database).under_way()] == ["round-7"]


def test_writes_during_a_copy_do_not_wait_and_are_in_the_next_copy(database: Database, now: datetime) -> None:
    clicks, copy = Clicks(database), DatabaseCopy(database.path)
    for number in range(200):
        clicks.add(f"N{number}" + "x" * 8_000, "f", now)
    during: list[int] = []

    def write_a_click() -> bool:
        if len(during) < 3:
            clicks.add(f"during-{len(during)}", "f", now)
            during.append(clicks.count())
        return False

    copy.make(now, "{}", write_a_click)
    assert during == [201, 202, 203]
    assert held_by(copy, "click") == 200
    copy.make(now, "{}")
    assert held_by(copy, "click") == 203


@pytest.mark.parametrize("polls", [0, 1, 2, 5])
def test_cancelled_copy_leaves_no_file_and_keeps_the_last_one(database: Database, now: datetime, polls: int) -> None:
    for number in range(200):
        Clicks(database).add(f"N{number}" + "x" * 8_000, "f", now)
    copy, seen = DatabaseCopy(database.path), []
    copy.make(now, "{}")
    before = copy.path.read_bytes()

    def stopped() -> bool:
        seen.append(1)
        return len(seen) > polls

    with pytest.raises(CopyStopped):
        copy.make(now, '{"other": 1}', stopped)
    assert copy.path.read_bytes() == before
    assert list(database.path.parent.glob("*.part*")) == []


def test_damaged_database_is_named_in_the_error_and_its_last_copy_stays(database: Database, now: datetime) -> None:
    for number in range(300):
        Clicks(database).add(f"N{number}", "f", now)
    copy = DatabaseCopy(database.path)
    copy.make(now, "{}")
    before = copy.path.read_bytes()
    database.close()
    content = bytearray(database.path.read_bytes())
    content[PAGE_BYTES:] = bytes(b ^ 0x5A for b in content[PAGE_BYTES:])
    database.path.write_bytes(content)
    with pytest.raises(StoreDamaged, match=r"device\.sqlite can't be used: it is damaged"):
        copy.make(now, "{}")
    assert copy.path.read_bytes() == before
    assert list(database.path.parent.glob("*.part*")) == []


def test_full_disk_keeps_the_last_copy(database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = DatabaseCopy(database.path)
    copy.make(now, "{}")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(StoreBroken, match="No space left"):
            copy.make(now, '{"other": 1}')
    assert copy.check().limits == "{}"


def test_damaged_copy_is_not_offered_for_restoring(database: Database, now: datetime) -> None:
    copy = DatabaseCopy(database.path)
    with pytest.raises(StoreBroken, match="there is no copy"):
        copy.check()
    copy.make(now, "{}")
    content = bytearray(copy.path.read_bytes())
    content[PAGE_BYTES:] = bytes(len(content) - PAGE_BYTES)
    copy.path.write_bytes(content)
    with pytest.raises(StoreBroken, match="the copy is damaged too"):
        copy.check()


def test_copy_is_overwritten_before_it_is_deleted(database: Database, now: datetime, tmp_path: Path) -> None:
    Clicks(database).add("N-zanzibar", "f1", now)
    copy = DatabaseCopy(database.path)
    copy.make(now, "{}")
    link = tmp_path / "seen-through-a-link"
    link.hardlink_to(copy.path)
    assert b"N-zanzibar" in link.read_bytes()
    copy.drop()
    assert not copy.path.exists()
    assert set(link.read_bytes()) == {0}
    copy.drop()

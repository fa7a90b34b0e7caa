"""Copies of a profile are made daily, without deleted data, with the current choices and limits."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import StoreDamaged
from device_app.pages.local_origin import KEY_NAME
from device_app.privacy.accounting.limits import Limits
from device_app.settings import DeviceSettings, PrivacySettings
from device_app.store.database_copy import DatabaseCopy
from device_app.store.profile import BEGUN_NAME, BESIDE, marks_of
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def device(tmp_path: Path, clock: StillClock) -> Iterator[Device]:
    made = build_device(
        DeviceSettings(data_dir=tmp_path),
        transport=FakeBackend().transport(),
        chance=random.Random(5),
        clock=clock,
    )
    made.sync()
    yield made
    made.close()


def copies(device: Device) -> tuple[DatabaseCopy, DatabaseCopy]:
    first, second = device.parts.copies.copies
    return first, second


def query_copy(copy: DatabaseCopy, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(copy.path)) as connection:
        return connection.execute(sql).fetchall()


def read_something(device: Device) -> str:
    news_id = device.reading.feed().items[0].card.id
    device.reading.open(news_id)
    return news_id


def test_both_databases_are_copied_once_a_day(device: Device, clock: StillClock) -> None:
    read_something(device)
    assert device.copy_step()
    own, searches = copies(device)
    assert (own.path.exists(), searches.path.exists()) == (True, False), "nothing was searched yet"
    clock.go_on(23 * 3_600)
    read_something(device)
    assert not device.copy_step()
    device.library.save_search("axolotl")  # of which there is no copy yet
    assert device.copy_step()
    assert own.mark() is not None
    assert own.mark().at == NOW  # type: ignore[union-attr]
    clock.go_on(3_600)
    assert device.copy_step()
    assert (own.mark().at, searches.mark().at) == (clock(), clock() - timedelta(hours=1))  # type: ignore[union-attr]
    clock.go_on(-7_200)  # the clock was wrong before: a copy of the future is none to keep
    assert device.copy_step()
    assert own.mark().at == clock()  # type: ignore[union-attr]


@pytest.mark.parametrize("action", ["click", "interest", "search", "stance", "all"])
def test_deleted_data_is_in_no_file_of_a_copy(device: Device, action: str) -> None:
    read_something(device)
    device.library.save_search("axolotl")
    device.interests.stance("topic", "axolotls", "follow")
    assert device.copy_step()
    assert all(copy.path.exists() for copy in copies(device))
    if action == "click":
        device.library.delete_click(device.library.history().entries[0].click_id)
    elif action == "interest":
        device.interests.forget(device.interests.clusters()[0].key)
    elif action == "search":
        device.library.delete_search(device.parts.stores.searches.saved()[0].id)
    elif action == "stance":
        device.interests.stance("topic", "axolotls", None)
    else:
        device.privacy.erase()
    assert not any(copy.path.exists() for copy in copies(device))
    assert device.copy_step(), "the next look makes a new one"
    counts = [query_copy(copies(device)[0], "SELECT count(*) FROM click")[0][0]]
    counts += [query_copy(copies(device)[1], f"SELECT count(*) FROM {table}")[0][0] for table in ("search", "stance")]
    assert counts == {
        "click": [0, 1, 1], "interest": [0, 1, 1], "search": [1, 0, 1], "stance": [1, 1, 0], "all": [0, 0, 0],
    }[action]  # fmt: skip


def test_erase_during_a_copy_leaves_no_copy(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    read_something(device)
    given_up = device.parts.copies._given_up
    polls: list[int] = []
    eraser = threading.Thread(target=device.privacy.erase)

    def look() -> bool:
        polls.append(len(polls))
        if len(polls) == 2:  # the first look is before the making, this one between its first steps
            assert list(device.settings.home.glob("device.copy.sqlite.part")) != []
            eraser.start()
            while not given_up():  # until the eraser waits for the copy to be given up
                eraser.join(0.001)
        return given_up()

    monkeypatch.setattr(device.parts.copies, "_given_up", look)
    assert not device.copy_step()
    eraser.join(60)
    assert not eraser.is_alive()
    assert list(device.settings.home.rglob("*.copy*")) == []
    assert device.library.history().total == 0
    assert device.copy_step()


def test_changed_settings_are_in_the_copy_before_they_apply(device: Device) -> None:
    read_something(device)
    assert device.copy_step()
    own = copies(device)[0]
    device.privacy.change(mode="none", epsilon_per_day_reports=30.0, counting=False)
    device.privacy.change(epsilon_per_day_reports=2.0)
    device.pause_training(True)
    choices = dict[object, object](query_copy(own, "SELECT name, value FROM preference"))
    assert json.loads(str(choices["privacy"])) == {"mode": "none", "epsilon_per_day_reports": 2.0, "counting": False}
    assert json.loads(str(choices["training_paused"])) is True
    mark = own.mark()
    assert mark is not None
    assert Limits.read(mark.limits).day["reports"] == 30.0, "the highest since the copy"
    device.interests.mute(device.interests.clusters()[0].key, True)
    assert query_copy(own, "SELECT value FROM preference WHERE name LIKE '%interest%'") != []


def test_limits_raised_in_the_settings_file_are_in_the_copy_at_start(device: Device, clock: StillClock) -> None:
    assert device.copy_step()
    own = copies(device)[0]
    device.close()
    raised = device.settings.model_copy(update={"privacy": PrivacySettings(epsilon_per_day_counts=99.0)})
    build_device(raised, transport=FakeBackend().transport(), clock=clock).close()
    mark = own.mark()
    assert mark is not None
    assert Limits.read(mark.limits).day["counts"] == 99.0


def test_damaged_database_does_not_end_a_loop_and_is_reported_with_the_remedy(device: Device) -> None:
    read_something(device)
    assert device.copy_step()
    own = copies(device)[0]
    before = own.path.read_bytes()
    with closing(sqlite3.connect(device.settings.database)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(device.settings.database.read_bytes())
    content[4_096:] = random.Random(3).randbytes(len(content) - 4_096)
    device.settings.database.write_bytes(content)
    device.parts.copies._clock = lambda: NOW + timedelta(days=2)
    with pytest.raises(StoreDamaged):
        device.copy_step()
    assert own.path.read_bytes() == before
    damaged = device.damage()
    assert damaged is not None
    words = str(damaged)
    assert "device.sqlite can't be used" in words
    assert f"Its last copy is of {NOW:%Y-%m-%d %H:%M} UTC" in words
    assert f"`ownfeed device --profile reader --data-dir {device.settings.data_dir} --restore-copy`" in words


def test_traces_of_use_are_found_in_a_used_profile_and_not_in_a_new_one(device: Device, tmp_path: Path) -> None:
    assert KEY_NAME in BESIDE[device.settings.database.name]
    (tmp_path / "new").mkdir()
    for name in ("device.lock", "device.pid", "device.sqlite.lock", "device.sqlite.part"):
        (tmp_path / "new" / name).touch()
    assert marks_of(tmp_path / "new" / "device.sqlite") == []
    assert marks_of(tmp_path / "missing" / "device.sqlite") == []
    assert BEGUN_NAME in {path.name for path in marks_of(device.settings.database)}

"""A profile whose database is lost, emptied or damaged.

The start reports the damage and how to repair it.
"""

from __future__ import annotations

import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import NothingDamaged, StoreBroken, StoreDamaged
from device_app.fleet.fleet import Fleet
from device_app.pages.local_origin import PageKey
from device_app.restoring import restore_copies, start_anew
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.kills import Killed
from tests.doubles.new_page import new_page
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter

PAGE_BYTES = 4_096
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[PAGE_BYTES:] = random.Random(2).randbytes(len(content) - PAGE_BYTES)
    path.write_bytes(content)


def of_something_else(path: Path) -> None:
    path.write_bytes(b"")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "lost": (Path.unlink, "it is missing, and was there before"),
    "emptied": (emptied, "the file is there and is empty"),
    "damaged": (damaged, "damaged|malformed|not a database"),
    "another's": (of_something_else, "contains no Ownfeed data"),
}


class KeptProfile:
    """One reader's profile, opened and closed as often as a test needs."""

    def __init__(self, folder: Path, backend: FakeBackend) -> None:
        self.settings = DeviceSettings(profile="anna", data_dir=folder)
        self.home, self.clock, self.backend = self.settings.home, StillClock(NOW), backend
        self.read: list[str] = []

    def open(self) -> Device:
        if self.settings.database.exists():
            PageKey.of_profile(self.home, self.settings.port)
        return build_device(self.settings, transport=self.backend.transport(), clock=self.clock)

    def read_and_copy(self) -> None:
        """Read for a day, with a report, a search, and copies of both databases."""
        device = self.open()
        device.sync()
        for item in device.reading.feed().items[:5]:
            self.clock.go_on(60)
            device.reading.open(item.card.id)
            self.read.append(item.card.id)
        device.library.save_search("axolotl")
        new_page(device)
        assert device.parts.ledger.total("reports") > 0
        assert device.copy_step()
        device.close()


@pytest.fixture
def profile(tmp_path: Path) -> KeptProfile:
    return KeptProfile(tmp_path, FakeBackend())


@pytest.mark.parametrize("way", WAYS)
def test_lost_or_damaged_database_is_refused_and_restored_from_the_copy(profile: KeptProfile, way: str) -> None:
    profile.read_and_copy()
    destroy, words = WAYS[way]
    destroy(profile.settings.database)
    left = profile.settings.database.read_bytes() if profile.settings.database.exists() else None
    profile.clock.go_on(2 * 24 * 3_600)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=words) as refused:
            create_app(profile.settings)
    said = str(refused.value)
    assert f"{profile.settings.database} can't be used" in said
    assert f"Its last copy is of {NOW + timedelta(minutes=5):%Y-%m-%d %H:%M} UTC" in said
    assert "--profile anna" in said
    assert said.count("\n") == 0

    (replaced,) = restore_copies(profile.settings, profile.clock())
    assert re.search(words, replaced.why)
    if left is None:
        assert replaced.aside is None
    else:
        assert replaced.aside is not None
        assert replaced.aside.read_bytes() == left, "the damaged file is kept as it was"
    device = profile.open()
    assert {entry.news_id for entry in device.library.history().entries} == set(profile.read)
    assert [saved.words for saved in device.parts.stores.searches.saved()] == ["axolotl"]
    ledger = device.parts.ledger
    assert (ledger.left("reports"), ledger.left("counts"), ledger.total("reports")) == (0, 0, 24)
    assert ledger.alone().today(1e-6) == pytest.approx(48)
    profile.clock.go_on(24 * 3_600)
    assert ledger.left("reports") == 8
    assert len(new_page(device).items) == 30
    assert device.copy_step()
    device.close()
    profile.open().close()


@pytest.mark.parametrize("way", WAYS)
def test_without_a_copy_only_the_reader_can_start_over(profile: KeptProfile, way: str) -> None:
    device = profile.open()
    device.close()
    destroy, _ = WAYS[way]
    destroy(profile.settings.database)
    with pytest.raises(StoreDamaged, match=r"There is no copy of it.*--start-anew") as refused:
        profile.open()
    assert "--restore-copy" not in str(refused.value)
    with pytest.raises(StoreBroken, match="there is no copy"):
        restore_copies(profile.settings, NOW)
    (replaced,) = start_anew(profile.settings, NOW)
    assert (replaced.copied_at, replaced.aside is None) == (None, way == "lost")
    profile.open().close()
    assert start_anew(profile.settings, NOW) == ()


def test_searches_are_restored_automatically_without_charges(profile: KeptProfile) -> None:
    profile.read_and_copy()
    searches = profile.home / "views" / "searches.sqlite"
    for destroy in (emptied, damaged, Path.unlink):
        destroy(searches)
        with pytest.raises(StoreDamaged, match=r"searches\.sqlite can't be used.*--restore-copy"):
            create_app(profile.settings)
        (replaced,) = restore_copies(profile.settings, profile.clock())
        assert replaced.database == searches
        device = profile.open()
        assert [saved.words for saved in device.parts.stores.searches.saved()] == ["axolotl"]
        assert "copied" not in device.privacy.export()["views"]["searches"]
        assert device.parts.ledger.total("reports") < 8
        device.close()


def test_undamaged_database_is_not_replaced(profile: KeptProfile) -> None:
    profile.read_and_copy()
    before = profile.settings.database.read_bytes()
    with pytest.raises(NothingDamaged, match="no copy was restored"):
        restore_copies(profile.settings, profile.clock())
    assert start_anew(profile.settings, profile.clock()) == ()
    assert profile.settings.database.read_bytes() == before
    with pytest.raises(NothingDamaged):
        restore_copies(DeviceSettings(profile="new", data_dir=profile.settings.data_dir), NOW)
    build_device(DeviceSettings(profile="new", data_dir=profile.settings.data_dir)).close()


def test_copy_is_not_restored_while_the_clock_is_before_its_creation(profile: KeptProfile) -> None:
    profile.read_and_copy()
    emptied(profile.settings.database)
    with pytest.raises(StoreBroken, match="set the clock first"):
        restore_copies(profile.settings, NOW - timedelta(days=1))
    assert profile.settings.database.stat().st_size == 0


def test_log_of_a_damaged_database_is_not_applied_to_the_copy(profile: KeptProfile) -> None:
    profile.read_and_copy()
    device = profile.open()
    device.interests.choose_sections(("section6",))
    log = profile.settings.database.with_name("device.sqlite-wal")
    content = log.read_bytes()
    assert content
    device.close()
    damaged(profile.settings.database)
    log.write_bytes(content)
    (replaced,) = restore_copies(profile.settings, profile.clock())
    assert replaced.aside is not None
    device = profile.open()
    assert device.status().chosen_sections is None
    assert {entry.news_id for entry in device.library.history().entries} == set(profile.read)
    device.close()


def test_copy_restored_by_hand_is_charged_too(profile: KeptProfile) -> None:
    profile.read_and_copy()
    (profile.home / "device.copy.sqlite").replace(profile.settings.database)
    device = profile.open()
    assert device.parts.ledger.left("reports") == 0
    device.close()


def test_erased_profile_holds_no_trace_of_reading(profile: KeptProfile) -> None:
    profile.read_and_copy()
    damaged(profile.settings.database)
    restore_copies(profile.settings, profile.clock())
    emptied(profile.settings.database)
    restore_copies(profile.settings, profile.clock())
    (profile.home / "device.copy.sqlite.part").write_bytes(profile.read[0].encode())  # left by a kill
    device = profile.open()
    assert device.library.history().total == 5

    assert {"device.copy.sqlite", "searches.copy.sqlite"} <= knows(profile).keys()
    assert list(profile.home.glob("*.damaged-*")) != []
    device.privacy.erase()
    assert knows(profile) == {}
    assert list(profile.home.rglob("*.damaged-*")) == []
    assert list(profile.home.rglob("*.copy*")) == []
    device.close()
    profile.open().close()  # erasing leaves a profile that starts without questions


def knows(profile: KeptProfile) -> dict[str, list[str]]:
    """Return which data about the reader each file of the profile contains."""
    files = [path for path in profile.home.rglob("*") if path.is_file() and path.parent.name != "blobs"]
    words = [*profile.read, "axolotl"]
    found = {path.name: [word for word in words if word.encode() in path.read_bytes()] for path in files}
    return {name: words for name, words in found.items() if words}


def killed_while_restoring(profile: KeptProfile, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Damage and restore both databases, killing the process before each is replaced; then restore them.

    Returns the names of the files that are left over.
    """

    def killed(*_: object) -> None:
        raise Killed

    databases = (profile.settings.database, profile.home / "views" / "searches.sqlite")
    for database in databases:
        whole = database.read_bytes()
        damaged(database)
        with monkeypatch.context() as patch:
            patch.setattr("device_app.restoring._move_aside", killed)
            with pytest.raises(Killed):
                restore_copies(profile.settings, profile.clock())
        database.write_bytes(whole)
    return {path.name for path in profile.home.rglob("*.part*")}


def test_leftovers_of_a_killed_restore_are_removed_at_the_next_start(
    profile: KeptProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile.read_and_copy()
    left = killed_while_restoring(profile, monkeypatch)
    assert {"device.sqlite.part", "searches.sqlite.part"} <= left
    assert left & knows(profile).keys(), "it holds what was read"
    profile.open().close()
    assert list(profile.home.rglob("*.part*")) == []


def test_leftovers_of_a_killed_restore_are_removed_at_the_next_deletion(
    profile: KeptProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile.read_and_copy()
    killed_while_restoring(profile, monkeypatch)
    parts = {path: path.read_bytes() for path in profile.home.rglob("*.part*")}
    device = profile.open()
    newest = device.library.history().entries[0].click_id
    for delete in (lambda: device.library.delete_click(newest), device.privacy.erase):
        for path, content in parts.items():  # as if the kill had come since
            path.write_bytes(content)
        delete()
        assert list(profile.home.rglob("*.part*")) == []
    assert knows(profile) == {}
    device.close()


def test_fleet_refuses_a_reader_whose_database_is_missing(tmp_path: Path) -> None:
    settings = DeviceSettings(data_dir=tmp_path)
    fleet = Fleet(settings, 2, seed=1)
    path = fleet.members[1].device.settings.database
    fleet.close()
    path.unlink()
    with pytest.raises(StoreDamaged, match="it is missing, and was there before"):
        Fleet(settings, 2, seed=1)
    assert not path.exists()


@pytest.mark.parametrize("seed", range(6))
def test_every_page_reports_pages_damaged_while_running(profile: KeptProfile, seed: int) -> None:
    """Oracle: no traceback, and only StoreDamaged or an answer; the message says how to recover."""
    profile.read_and_copy()
    device = profile.open()
    app = create_app(device=device)
    reader = TestClient(app, base_url=HOME, headers=FOLLOWS_A_LINK)
    enter(reader, app.state.page_key)
    device.parts.stores.database.row("PRAGMA wal_checkpoint(TRUNCATE)")
    content, rng = bytearray(profile.settings.database.read_bytes()), random.Random(seed)
    for start in range(PAGE_BYTES, len(content), PAGE_BYTES):
        if rng.random() < 0.7:
            content[start : start + PAGE_BYTES] = rng.randbytes(PAGE_BYTES) if seed % 2 else bytes(PAGE_BYTES)
    profile.settings.database.write_bytes(content)
    paths = (
        "/",
        "/explore",
        "/privacy",
        "/interests",
        "/interests/history",
        "/training",
        "/search?q=a",
        "/privacy/export",
    )
    answers = [reader.get(path, follow_redirects=False) for path in paths]
    assert {answer.status_code for answer in answers} <= {200, 303, 307, 503}
    broken = [answer.text for answer in answers if answer.status_code == 503]
    assert broken
    assert any("--restore-copy" in text for text in broken)
    device.close()


def command(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ownfeed", "device", "--profile", "anna", "--data-dir", str(folder), *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_command_names_the_damage_and_the_remedy_in_one_line(profile: KeptProfile) -> None:
    profile.clock.now = datetime.now(UTC)
    profile.read_and_copy()
    damaged(profile.settings.database)
    refused = command(profile.settings.data_dir, "--port", "0")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "Traceback" not in refused.stderr
    assert f"`ownfeed device --profile anna --data-dir {profile.settings.data_dir} --restore-copy`" in refused.stderr
    both = command(profile.settings.data_dir, "--restore-copy", "--start-anew")
    assert both.returncode == 2
    damaged(profile.home / "device.copy.sqlite")
    neither = command(profile.settings.data_dir, "--restore-copy", "--port", "0")
    assert neither.returncode == 1
    assert "the copy is damaged too" in neither.stderr
    assert "Traceback" not in neither.stderr

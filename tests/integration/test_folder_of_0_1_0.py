"""Folders that version 0.1.0 wrote, opened by this version as the operator's guide has it.

Oracle: what was read from them with sqlite3 alone, by `data/ownfeed-0.1.0.json`; they were made by commit 027a327 with
three readers' worth of reading and two rounds.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backend.db.engine import migrate, open_engine, reading
from backend.releases.publish import roll_back
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from device_app.composition import build_device
from device_app.device import Device
from device_app.settings import PrivacySettings
from tests.doubles.clock import StillClock
from tests.doubles.small_world import SmallWorld
from tests.integration.test_operating import GuidedOperator

DATA = Path(__file__).with_name("data")
WRITTEN = datetime(2026, 11, 22, 17, tzinfo=UTC)
A_LIFETIME_DAYS = 3_650.0
CALLED_SINCE = {"uni_fedrec": "uni_fedrec_as_printed"}
"""Systems by their name then."""


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "ownfeed-0.1.0.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of 0.1.0 after the guide's steps before the upgrade; the copy that these have made beside them."""
    home = tmp_path_factory.mktemp("before-the-upgrade")
    with tarfile.open(DATA / "ownfeed-0.1.0.tar.xz") as archive:
        archive.extractall(home, filter="data")
    (home / "backup").mkdir()
    GuidedOperator(home / "backend", home / "backup").does("Upgrades")
    return home


@pytest.fixture
def old(backed_up: Path, tmp_path: Path) -> Iterator[SmallWorld]:
    shutil.copytree(backed_up, tmp_path, dirs_exist_ok=True)
    settings = BackendSettings(
        data_dir=tmp_path / "backend", round_tick_sec=0.05, pool_poll_sec=0.2, news_lifetime_days=A_LIFETIME_DAYS
    )
    world = SmallWorld(tmp_path, settings)
    with world.backend():
        yield world
    for device in world.devices:
        device.close()


def reopened(world: SmallWorld, at: datetime = WRITTEN) -> Device:
    settings = world.device_settings("reader-0", privacy=PrivacySettings(mode="code"))
    device = build_device(settings, clock=StillClock(at))
    world.devices.append(device)
    return device


def test_the_backend_keeps_its_news_releases_rounds_and_key(old: SmallWorld, expected: dict[str, Any]) -> None:
    services = old.services
    assert services is not None
    with reading(services.engine) as connection:
        rounds = connection.exec_driver_sql("SELECT number, system, state FROM rounds ORDER BY number").all()
        releases = connection.exec_driver_sql("SELECT number, signature FROM releases ORDER BY number").all()
    assert [list(row) for row in rounds] == [
        [number, CALLED_SINCE.get(system, system), state] for number, system, state in expected["rounds"]
    ]
    assert [[number, bytes(signature).hex()] for number, signature in releases] == expected["releases"]
    assert services.pool.counts().news == expected["news"]
    assert services.releases.require_current().release == f"r{len(releases)}"


def test_the_device_keeps_clicks_ledger_reactions_and_log_and_reads_a_feed(
    old: SmallWorld, expected: dict[str, Any]
) -> None:
    device = reopened(old)
    stores = device.parts.stores
    entries = stores.ledger_entries.entries().rows
    found = [[each.channel, each.mechanism, each.epsilon, each.delta, each.payload_sha256] for each in entries]
    assert found[::-1] == expected["charges"]
    assert [each.card and each.card.id for each in device.history().entries][::-1] == expected["clicks"]
    assert device.reactions() == {news_id: frozenset({kind}) for news_id, kind in expected["reactions"]}
    kept = {line.url: line for line in stores.byte_log.entries().rows}
    assert {url for _, url, _ in expected["traffic"]} <= set(kept)

    device.sync()
    feed = device.feed(refresh=True)
    assert feed.mode == "personal"
    assert len(feed.items) == 30
    spent = [each for each in stores.ledger_entries.entries().rows if each.channel == "reports"]
    assert len(spent) == 1, "the report that was paid for is sent again and not charged anew"
    sent = [one.body for one in old.requests() if one.path == "/v1/recall"]
    assert json.loads(sent[-1])["report"] == json.loads(bytes.fromhex(expected["report"]))["report"]


def test_the_backup_before_the_upgrade_can_be_put_back_and_upgraded_again(
    backed_up: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    operator = GuidedOperator(tmp_path / "elsewhere", backed_up / "backup")
    operator.does("Put a backup back")
    settings = BackendSettings(data_dir=operator.data, news_lifetime_days=A_LIFETIME_DAYS)
    engine = open_engine(settings.database_url)
    migrate(engine)
    store = ReleaseStore.open(engine, settings)
    engine.dispose()
    assert store.require_current().release == f"r{len(expected['releases'])}"


def test_a_release_of_this_version_follows_those_of_0_1_0(old: SmallWorld) -> None:
    assert old.services is not None
    device = reopened(old, datetime.now(UTC))  # today's release is too far ahead of that day's clock
    device.sync()
    before = device.release()
    assert before is not None
    store = old.services.releases
    after = roll_back(store, "r1")
    device.sync()
    now = device.release()
    assert now is not None
    assert (before.manifest.release, now.manifest.release) == ("r3", after.release)


def test_nothing_of_the_old_folders_is_read_but_by_sqlite(expected: dict[str, Any], tmp_path: Path) -> None:
    """The oracle stands on its own: the archive holds what the expectations say."""
    with tarfile.open(DATA / "ownfeed-0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    device = sqlite3.connect(tmp_path / "devices" / "reader-0" / "device.sqlite")
    assert [row[0] for row in device.execute("SELECT news_id FROM click ORDER BY id")] == expected["clicks"]
    device.close()

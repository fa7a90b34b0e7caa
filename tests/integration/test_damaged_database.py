"""The device's database with overwritten pages, or a flipped bit in a row, which SQLite doesn't detect.

The device reports what is broken, at the start and on its pages, and requests again what the backend can provide.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.errors import StoreBroken, StoreDamaged
from device_app.restoring import restore_copies
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW
from tests.doubles.pages_reader import FOLLOWS_A_LINK, HOME, enter

PAGE_BYTES = 4_096
OWN = {
    "release.manifest": "the release in use",
    "preference.value": "a setting",
    "charge.parameters": "what was spent",
    "report_memo.clear": "the report in use",
}
GIVEN_AGAIN = ("front.news_ids", "news.card", "picture_list.listing", "timing.device_ms")


def damaged(settings: DeviceSettings, seed: int) -> None:
    """Overwrite half of the pages after the first with random bytes."""
    content, rng = bytearray(settings.database.read_bytes()), random.Random(seed)
    for start in range(PAGE_BYTES, len(content), PAGE_BYTES):
        if rng.random() < 0.5:
            content[start : start + PAGE_BYTES] = rng.randbytes(PAGE_BYTES)
    settings.database.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_reported_at_start_and_on_every_page(tmp_path: Path, seed: int) -> None:
    settings = DeviceSettings(data_dir=tmp_path)
    device = build_device(settings, transport=FakeBackend().transport())
    device.sync()
    device.reading.open(device.reading.feed().items[0].card.id)
    device.close()
    served = build_device(settings, transport=FakeBackend().transport())
    app = create_app(device=served)
    reader = TestClient(app, base_url=HOME, headers=FOLLOWS_A_LINK)
    enter(reader, app.state.page_key)
    damaged(settings, seed)
    answers = {path: reader.get(path) for path in ("/explore", "/privacy", "/interests/history", "/privacy/export")}
    assert {answer.status_code for answer in answers.values()} <= {200, 503}
    assert any("malformed" in answer.text for answer in answers.values())
    served.close()
    with pytest.raises(StoreBroken, match=r"device\.sqlite can.t be used"):
        create_app(settings)
    with pytest.raises(StoreBroken, match=r"device\.sqlite can.t be used"):
        create_app(settings)


def bit_flipped(path: Path, column: str) -> None:
    """Flip a bit in every row: a digit of a manifest, or the opening bracket of anything else."""
    table, name = column.split(".")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        kinds = database.execute(f"SELECT DISTINCT CAST({name} AS TEXT), typeof({name}) FROM {table}").fetchall()
        assert kinds, f"{column} holds nothing"
        for whole, kind in kinds:
            at = whole.index("1") if table == "release" else 0
            flipped = whole[:at] + chr(ord(whole[at]) ^ 2) + whole[at + 1 :]
            change = f"UPDATE {table} SET {name} = CAST(? AS {kind}) WHERE {name} = CAST(? AS {kind})"
            database.execute(change, (flipped, whole))


def used(settings: DeviceSettings, backend: FakeBackend) -> None:
    """A device that has synced, reported, read, been configured and been copied."""
    device = build_device(settings, transport=backend.transport(), clock=lambda: NOW)
    device.sync()
    for item in device.reading.feed().items[:5]:
        device.reading.open(item.card.id)
    new_page(device)
    device.privacy.change(epsilon_per_day_training=7.0)
    device.copy_step()
    device.close()


@pytest.mark.parametrize("column", OWN)
def test_bit_flip_in_private_data_is_reported_and_restored_from_the_copy(tmp_path: Path, column: str) -> None:
    settings = DeviceSettings(data_dir=tmp_path)
    backend = FakeBackend()
    used(settings, backend)
    device = build_device(settings, transport=backend.transport(), clock=lambda: NOW + timedelta(days=2))
    bit_flipped(settings.database, column)
    with pytest.raises(StoreDamaged, match=OWN[column]):
        device.copy_step()
    device.close()
    with pytest.raises(StoreDamaged, match=rf"{OWN[column]} can't be read\).*--restore-copy"):
        create_app(settings)
    (replaced,) = restore_copies(settings, NOW + timedelta(days=2))
    assert OWN[column] in replaced.why
    create_app(settings).state.device.close()


@pytest.mark.parametrize("column", GIVEN_AGAIN)
def test_bit_flip_in_downloadable_data_does_not_stop_the_device(tmp_path: Path, column: str) -> None:
    settings = DeviceSettings(data_dir=tmp_path)
    backend = FakeBackend()
    used(settings, backend)
    bit_flipped(settings.database, column)
    device = build_device(settings, transport=backend.transport(), clock=lambda: NOW)
    assert device.damage() is None
    device.reading.explore()
    device.sync()
    assert len(new_page(device).items) > 10
    assert device.reading.explore()
    device.close()

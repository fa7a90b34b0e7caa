"""A door over a real byte log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from device_app.store.byte_log import ByteLog
from device_app.store.database import Database

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "device.sqlite"
    Database(path).close()
    return path


@pytest.fixture
def database(tmp_path: Path, migrated: Path) -> Iterator[Database]:
    opened = Database(Path(shutil.copy(migrated, tmp_path / "device.sqlite")))
    yield opened
    opened.close()


@pytest.fixture
def log(database: Database) -> ByteLog:
    return ByteLog(database)


@pytest.fixture
def now() -> datetime:
    return NOW

"""A device's empty store in a real file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_app.store.database import Database


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty store to copy: running the migrations takes longer than most tests."""
    path = tmp_path_factory.mktemp("migrated") / "device.sqlite"
    Database(path).close()
    return path


@pytest.fixture
def database(tmp_path: Path, migrated: Path) -> Iterator[Database]:
    opened = Database(Path(shutil.copy(migrated, tmp_path / "device.sqlite")))
    yield opened
    opened.close()

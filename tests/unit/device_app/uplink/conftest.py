"""An HTTP client over a real request log."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from device_app.store.byte_log import ByteLog
from device_app.store.database import Database

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def log(database: Database) -> ByteLog:
    return ByteLog(database)


@pytest.fixture
def now() -> datetime:
    return NOW

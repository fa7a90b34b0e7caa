"""A coordinator over a real database and a small release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doubles.plain_rounds import PlainRoundRig
from tests.doubles.small_release import migrated_engine, small_store


@pytest.fixture
def rig(tmp_path: Path) -> PlainRoundRig:
    engine = migrated_engine(tmp_path)
    return PlainRoundRig(tmp_path, engine, small_store(engine, tmp_path))

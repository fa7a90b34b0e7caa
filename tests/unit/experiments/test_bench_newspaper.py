"""The newspaper that benches share and copy. Oracle: SQLite itself, in a process that opens the database last."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import platformdirs
import pytest

import experiments.bench.newspaper
from backend.db.engine import is_open_here
from backend.settings import BackendSettings
from experiments.bench.newspaper import prepared_newspaper
from tests.unit.backend.news.test_newspaper import evenly

LOOKS = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM news').fetchall()"
WRITES_AND_DIES = (
    "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('CREATE TABLE kept (value)'); os._exit(0)"
)
"""As a server that is killed: what it has committed lies in the log."""


@pytest.fixture
def servable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record whether the database was open each time the rest of the folder was made."""
    found: list[bool] = []

    def made(settings: BackendSettings, *_: object, **__: object) -> None:
        found.append(is_open_here(settings.data_dir / "ownfeed.sqlite"))

    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(experiments.bench.newspaper, "make_servable", made)
    monkeypatch.setattr("backend.news.sources.newspaper.newspaper", evenly)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_copying_the_prepared_newspaper_loses_no_concurrent_writes(servable: list[bool], tmp_path: Path) -> None:
    """Regression: its own connections, left to garbage collection, lost their locks by the copying.

    When they were collected they took themselves for the last, and deleted a log that they had never seen.
    """
    gc.disable()  # or the collector might come first
    try:
        folder = prepared_newspaper(articles=60).data_dir
        shutil.copytree(folder, tmp_path / "copy")
        for program in (LOOKS, WRITES_AND_DIES):
            subprocess.run([sys.executable, "-c", program, folder / "ownfeed.sqlite"], check=True, timeout=60)
    finally:
        gc.enable()
    gc.collect()
    with closing(sqlite3.connect(folder / "ownfeed.sqlite")) as looked_at:
        assert looked_at.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert servable == [False]

"""Migrated databases for tests that are about something else: the migrations of a new one run once a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine, text

from backend.db.engine import migrate, open_engine


def migrated(url: str) -> Engine:
    """The engine of a database at the newest revision; a new one of SQLite is a copy of the first of this process."""
    engine = open_engine(url)
    new = Path(engine.url.database or "") if engine.dialect.name == "sqlite" else None
    if new is None or new.exists():
        migrate(engine)
    else:
        new.write_bytes(_new())
    return engine


@cache
def _new() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "new.sqlite"
        engine = open_engine(f"sqlite:///{path}")
        migrate(engine)
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
        engine.dispose()
        return path.read_bytes()

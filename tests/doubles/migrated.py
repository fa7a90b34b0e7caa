"""Migrated databases for tests of other things.

The migrations of a new database run once per process.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from backend.db.engine import migrate, open_engine, scripts


def migrated(url: str) -> Engine:
    """Return an engine of a database at the newest revision.

    A new SQLite database is a copy of this process's first.
    """
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


def to_revision(connection: Connection, revision: str, *, back: bool = False) -> None:
    """Bring a database to the schema of an earlier version: from nothing, or back from a newer one."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    (command.downgrade if back else command.upgrade)(config, revision)

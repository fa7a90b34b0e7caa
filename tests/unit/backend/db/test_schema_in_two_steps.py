"""Old and new servers on one database: what a migration may do from `READ_SINCE` on.

Oracle: rows with an earlier schema's columns alone, written into the newest schema and read back, on both engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Boolean,
    Connection,
    DateTime,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    insert,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import JSON, TypeEngine

from backend.db.engine import migrate, open_engine, scripts, writing
from backend.db.schema_readers import READ_SINCE
from tests.doubles.migrated import to_revision

VERSIONS = "alembic_version"
CHECKED = {"state": "open", "stage": "keys"}
"""Columns whose words the database checks."""


def earlier() -> list[str]:
    """Revisions whose versions run on the newest schema, oldest first."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    found = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions(READ_SINCE, "heads")]
    return found[::-1]


@pytest.fixture
def empty(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def value(kind: TypeEngine[Any], number: int) -> Any:
    """Something that such a column takes."""
    for of, made in (
        (Boolean, True),
        (Integer, number),
        (Float, 0.5),
        (DateTime, datetime(2026, 11, 26, tzinfo=UTC)),
        (LargeBinary, b"bytes"),
        (JSON, {"a": 1}),
    ):
        if isinstance(kind, of):
            return made
    return f"text {number}"


def refused(connection: Connection, before: MetaData) -> list[str]:
    """Tables into which an earlier version can't write any more, or doesn't find what it wrote."""
    found = []
    for table in before.sorted_tables:
        if table.name == VERSIONS:
            continue
        row = {column.name: value(column.type, 1) for column in table.columns}
        row |= {name: word for name, word in CHECKED.items() if name in row}
        try:
            with connection.begin_nested():
                connection.execute(table.delete())
                connection.execute(insert(table).values(row))
                count = len(connection.execute(select(table)).all())
        except DBAPIError:
            count = 0
        if not count:
            found.append(table.name)
    return found


def without_keys(connection: Connection) -> None:
    """Rows need no others here; SQLite has to be told before a transaction, where its fixture begins one."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET session_replication_role = replica"))
    else:
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))


class Undone(Exception):
    """Nothing of a try is kept."""


def complaints(engine: Engine, before: MetaData) -> list[str]:
    found: list[str] = []
    try:
        with writing(engine) as connection:
            without_keys(connection)
            found = refused(connection, before)
            raise Undone
    except Undone:
        return found


def schema(engine: Engine) -> MetaData:
    found = MetaData()
    found.reflect(engine)
    return found


@pytest.mark.parametrize("revision", earlier())
def test_what_an_earlier_version_writes_the_newest_schema_takes(empty: Engine, revision: str) -> None:
    with writing(empty) as connection:
        to_revision(connection, revision)
    before = schema(empty)
    assert len(before.tables) > 20
    migrate(empty)
    assert complaints(empty, before) == []


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE timetable RENAME TO schedule",
        "ALTER TABLE feeds RENAME COLUMN url TO address",
        "ALTER TABLE lost_releases DROP COLUMN published_at",
        "DROP TABLE news_counts",
    ],
)
def test_what_takes_something_from_an_earlier_version_is_noticed(empty: Engine, change: str) -> None:
    migrate(empty)
    before = schema(empty)
    with writing(empty) as connection:
        connection.execute(text(change))
    assert len(complaints(empty, before)) == 1


def test_an_earlier_version_starts_on_a_database_that_a_newer_one_has_added_to(empty: Engine) -> None:
    own = migrate(empty)
    with writing(empty) as connection:
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = 'add_time_travel'"))
        connection.execute(text("INSERT INTO schema_readers VALUES ('add_time_travel')"))
    assert own == earlier()[-1]
    assert migrate(empty) == "add_time_travel", "left as it is"

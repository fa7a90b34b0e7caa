"""Direct access to SQLite's driver. Oracle: the same statements through SQLAlchemy's connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from backend.db.engine import DatabaseUnreachable, open_engine, reading, writing
from backend.db.statements import ask_sqlite

INSERT = "INSERT INTO numbers VALUES (?, ?)"


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'numbers.sqlite'}"
    with writing(open_engine(url)) as connection:
        ask_sqlite(connection, "CREATE TABLE numbers (number INTEGER PRIMARY KEY, name TEXT)")
        for number in range(3):
            assert ask_sqlite(connection, INSERT, (number, f"n{number}")).rowcount == 1
    return url


def test_direct_driver_returns_the_same_rows_columns_and_counts_as_the_connection(url: str) -> None:
    asked = "SELECT number, name FROM numbers WHERE number >= ? ORDER BY number"
    with writing(open_engine(url)) as connection:
        for least in (1, 9):
            mine, theirs = ask_sqlite(connection, asked, (least,)), connection.exec_driver_sql(asked, (least,))
            assert list(mine.columns) == list(theirs.keys())
            assert mine.rows == [tuple(row) for row in theirs]
            assert mine.first() == (mine.rows[0] if mine.rows else None)
            assert mine.scalars() == [row[0] for row in mine.rows]
        assert ask_sqlite(connection, "UPDATE numbers SET name = 'x' WHERE number > 0").rowcount == 2
        assert ask_sqlite(connection, asked, (9,)).scalar() is None


def test_direct_writes_are_rolled_back_with_the_transaction(url: str) -> None:
    engine = open_engine(url)

    def undone() -> None:
        with writing(engine) as connection:
            ask_sqlite(connection, INSERT, (7, "seven"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        undone()
    with reading(engine) as connection:
        assert ask_sqlite(connection, "SELECT count(*) FROM numbers").scalar() == 3


@pytest.mark.parametrize(("text", "given"), [(INSERT, (1, "again")), ("SELECT * FROM nothing", ()), (INSERT, (1,))])
def test_direct_driver_raises_the_same_errors_as_the_connection(url: str, text: str, given: tuple[object, ...]) -> None:
    with writing(open_engine(url)) as connection:
        with pytest.raises(DBAPIError) as mine:
            ask_sqlite(connection, text, given)
        with pytest.raises(DBAPIError) as theirs:
            connection.exec_driver_sql(text, given)
        assert type(mine.value) is type(theirs.value)
        assert str(mine.value.orig) == str(theirs.value.orig)


def test_writer_that_waits_too_long_for_the_lock_reports_the_database_unreachable(url: str) -> None:
    """Fails if BEGIN's own error is raised as the driver's."""
    one, other = open_engine(url), open_engine(url)
    with reading(other) as connection:
        ask_sqlite(connection, "PRAGMA busy_timeout = 1")
    with writing(one), pytest.raises(DatabaseUnreachable), writing(other):
        pass

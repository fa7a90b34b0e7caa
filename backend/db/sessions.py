"""ORM sessions inside one transaction of `engine.reading` or `engine.writing`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db.engine import reading, writing


@contextmanager
def reading_session(engine: Engine) -> Iterator[Session]:
    """A session whose reads are all of one moment."""
    with reading(engine) as connection, Session(connection) as session:
        yield session


@contextmanager
def writing_session(engine: Engine) -> Iterator[Session]:
    """A session that is the only writer on SQLite: committed whole at the end, or rolled back whole."""
    with writing(engine) as connection, Session(connection) as session:
        yield session
        session.flush()

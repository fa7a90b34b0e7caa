"""Locks for work that only one of several processes may do at a time.

A lock is released when its process ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import sleep

from filelock import FileLock, Timeout
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from backend.db.engine import connected, translated_driver_errors

ASK_AGAIN_SEC = 0.2
_KEY = "hashtextextended(:work, 0)"


@contextmanager
def advisory_lock(engine: Engine, work: str) -> Iterator[bool]:
    """Yield whether this thread holds the lock during the block.

    False at once if another thread or process has it.

    PostgreSQL keeps an advisory lock with the connection; for SQLite it is a locked file beside the database. Raises
    DatabaseUnreachable. If PostgreSQL restarts, the holder loses the lock without notice.
    """
    if engine.dialect.name == "postgresql":
        with connected(engine).execution_options(isolation_level="AUTOCOMMIT") as connection:
            with translated_driver_errors(engine):
                mine = bool(connection.scalar(text(f"SELECT pg_try_advisory_lock({_KEY})"), {"work": work}))
            try:
                yield mine
            finally:
                if mine:
                    with suppress(DBAPIError):  # the lock was released with its connection
                        connection.execute(text(f"SELECT pg_advisory_unlock({_KEY})"), {"work": work})
        return
    lock = FileLock(f"{engine.url.database}.{work}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def awaited_lock(engine: Engine, work: str) -> Iterator[None]:
    """Hold the same lock during the block after waiting for it: for threads that serve no request meanwhile."""
    while True:
        with advisory_lock(engine, work) as mine:
            if mine:
                yield
                return
        sleep(ASK_AGAIN_SEC)


def wait_for_lock(session: Session, work: str) -> None:
    """Wait until no other open transaction has taken this lock. SQLite's writers queue anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SELECT pg_advisory_xact_lock({_KEY})"), {"work": work})

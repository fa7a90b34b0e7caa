"""Work that only one of several processes may do at a time; it comes free when its process ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import sleep

from filelock import FileLock, Timeout
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from backend.db.engine import connected, told_of_absence

ASK_AGAIN_SEC = 0.2
_KEY = "hashtextextended(:work, 0)"


@contextmanager
def advisory_lock(engine: Engine, work: str) -> Iterator[bool]:
    """Whether the work is this thread's while the block runs; False at once if it's another's, here or elsewhere.

    PostgreSQL keeps an advisory lock with the connection; beside an SQLite file lies a locked one. Raises
    DatabaseUnreachable. Whoever has the lock of a PostgreSQL that is restarted has lost it, and isn't told.
    """
    if engine.dialect.name == "postgresql":
        with connected(engine).execution_options(isolation_level="AUTOCOMMIT") as connection:
            with told_of_absence(engine):
                mine = bool(connection.scalar(text(f"SELECT pg_try_advisory_lock({_KEY})"), {"work": work}))
            try:
                yield mine
            finally:
                if mine:
                    with suppress(DBAPIError):  # the lock has gone with its connection then
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
    """The same, waited for as long as it is another's: for threads that serve nobody meanwhile."""
    while True:
        with advisory_lock(engine, work) as mine:
            if mine:
                yield
                return
        sleep(ASK_AGAIN_SEC)


def wait_for_lock(session: Session, work: str) -> None:
    """Wait until no other transaction that has queued for this work is open. SQLite's writers do so anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SELECT pg_advisory_xact_lock({_KEY})"), {"work": work})

"""Fixtures that several packages' tests share.

Databases of both engines, and the research data beside the checkout.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

# The workers of a run share the cores: threads that spin while they wait slow the other worker. A test that needs
# more than one thread says so.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# No test asks a public server, so the certificates of public authorities are never needed. To read them takes httpx
# 25 ms for each client; from a folder without any it takes none. The processes that tests start inherit this.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

import psutil
import pytest
from sqlalchemy import Engine, insert, text

from backend.db.engine import migrate, open_engine, writing
from backend.db.tables import Base, PoolVersionRow
from tests.doubles.compiled_templates import compile_each_template_once
from tests.doubles.feeds_in_process import read_feeds_in_process
from tests.doubles.long_form import by_length
from tests.doubles.migrated import migrated
from tests.doubles.postgres_server import postgres_programs, postgres_server

REPOSITORY = Path(__file__).resolve().parents[1]
compile_each_template_once()
read_feeds_in_process()
FIRST = frozenset({"test_cleared_storage.py"})
"""Files that take minutes start first, so that no worker waits for them at the end."""


MEMORY = Path("/dev/shm")
MEMORY_FREE_BYTES = 8 << 30
"""With less free space and available memory, a run's temporary folders are on the disk."""


def pytest_configure() -> None:
    """Let pytest make its temporary folders in memory, if there is room and no other place is configured.

    On disk every transaction of a device waits for fsync, which only protects against a power cut. No test depends on
    that: what a killed process has written survives without it.
    """
    if _room_in_memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    gc.disable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name binary parameters by their argument.

    Bytes of a gzip contain the second it was made in; if two workers name one test differently, no test runs.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


ONE_ENGINE = (
    "integration/test_feed_refresh.py",
    "news/pictures/test_fetching.py",
    "news/pictures/test_worker.py",
    "news/test_misread_feeds.py",
    "news/test_polite_hosts.py",
)
"""Files about what feeds and pictures hold, whose rows other files write to both databases, too: SQLite alone in
`make test`, both in `make qa`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    second = [each for each in items if each.path.as_posix().endswith(ONE_ENGINE) and "postgresql" in each.name]
    if by_length(True, long=False):
        config.hook.pytest_deselected(items=second)
        items[:] = [each for each in items if each not in set(second)]
    for each in second:
        each.add_marker("long_form")
    items.sort(key=lambda item: item.path.name not in FIRST)


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection, which would otherwise scan them again and again."""
    gc.enable()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of our own PostgreSQL, on a socket in a temporary folder.

    Skips if its programs are missing.
    """
    if postgres_programs() is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are neither on PATH nor in /usr/lib/postgresql/*/bin")
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_url: str) -> str:
    """The URL of a migrated database of our own PostgreSQL, for tests that change no table's form."""
    engine = open_engine(postgres_url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE migrated"))
    engine.dispose()
    url = postgres_url.replace("/postgres?", "/migrated?")
    migrate(url)
    return url


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the research data; skips, naming it, if it is missing."""
    folder = Path(os.environ.get("OWNFEED_DATA") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the research data is missing: no folder {folder} (set OWNFEED_DATA)")
    return folder


@pytest.fixture(scope="session")
def shared_feeds() -> Path:
    """The folder of feeds that other programs misread; skips, naming it, if it is missing."""
    folder = Path(os.environ.get("OWNFEED_FEEDS") or REPOSITORY.parent / "shared" / "feeds")
    if not folder.is_dir():
        pytest.skip(f"the sample feeds are missing: no folder {folder} (set OWNFEED_FEEDS)")
    return folder


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once for each engine; of a migrated one for a test that has its `engine`, too.

    On PostgreSQL, to empty all tables takes a tenth of the time that the migrations take.
    """
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'pool.db'}"
    migrated = "engine" in request.fixturenames
    url = str(request.getfixturevalue("migrated_postgres" if migrated else "postgres_url"))
    engine = open_engine(url)
    with writing(engine) as connection:
        if migrated:
            connection.execute(text(f"TRUNCATE {', '.join(Base.metadata.tables)} RESTART IDENTITY"))
            connection.execute(insert(PoolVersionRow).values(id=1, version=0, next_number=1))  # as the migration does
        else:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A migrated, empty database, once for each engine."""
    engine = migrated(database_url)
    yield engine
    engine.dispose()


def _room_in_memory() -> bool:
    """Return whether an in-memory file system has room for a run's folders and can start programs."""
    if not MEMORY.is_dir():
        return False
    system = os.statvfs(MEMORY)
    free = min(system.f_bavail * system.f_frsize, psutil.virtual_memory().available)
    return free >= MEMORY_FREE_BYTES and not system.f_flag & os.ST_NOEXEC

"""What several packages' tests share: databases of both engines, and the research data beside the checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# The workers of a run share the cores: threads that spin while they wait take them from the other worker. A test that
# needs more than one thread says so.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import psutil
import pytest
from sqlalchemy import Engine, text

from backend.db.engine import open_engine, writing
from tests.doubles.migrated import migrated
from tests.doubles.postgres_server import postgres_programs, postgres_server

REPOSITORY = Path(__file__).resolve().parents[1]
FIRST = frozenset({"test_graphs_in_node.py"})
"""Files that keep a worker for minutes: what comes first is never what the other worker waits for at the end."""


MEMORY = Path("/dev/shm")
MEMORY_FREE_BYTES = 8 << 30
"""Free space and available memory below which a run's temporary folders lie on the disk."""


def pytest_configure() -> None:
    """Have pytest make its temporary folders in memory, where there is room and nobody named another place.

    On the disk every transaction of a device waits for it. What that wait is for, a power cut, is no part of any test:
    what a killed process has written is there without it.
    """
    if _room_in_memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that are no text are named by their argument: a gzip's tell the second it was made in, and where two
    workers name one test differently none is run."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in FIRST)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL of our own, on a socket in a temporary folder; skips where its programs are missing."""
    if postgres_programs() is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are neither on PATH nor in /usr/lib/postgresql/*/bin")
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the research data; skips, naming it, where it is missing."""
    folder = Path(os.environ.get("OWNFEED_DATA") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the research data is missing: no folder {folder} (set OWNFEED_DATA)")
    return folder


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once of each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'pool.db'}"
    url = str(request.getfixturevalue("postgres_url"))
    engine = open_engine(url)
    with writing(engine) as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A migrated, empty database, once of each engine."""
    engine = migrated(database_url)
    yield engine
    engine.dispose()


def _room_in_memory() -> bool:
    """Whether there is a file system in memory that holds a run's folders, and from which programs may be started."""
    if not MEMORY.is_dir():
        return False
    system = os.statvfs(MEMORY)
    free = min(system.f_bavail * system.f_frsize, psutil.virtual_memory().available)
    return free >= MEMORY_FREE_BYTES and not system.f_flag & os.ST_NOEXEC

"""Our own PostgreSQL in a temporary folder, reached by a socket there."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RestartedPostgres:
    """A server that can be stopped and started. run: runs one of PostgreSQL's programs."""

    url: str
    _run: Callable[..., None]
    _options: tuple[str, ...]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._run("pg_ctl", *self._options, "-w", "start")

    def stop(self, how: str) -> None:
        """how: 'fast' ends open work, 'immediate' acts like a power cut."""
        self._run("pg_ctl", *self._options, "-m", how, "-w", "stop")


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run the server while the block runs; yields its URL."""
    with restarted_postgres() as server:
        yield server.url


@contextmanager
def restarted_postgres() -> Iterator[RestartedPostgres]:
    """A server that can be restarted; it runs when the block begins."""
    programs = postgres_programs()
    assert programs is not None
    # A socket's path may have 107 characters: pytest's own temporary folders are often longer.
    folder = Path(tempfile.mkdtemp(prefix="ownfeed-pg-"))
    user = _unprivileged(folder)

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), *arguments]
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, timeout=120)

    cluster, socket = str(folder / "cluster"), str(folder)
    try:
        run("initdb", "-D", cluster, "-U", "ownfeed", "-A", "trust", "--no-sync", "-E", "UTF8")
        options = f"-k {socket} -c listen_addresses='' -c fsync=off -c full_page_writes=off"
        log = str(folder / "log")
        url = f"postgresql://ownfeed@/postgres?host={socket}"
        server = RestartedPostgres(url, run, ("-D", cluster, "-o", options, "-l", log))
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgres_programs() -> Path | None:
    """Return the folder of initdb and pg_ctl; None if they are missing."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in (*installed, *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        if (folder / "initdb").is_file() and (folder / "pg_ctl").is_file():
            return folder
    return None


def _unprivileged(folder: Path) -> int | None:
    """Give the folder to another user if we are root, and return that user's id.

    PostgreSQL refuses to run as root.
    """
    if os.geteuid() != 0:
        return None
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return account.pw_uid

"""A PostgreSQL of our own in a temporary folder, reached by a socket there."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres_server() -> Iterator[str]:
    """Its URL while the block runs."""
    programs = postgres_programs()
    assert programs is not None
    # A socket's path may have 107 characters: pytest's own temporary folders are often longer.
    folder = Path(tempfile.mkdtemp(prefix="ownfeed-pg-"))
    user = _unprivileged(folder)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, timeout=120)

    cluster, socket = str(folder / "cluster"), str(folder)
    try:
        run(str(programs / "initdb"), "-D", cluster, "-U", "ownfeed", "-A", "trust", "--no-sync", "-E", "UTF8")
        options = f"-k {socket} -c listen_addresses='' -c fsync=off -c full_page_writes=off"
        log = str(folder / "log")
        run(str(programs / "pg_ctl"), "-D", cluster, "-o", options, "-l", log, "-w", "start")
        try:
            yield f"postgresql://ownfeed@/postgres?host={socket}"
        finally:
            run(str(programs / "pg_ctl"), "-D", cluster, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgres_programs() -> Path | None:
    """The folder of initdb and pg_ctl; None where they are missing."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in (*installed, *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        if (folder / "initdb").is_file() and (folder / "pg_ctl").is_file():
            return folder
    return None


def _unprivileged(folder: Path) -> int | None:
    """PostgreSQL refuses to run as root: the folder then goes to another user, whose id is returned."""
    if os.geteuid() != 0:
        return None
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return account.pw_uid

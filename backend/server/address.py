"""Records where the servers of a data folder listen.

There is one locked file per server, valid only while the server runs.
"""

import os
import re
import secrets
import socket
import sys
from pathlib import Path

ADDRESS = re.compile(r"https?://[^\s/]+")
UNFINISHED = ".part"


class ServerAddress:
    """One server's file in a folder of such files, locked by the server while it runs.

    The operating system releases the lock when the process ends, however it ends. Without it, the next command would
    send the operator's token to another program that now listens at a killed server's address; and a lock shared by
    several servers would vouch for the killed one as long as any of them runs.

    Servers of other machines may share the folder. Their files are left alone: 127.0.0.1 means another machine there.
    On a system without such locks (Windows) nothing is written and nothing is found.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None
        self._locked = -1

    def say(self, address: str) -> None:
        """Record the address at which this server listens from now on. Raises OSError."""
        if sys.platform == "win32":
            return
        import fcntl

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.known()  # removes what killed servers have left
        file = self._folder / secrets.token_hex(8)
        draft = file.with_name(file.name + UNFINISHED)
        self._locked = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Locked and complete before it gets its name, so that nobody takes it for one left by a killed server.
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._locked, f"{address}\n{socket.gethostname()}\n".encode())
            draft.replace(file)
        except OSError:
            draft.unlink(missing_ok=True)
            self.forget()
            raise
        self._file = file

    def forget(self) -> None:
        """Remove this server's own file when it stops."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None
        if self._locked >= 0:
            os.close(self._locked)
            self._locked = -1

    def known(self) -> str | None:
        """The address of this machine's most recently started running server; None if there is none.

        Files that killed servers of this machine have left are removed.
        """
        try:
            files = [file for file in self._folder.iterdir() if file.suffix != UNFINISHED]
        except OSError:
            return None
        newest_first = sorted(files, key=_written_ns, reverse=True)
        alive = [address for file in newest_first if (address := _alive(file))]
        return alive[0] if alive else None


def _written_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0  # deleted meanwhile


def _alive(file: Path) -> str | None:
    """The address in the file if the server that wrote it holds the lock; else remove the file."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        with file.open(encoding="utf-8") as opened:
            address, host = opened.read().split()
            if host != socket.gethostname() or not ADDRESS.fullmatch(address):
                return None
            try:
                # A shared lock: two simultaneous commands must not take each other for the server.
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return address
            file.unlink(missing_ok=True)
    except (OSError, ValueError):
        pass  # deleted meanwhile, or not written by a server
    return None

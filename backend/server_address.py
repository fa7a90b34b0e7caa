"""Where the server of a data folder listens: said by the server in a file, and believed only while one is alive."""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress
from pathlib import Path

from filelock import ReadWriteLock, Timeout

from backend.releases.blobs import write_durably

ADDRESS = re.compile(r"https?://[^\s/]+")


class ServerAddress:
    """The file, and a lock beside it that every server on the folder shares and only a command takes for itself.

    The operating system lets go of the lock when a server ends, however it ends. Without it, what a killed server had
    written would have the next command send the operator's token to whoever listens there by now.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._said = file, ""
        self._alive: ReadWriteLock | None = None

    def say(self, address: str) -> None:
        """Of a server that listens there from now on. Raises OSError."""
        self._alive = self._lock()
        self._alive.acquire_read()
        self._said = address
        write_durably(self._file, address.encode())

    def forget(self) -> None:
        """Of a server that ends: remove the file, unless another server on the same folder has written its own."""
        with suppress(FileNotFoundError):
            if self._said and self._file.read_text(encoding="utf-8") == self._said:
                self._file.unlink()
        if self._alive is not None:
            self._alive.release()
            self._alive = None

    def known(self) -> str | None:
        """Where a server that is alive listens; None where there is none, and a file that one has left is removed."""
        try:
            said = self._file.read_text(encoding="utf-8").strip()
            if not ADDRESS.fullmatch(said) or not self._served():
                return None
        except (OSError, UnicodeDecodeError, sqlite3.Error):
            return None
        return said

    def _served(self) -> bool:
        lock = self._lock()
        try:
            lock.acquire_write(timeout=0)
        except Timeout:
            return True
        try:
            self._file.unlink(missing_ok=True)
        finally:
            lock.release()
        return False

    def _lock(self) -> ReadWriteLock:
        return ReadWriteLock(self._file.with_name(f"{self._file.name}.lock"), is_singleton=False)

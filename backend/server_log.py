"""The server's log in the data folder: request lines without bodies, and what went wrong.

Several processes write into the same file. Python's own handler, by which each puts a full file aside on its own, has
one of them go on in a file that another has put aside, and newer lines deleted before older ones.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from filelock import FileLock, Timeout
from pythonjsonlogger.json import JsonFormatter

from backend.settings import BackendSettings

LOG_FILE = "server.log"
LOG_FILE_LIMIT_BYTES = 5_000_000
LOG_FILES = 3
LOCK_SEC = 5
"""A process that has waited so long for its turn says so on its standard error, and goes on in the full file."""


class ServerLogFile(RotatingFileHandler):
    """A file that all processes of a server write into, and that one of them puts aside once it is full.

    Args:
        path: of the file that is written; older ones have .1, .2 and so on behind its name, and .lock is beside them.
        limit_bytes: most that a file may have.
        files: how many older ones are kept.
    """

    def __init__(self, path: Path, *, limit_bytes: int, files: int) -> None:
        super().__init__(path, maxBytes=limit_bytes, backupCount=files, encoding="utf-8")
        self._turn = FileLock(f"{path}.lock", timeout=LOCK_SEC, mode=0o600)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line where the other processes do."""
        try:
            self._follow()
            super().emit(record)
        except OSError:
            self.handleError(record)

    def doRollover(self) -> None:  # noqa: N802
        """Put the full file aside, unless another process has done so meanwhile. Raises OSError."""
        try:
            self._turn.acquire()
        except Timeout:
            sys.stderr.write(f"ownfeed: {self.baseFilename} is full, and another process doesn't put it aside.\n")
            return
        try:
            if not self._follow():
                super().doRollover()
        finally:
            self._turn.release()

    def _follow(self) -> bool:
        """Open the file anew where another process has put aside the one that this has open; whether it has."""
        stream = self.stream
        if stream is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(stream.fileno()), os.stat(self.baseFilename)):
                    return False
            stream.close()
            self.stream = None  # where opening fails the next line tries again
        self.stream = self._open()
        return True


def log_formatter(form: str) -> logging.Formatter:
    """Of the server's log: 'text', a line for people, or 'json', an object a line for what collects logs."""
    fields = "%(asctime)s %(levelname)s %(name)s %(message)s"
    if form == "text":
        return logging.Formatter(fields)
    return JsonFormatter(fields, rename_fields={"asctime": "at", "levelname": "level", "name": "logger"})


@contextlib.contextmanager
def server_log(settings: BackendSettings) -> Iterator[None]:
    """Write there what `backend` logs while the block runs. Raises OSError."""
    handler = ServerLogFile(settings.data_dir / LOG_FILE, limit_bytes=LOG_FILE_LIMIT_BYTES, files=LOG_FILES)
    handler.setFormatter(log_formatter(settings.log_format))
    logger = logging.getLogger("backend")
    level_before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level_before)
        handler.close()

"""The server's log in the data folder: request lines without bodies, and errors.

Several processes write to the same file. With Python's own handler, in which each process rotates a full file
separately, one process could continue in a file that another has rotated, and newer lines would be deleted before older
ones.
"""

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
"""A process that has waited this long for the lock reports it on standard error and continues in the full file."""


class ServerLogFile(RotatingFileHandler):
    """A log file that all processes of a server write to, and that one of them rotates when it is full.

    Args:
        path: the current file; older ones have .1, .2 and so on appended, and .lock is beside them.
        limit_bytes: maximum size of a file.
        files: how many older files are kept.
    """

    def __init__(self, path: Path, *, limit_bytes: int, files: int) -> None:
        super().__init__(path, maxBytes=limit_bytes, backupCount=files, encoding="utf-8")
        self._turn = FileLock(f"{path}.lock", timeout=LOCK_SEC, mode=0o600)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line to the file that the other processes use."""
        try:
            self._follow()
            super().emit(record)
        except OSError:
            self.handleError(record)

    def doRollover(self) -> None:  # noqa: N802
        """Rotate the full file, unless another process has done so meanwhile. Raises OSError."""
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
        """Reopen the file if another process has rotated the one that this has open.

        Return whether it has.
        """
        stream = self.stream
        if stream is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(stream.fileno()), os.stat(self.baseFilename)):
                    return False
            stream.close()
            self.stream = None  # if opening fails, the next line tries again
        self.stream = self._open()
        return True


def log_formatter(form: str) -> logging.Formatter:
    """The formatter of the server's log: 'text', lines for people, or 'json', an object per line for log collectors."""
    fields = "%(asctime)s %(levelname)s %(name)s %(message)s"
    if form == "text":
        return logging.Formatter(fields)
    return JsonFormatter(fields, rename_fields={"asctime": "at", "levelname": "level", "name": "logger"})


@contextlib.contextmanager
def server_log(settings: BackendSettings) -> Iterator[None]:
    """Write what `backend` logs to the file while the block runs. Raises OSError."""
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

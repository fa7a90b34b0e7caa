"""Settings of the process that runs devices: logging, threads, garbage collection, memory.

With JSON logging, the device writes one JSON object per line to standard error. Otherwise Python's last-resort handler
writes warnings there as plain lines. Neither logs anything that is read: no title, id, section or topic, and no key. An
unexpected exception is logged with its class and stack, but never its message, which may quote any of these.

The other functions limit what the process takes from the machine. The program that starts it calls them once.
"""

import ctypes
import gc
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

LOGGERS = ("device_app", "uvicorn")
FIELDS = "%(asctime)s %(levelname)s %(name)s %(message)s"


def kind_of(fault: BaseException) -> str:
    """Return the exception's class by its full name."""
    return f"{type(fault).__module__}.{type(fault).__qualname__}"


def fault_in_words(fault: BaseException) -> str:
    """Return the exception's class and the program lines in its stack."""
    return f"{kind_of(fault)}\n{''.join(traceback.format_tb(fault.__traceback__)).rstrip()}"


class MessagelessFormatter(JsonFormatter):
    """Formats JSON lines whose tracebacks have no message, for exceptions of libraries too."""

    def formatException(  # noqa: N802
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Return the text of a record's `exc_info`."""
        return "" if ei[1] is None else fault_in_words(ei[1])


@contextmanager
def json_logs(wanted: bool, stream: TextIO | None = None) -> Iterator[None]:
    """Write JSON logs to the stream (default: standard error) while the block runs, if wanted."""
    if not wanted:
        yield
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        MessagelessFormatter(FIELDS, rename_fields={"asctime": "at", "levelname": "level", "name": "logger"})
    )
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger, logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, handlers, propagate, level in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        handler.close()


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Numbers of mallopt(3)'s parameters, from malloc.h."""
ARENAS = 2
LARGE_BYTES = 1024 * 1024


def one_thread() -> None:
    """Limit numpy to one thread.

    Call it before anything imports numpy: OpenBLAS reads its setting only then. A device multiplies small matrices, for
    which a second thread costs more than it gains, and idle threads spin on the core that draws the page. Only starting
    commands call this, and no module on import, because the backend imports parts of this package too and may use every
    core. A number set in the environment is kept.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def freeze_gc() -> None:
    """Exclude everything loaded so far from garbage collection. Call once, before serving.

    Modules, models and schemas stay until the end; scanning them took about 60 ms, roughly every 80 feeds.
    """
    gc.collect()
    gc.freeze()


def steady_heap() -> bool:
    """Make glibc return freed memory to the system; return False if the C library isn't glibc.

    Call it before threads start. By default, glibc opens up to eight heaps per core, one more whenever threads contend.
    After the first large array is freed, it also allocates arrays of that size from these heaps, between small objects
    that stay: a server whose objects stay at 190 MB grew by 2 MB a minute of unused heap. This sets at most two heaps,
    and separate pages for everything larger than `LARGE_BYTES`, which are returned when freed. MALLOC_ARENA_MAX in the
    environment overrides the number of heaps.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return False
    wanted = [(_M_MMAP_THRESHOLD, LARGE_BYTES), (_M_TRIM_THRESHOLD, LARGE_BYTES)]
    if "MALLOC_ARENA_MAX" not in os.environ:
        wanted.append((_M_ARENA_MAX, ARENAS))
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted)

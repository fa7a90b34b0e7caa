"""What the device logs, as an object of JSON a line on standard error, where the setting asks for it.

Otherwise Python's own last resort writes warnings there as plain lines. Either way nothing is logged of what is read:
no title, id, section or topic, and no key. Of a fault that nobody foresaw the log has its kind and its places, and
never its message, which may quote any of them.
"""

from __future__ import annotations

import logging
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
    """The fault's class, by its full name."""
    return f"{type(fault).__module__}.{type(fault).__qualname__}"


def fault_in_words(fault: BaseException) -> str:
    """The fault's class and the lines of the program that it came by."""
    return f"{kind_of(fault)}\n{''.join(traceback.format_tb(fault.__traceback__)).rstrip()}"


class MessagelessFormatter(JsonFormatter):
    """JSON lines whose tracebacks have no message, of libraries' own faults too."""

    def formatException(  # noqa: N802
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """What `exc_info` of a record reads as."""
        return "" if ei[1] is None else fault_in_words(ei[1])


@contextmanager
def json_logs(wanted: bool, stream: TextIO | None = None) -> Iterator[None]:
    """Write JSON to the stream, standard error by default, while the block runs; nothing changes if it isn't wanted."""
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

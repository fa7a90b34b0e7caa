"""What the device logs, as an object of JSON a line on standard error, where the setting asks for it.

Otherwise Python's own last resort writes warnings there as plain lines. Either way nothing is logged of what is read:
no title, id, section or topic, and no key.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

LOGGERS = ("device_app", "uvicorn")
FIELDS = "%(asctime)s %(levelname)s %(name)s %(message)s"


@contextmanager
def json_logs(wanted: bool, stream: TextIO | None = None) -> Iterator[None]:
    """Write JSON to the stream, standard error by default, while the block runs; nothing changes if it isn't wanted."""
    if not wanted:
        yield
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(FIELDS, rename_fields={"asctime": "at", "levelname": "level", "name": "logger"}))
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

"""Reads a text file line by line with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from backend.news.errors import SourceUnreachable
from backend.news.report import Rejection

LINE_LIMIT_BYTES = 2_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_source(path: Path) -> BinaryIO:
    """Opens a source's file; raises SourceUnreachable if it is missing, a folder or not readable."""
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceUnreachable(str(path), (error.strerror or type(error).__name__).lower()) from error


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, str] | Rejection]:
    """(number from 1, text) of each line that is not blank; a Rejection for one too long or not in UTF-8."""
    number = 0
    while line := stream.readline(LINE_LIMIT_BYTES + 1):
        number += 1
        if len(line) > LINE_LIMIT_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LINE_LIMIT_BYTES)
            yield Rejection(number, "row", f"longer than the limit of {LINE_LIMIT_BYTES:,} bytes")
            continue
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield Rejection(number, "row", f"not UTF-8 at byte {error.start + 1}")
            continue
        if text.strip():
            yield number, text

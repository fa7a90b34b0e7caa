"""Decompresses an answer piece by piece (RFC 9110, section 8.4.1), never more than the limit at once.

httpx would decompress a whole piece in memory, however large it becomes. The compressed bytes have the same limit,
since they may decompress to nothing. Nothing is read after the end of the compressed data.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, cast

from backend.news.errors import SourceMalformed, SourceTooLarge

FEED_LIMIT_BYTES = 10_000_000
ACCEPTED = "gzip, deflate, br, zstd"
WINDOW_LIMIT_BYTES = 8 * 1024 * 1024
"""What zstd over HTTP may need of memory (RFC 9659)."""
PIECE_BYTES = 1_000_000


def unpacked(location: str, encoding: str, parts: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a compressed answer in pieces. Raises SourceMalformed, SourceTooLarge."""
    if encoding not in _UNPACKERS:
        raise SourceMalformed(location, f"is sent in the encoding {encoding!r}; only {ACCEPTED} were asked for")

    import brotli  # not in the bare command, which names this module's sources
    import zstandard

    def counted() -> Iterator[bytes]:
        packed = 0
        for part in parts:
            packed += len(part)
            if packed > FEED_LIMIT_BYTES:
                raise SourceTooLarge(location, FEED_LIMIT_BYTES)
            yield part

    found = 0
    try:
        for data in _UNPACKERS[encoding](counted()):
            found += len(data)
            if found > FEED_LIMIT_BYTES:
                raise SourceTooLarge(location, FEED_LIMIT_BYTES)
            yield data
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise SourceMalformed(location, f"is not valid {encoding} ({error})") from error


def _gzip(parts: Iterator[bytes]) -> Iterator[bytes]:
    return _inflated(zlib.decompressobj(wbits=31), b"", parts)


def _deflate(parts: Iterator[bytes]) -> Iterator[bytes]:
    """With zlib's header or, as some servers send it, without."""
    head = b""
    while len(head) < 2 and (part := next(parts, b"")):
        head += part
    has_header = len(head) >= 2 and head[0] & 15 == 8 and int.from_bytes(head[:2], "big") % 31 == 0  # RFC 1950, 2.2
    return _inflated(zlib.decompressobj(wbits=zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS), head, parts)


def _inflated(inflater: zlib._Decompress, head: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    part: bytes | None = head or next(parts, None)
    while part is not None and not inflater.eof:
        yield inflater.decompress(part, PIECE_BYTES)
        if not inflater.eof:
            part = inflater.unconsumed_tail or next(parts, None)


def _brotli(parts: Iterator[bytes]) -> Iterator[bytes]:
    import brotli

    decompressor = brotli.Decompressor()
    for part in parts:
        yield decompressor.process(part, output_buffer_limit=PIECE_BYTES)
        while not decompressor.can_accept_more_data():
            yield decompressor.process(b"", output_buffer_limit=PIECE_BYTES)
        if decompressor.is_finished():
            return


def _zstd(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Several frames in a row are one content (RFC 8878, section 3)."""
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT_BYTES)
    reader = unpacker.stream_reader(cast(IO[bytes], _Pieces(parts)), read_across_frames=True)  # it only reads
    while data := reader.read(PIECE_BYTES):
        yield data


class _Pieces:
    """Pieces as a file, as zstandard reads it."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts

    def read(self, _size: int) -> bytes:
        """The next piece that isn't empty; b'' at the end."""
        return next(filter(None, self._parts), b"")


_UNPACKERS: dict[str, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}

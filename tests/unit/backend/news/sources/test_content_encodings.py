"""Compressed answers within limits. Oracles: zlib, brotli and zstandard, which compressed them."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import httpx
import pytest
import zstandard

from backend.news.errors import SourceMalformed, SourceTooLarge
from backend.news.sources.download import FEED_LIMIT_BYTES, Document, fetch, unpacked

TEXT = b"<rss>" + b"".join(b"word %d " % number for number in range(5_000))


def bare(data: bytes) -> bytes:
    """Compress by deflate without zlib's header."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def frames(data: bytes) -> bytes:
    """Compress into two consecutive frames of zstd."""
    return bytes(zstandard.compress(data[:100]) + zstandard.compress(data[100:]))


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "bare deflate": ("deflate", bare),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
    "zstd in frames": ("zstd", frames),
}


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 1_000, 10_000_000])
@pytest.mark.parametrize("name", PACKERS)
def test_compressed_feed_is_decompressed_in_chunks_of_any_size(name: str, size: int) -> None:
    encoding, pack = PACKERS[name]
    assert b"".join(unpacked("a feed", encoding, pieces(pack(TEXT), size))) == TEXT


@pytest.mark.parametrize("name", ["gzip", "deflate", "bare deflate", "br", "zstd"])
def test_compression_bomb_is_refused_within_bounded_memory(name: str) -> None:
    encoding, pack = PACKERS[name]
    bomb = pack(b"\0" * (12 * FEED_LIMIT_BYTES))
    tracemalloc.start()
    try:
        with pytest.raises(SourceTooLarge):
            b"".join(unpacked("a feed", encoding, [bomb]))
        assert tracemalloc.get_traced_memory()[1] < 4 * FEED_LIMIT_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_wrongly_declared_encoding_is_malformed(encoding: str) -> None:
    with pytest.raises(SourceMalformed, match=f"is not valid {encoding}"):
        b"".join(unpacked("a feed", encoding, [b"<rss>" + TEXT]))


def test_unrequested_encoding_is_named_in_the_error() -> None:
    with pytest.raises(SourceMalformed, match="'compress'; only gzip, deflate, br, zstd"):
        b"".join(unpacked("a feed", "compress", [TEXT]))


@pytest.mark.parametrize("name", PACKERS)
def test_feed_may_be_sent_in_each_encoding(name: str) -> None:
    encoding, pack = PACKERS[name]

    def answered(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "gzip, deflate, br, zstd"
        return httpx.Response(200, headers={"content-encoding": encoding}, stream=httpx.ByteStream(pack(TEXT)))

    found = fetch("https://a.example/feed", transport=httpx.MockTransport(answered))
    assert isinstance(found, Document)
    assert found.data == TEXT

"""Reads a feed from a file or over HTTP, with limits on addresses, size, time and redirects.

Compressed answers (RFC 9110, section 8.4.1) are unpacked in pieces of limited size, since httpx would unpack a whole
piece in memory, however large the result. The compressed bytes have the same limit, since they may unpack to nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, NamedTuple, cast
from urllib.parse import urljoin

import httpx

from backend.news.errors import SourceMalformed, SourceTooLarge, SourceUnreachable
from backend.news.public_addresses import CheckedTransport, HttpDeadline, IpNetwork, ProxyTransport
from backend.news.sources.files import open_source

FEED_LIMIT_BYTES = 10_000_000
ACCEPTED = "gzip, deflate, br, zstd"
WINDOW_LIMIT_BYTES = 8 * 1024 * 1024
"""The largest window of zstd over HTTP (RFC 9659)."""
PIECE_BYTES = 1_000_000


def unpacked(location: str, encoding: str, parts: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a compressed answer in pieces. Raises SourceMalformed, SourceTooLarge."""
    if encoding not in _UNPACKERS:
        raise SourceMalformed(location, f"has the content encoding {encoding!r}; only {ACCEPTED} are accepted")

    import brotli  # not installed with the bare command, which imports the list of sources
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
    """Inflate deflate data with zlib's header or, as some servers send it, without."""
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
    """Reads consecutive frames as one content (RFC 8878, section 3)."""
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT_BYTES)
    reader = unpacker.stream_reader(cast(IO[bytes], _Pieces(parts)), read_across_frames=True)
    while data := reader.read(PIECE_BYTES):
        yield data


class _Pieces:
    """The pieces as a file that zstandard can read."""

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


REDIRECT_LIMIT = 5
ANSWER_TIMEOUT_SEC = 20.0
"""How long a server may be silent."""
DOWNLOAD_TIMEOUT_SEC = 60.0
"""How long one download may take in total, including redirects."""
USER_AGENT = "Ownfeed/0.1 (news reader; conditional GET)"
VALIDATOR_LIMIT_CHARS = 500
GIVEN_UP = "this server is stopping"
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
MEANINGS = {410: "gone permanently", 429: "too many requests"}


class Validators(NamedTuple):
    """Values that make the next GET conditional (RFC 9110, section 8.8)."""

    etag: str | None = None
    last_modified: str | None = None


class Document(NamedTuple):
    """A feed's bytes, their address after redirects, and the server's validators."""

    location: str
    base: str
    data: bytes
    content_type: str
    validators: Validators
    fresh_sec: float = 0.0
    """Seconds for which it is fresh (Cache-Control: max-age, minus Age); 0 if the server didn't say."""
    moved_to: str = ""
    """Where permanent redirects (301, 308) from its address lead; '' if there are none."""


class NotModified(NamedTuple):
    """The server says that the known content is still current (304); the rest as in `Document`."""

    fresh_sec: float = 0.0
    moved_to: str = ""


def fetch(
    location: str,
    known: Validators | None = None,
    *,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    unverified: bool = False,
    proxy: str | None = None,
) -> Document | NotModified:
    """The feed at an http or https URL or in a file; NotModified if the server says that `known` is still current.

    allowed: non-public networks that may be fetched from. transport: sends the requests; by default each hop goes to a
    checked address (`CheckedTransport`). cancelled: polled several times a second; once it returns true, the download
    ends with SourceUnreachable. unverified: the certificate isn't checked. proxy: sends the requests and resolves the
    names (`ProxyTransport`).

    Raises SourceUnreachable, SourceTooLarge, SourceMalformed.
    """
    if "://" not in location:
        with open_source(Path(location)) as stream:
            data = stream.read(FEED_LIMIT_BYTES + 1)
        if len(data) > FEED_LIMIT_BYTES:
            raise SourceTooLarge(location, FEED_LIMIT_BYTES)
        return Document(location, "", data, "", Validators())
    through = ProxyTransport(proxy, allowed, unverified=unverified) if proxy else None
    carrier = transport or through or CheckedTransport(allowed, unverified=unverified)
    with (
        httpx.Client(timeout=ANSWER_TIMEOUT_SEC, follow_redirects=False, trust_env=False, transport=carrier) as client,
        HttpDeadline(DOWNLOAD_TIMEOUT_SEC, cancelled) as deadline,
    ):
        return _get(client, location, known or Validators(), deadline, cancelled)


def _get(
    client: httpx.Client, location: str, known: Validators, deadline: HttpDeadline, cancelled: Callable[[], bool]
) -> Document | NotModified:
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPTED}
    headers["Accept"] = "application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.1"
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    url, moved_to, moves = location, "", True
    for _ in range(REDIRECT_LIMIT + 1):
        _in_time(location, deadline, cancelled)
        if not url.lower().startswith(("http://", "https://")):
            raise SourceUnreachable(location, f"only http and https are followed, not {url.partition(':')[0]!r}")
        try:
            with client.stream("GET", url, headers=headers, extensions={"trace": deadline.trace}) as response:
                if response.status_code in REDIRECTS and "location" in response.headers:
                    url = urljoin(url, response.headers["location"])
                    moves &= response.status_code in PERMANENT
                    moved_to = url if moves else moved_to
                    continue
                if response.status_code == httpx.codes.NOT_MODIFIED:
                    return NotModified(_fresh_sec(response), moved_to)
                if response.status_code != httpx.codes.OK:
                    wait, why = retry_after_sec(response.headers.get("retry-after", "")), _why(response.status_code)
                    raise SourceUnreachable(location, why, wait, status=response.status_code, asked=url)
                body = _body(location, response, deadline, cancelled)
                return Document(location, url, body, *_facts(response), _fresh_sec(response), moved_to)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # ValueError: urllib or idna rejects an address in a redirect.
            _in_time(location, deadline, cancelled)  # raises if we shut the connection ourselves
            raise SourceUnreachable(location, str(error).rstrip(".") or type(error).__name__) from error
    raise SourceUnreachable(location, f"more than {REDIRECT_LIMIT} redirects")


def _why(status: int) -> str:
    return f"the server answered {status}" + (f" ({MEANINGS[status]})" if status in MEANINGS else "")


def _facts(response: httpx.Response) -> tuple[str, Validators]:
    etag, last_modified = response.headers.get("etag"), response.headers.get("last-modified")
    if etag and len(etag) > VALIDATOR_LIMIT_CHARS:
        etag = None
    if last_modified and len(last_modified) > 100:
        last_modified = None
    return response.headers.get("content-type", ""), Validators(etag, last_modified)


def retry_after_sec(header: str, now: datetime | None = None) -> float:
    """Retry-After (RFC 9110, section 10.2.3), seconds or a date, as seconds from now; 0 if it is neither."""
    if re.fullmatch(r"\s*[0-9]{1,12}\s*", header):
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, TypeError, OverflowError):  # no date, one without a zone, or an impossible year
        return 0.0


def _fresh_sec(response: httpx.Response) -> float:
    """max-age minus the time that the answer has spent in caches (RFC 9111, section 4.2)."""
    found = re.search(r"(?:^|[\s,])max-age=\"?(\d{1,9})", response.headers.get("cache-control", "").lower())
    age = re.fullmatch(r"\d{1,9}", response.headers.get("age", "").strip())
    return max(0.0, float(found[1]) - (float(age[0]) if age else 0.0)) if found else 0.0


def _body(location: str, response: httpx.Response, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> bytes:
    declared = response.headers.get("content-length", "")
    if re.fullmatch(r"[0-9]+", declared) and (len(declared) > 20 or int(declared) > FEED_LIMIT_BYTES):
        raise SourceTooLarge(location, FEED_LIMIT_BYTES)
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    parts: Iterable[bytes] = response.iter_raw()
    if encoding != "identity":
        parts = unpacked(location, encoding, parts)
    data = bytearray()
    for part in parts:
        data += part
        if len(data) > FEED_LIMIT_BYTES:
            raise SourceTooLarge(location, FEED_LIMIT_BYTES)
        _in_time(location, deadline, cancelled)
    # Without a declared length, a shut connection looks like the end of the body.
    _in_time(location, deadline, cancelled)
    return bytes(data)


def _in_time(location: str, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise SourceUnreachable(location, GIVEN_UP)
    if deadline.over:
        raise SourceUnreachable(location, f"the download took longer than {DOWNLOAD_TIMEOUT_SEC:g} s")

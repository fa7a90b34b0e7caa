"""The device's only HTTP client: every request is written to the byte log before its first byte leaves."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
from pydantic import ValidationError

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable
from device_app.privacy.sealed import Sealed
from device_app.store.byte_log import ByteLog, Departure
from device_app.uplink.connection_pools import SeparatePools
from device_app.wire.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from device_app.wire.problem import PROBLEM_MEDIA_TYPE, Problem
from device_app.wire.server_timing import Stopwatch

USER_AGENT = "ownfeed"
ANSWER_LIMIT_BYTES = 16 * 1024 * 1024
PROBLEM_LIMIT_BYTES = 64 * 1024
CONNECT_TIMEOUT_SEC = 3.0
RETRY_AFTER_LIMIT_SEC = 3_600
_ETAG_LIMIT = 80


@dataclass(frozen=True)
class Answer:
    """A whole answer: body decoded (gzip undone), ms from the first byte out to the last byte in."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    ms: float


class HttpClient:
    """HTTP to one backend. Use from any thread.

    What goes out is what is needed and the same for every reader: method, path, Host, Accept, Accept-Encoding, a
    User-Agent without version, the protocol's version, Connection, and Content-Type and Content-Length of a body. No
    cookie is kept, no proxy or password of the environment used, no redirect followed. A body goes out only sealed.
    Reports, rounds and what is everybody's never share a connection (`connection_pools`).

    transport replaces the network, in fleets and tests. Errors: BackendUnreachable, BackendRefused (also for an answer
    in another version of the protocol, whatever it says), AnswerMalformed;
    StoreBroken if the log can't be written, and then nothing was sent.
    """

    def __init__(
        self,
        base_url: str,
        log: ByteLog,
        clock: Callable[[], datetime],
        transport: httpx.BaseTransport | None = None,
        timeout_sec: float = 10.0,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._log = log
        self._clock = clock
        self._timeout_sec = timeout_sec
        self._client = httpx.Client(
            headers={
                "user-agent": USER_AGENT,
                "accept-encoding": "gzip",
                PROTOCOL_HEADER: str(PROTOCOL_VERSION),
            },
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            timeout=self._timeout(),
            # An address without TLS has no certificates to check.
            transport=transport or SeparatePools(encrypted=not self.base_url.startswith("http://")),
            # httpx would load certificates for a transport of its own, which is never used.
            verify=False,
            trust_env=False,
            follow_redirects=False,
        )

    def _timeout(self, wait_sec: float | None = None) -> httpx.Timeout:
        longest = self._timeout_sec if wait_sec is None else min(wait_sec, self._timeout_sec)
        return httpx.Timeout(longest, connect=min(CONNECT_TIMEOUT_SEC, longest))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(
        self,
        path: str,
        *,
        words: str,
        purpose: str,
        etag: str | None = None,
        accept: str = "application/json",
        limit_bytes: int = ANSWER_LIMIT_BYTES,
    ) -> Answer:
        """Fetch what is the same for everybody. `path` may hold nothing that comes from the reader's behaviour.

        With `etag` the answer may be 304 with an empty body.
        """
        headers = {"accept": accept} | ({"if-none-match": f'"{etag}"'} if etag else {})
        return self._send("GET", path, headers, b"", words, purpose, "nothing", 0.0, limit_bytes)

    def deliver(
        self,
        sealed: Sealed[Any],
        path: str,
        *,
        purpose: str,
        method: str = "POST",
        limit_bytes: int = ANSWER_LIMIT_BYTES,
        watch: Stopwatch | None = None,
        wait_sec: float | None = None,
    ) -> Answer:
        """Send sealed bytes, exactly. Raises TypeError for anything that isn't sealed.

        watch gets the stages encode, store (the byte log) and network. wait_sec: the longest silence of the server that
        is waited for, where that is shorter than this client's own limit.
        """
        if type(sealed) is not Sealed:
            raise TypeError(
                f"only what device_app.privacy has sealed may leave the device; got {type(sealed).__name__}"
            )
        headers = {"accept": "application/json", "content-type": sealed.content_type}
        charge = sealed.charge
        return self._send(
            method,
            path,
            headers,
            sealed.payload,
            sealed.words,
            purpose,
            charge.mechanism,
            charge.epsilon,
            limit_bytes,
            watch,
            wait_sec,
        )

    def _send(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes,
        words: str,
        purpose: str,
        mechanism: str,
        epsilon: float,
        limit_bytes: int,
        watch: Stopwatch | None = None,
        wait_sec: float | None = None,
    ) -> Answer:
        watch = watch or Stopwatch()
        with watch.stage("encode"):
            request = self._client.build_request(
                method, self.base_url + path, headers=headers, content=body or None, timeout=self._timeout(wait_sec)
            )
            departure = Departure(
                self._clock(), purpose, words, method, str(request.url), _head(request), body, mechanism, epsilon
            )
        with watch.stage("store"):
            entry = self._log.record(departure)
        started = time.perf_counter()
        try:
            with watch.stage("network"), closing(self._client.send(request, stream=True)) as response:
                content = _read(response, limit_bytes, f"{method} {path}")
        except (httpx.HTTPError, AnswerMalformed) as failed:
            ms = (time.perf_counter() - started) * 1_000
            why = _plain(failed)
            self._log.failed(entry, why=why, ms=ms)
            if isinstance(failed, AnswerMalformed):
                raise
            raise BackendUnreachable(self.base_url, why) from failed
        ms = (time.perf_counter() - started) * 1_000
        with watch.stage("store"):
            self._log.answered(
                entry,
                status=response.status_code,
                head=_answer_head(response),
                response_bytes=response.num_bytes_downloaded,
                ms=ms,
            )
        if response.headers.get(PROTOCOL_HEADER, str(PROTOCOL_VERSION)) != str(PROTOCOL_VERSION):
            raise BackendRefused(_another_version(response.status_code))
        if response.status_code in (200, 201, 202, 204, 304):
            return Answer(response.status_code, dict(response.headers), content, ms)
        if response.status_code >= 400:
            raise BackendRefused(_problem(response, content), retry_after_sec(response.headers.get("retry-after", "")))
        raise AnswerMalformed(f"{method} {path}", f"status {response.status_code} is not expected")


def etag_of(answer: Answer) -> str | None:
    """The answer's ETag without quotes; None if it has none, or one so long that it could mark this device."""
    etag = answer.headers.get("etag", "").removeprefix("W/").strip('"')
    return etag if 0 < len(etag) <= _ETAG_LIMIT and etag.isascii() and '"' not in etag else None


def retry_after_sec(header: str) -> float | None:
    """Seconds of a Retry-After, at most an hour; None for none, or for one that names a date."""
    header = header.strip()
    if not (header.isascii() and header.isdigit()):
        return None
    return float(min(int(header[:9]), RETRY_AFTER_LIMIT_SEC))


def _head(request: httpx.Request) -> bytes:
    """Request line and headers as HTTP/1.1 puts them on the wire."""
    lines = [f"{request.method} {request.url.raw_path.decode('ascii')} HTTP/1.1".encode("ascii")]
    lines += [name + b": " + value for name, value in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _answer_head(response: httpx.Response) -> bytes:
    version = response.http_version.encode("ascii")
    lines = [b"%s %d %s" % (version, response.status_code, response.reason_phrase.encode("ascii", "replace"))]
    lines += [name + b": " + value for name, value in response.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _read(response: httpx.Response, limit_bytes: int, what: str) -> bytes:
    """The decoded body, given up as soon as it passes the limit: neither a flood nor a gzip bomb fills memory.

    httpx would undo several encodings one after another, each without a limit: 2 KB of gzip in gzip became 1 GB.
    """
    limit_bytes = limit_bytes if response.status_code < 400 else PROBLEM_LIMIT_BYTES
    parts: list[bytes] = []
    size = 0
    for part in _unpacked(response, limit_bytes, what):
        size += len(part)
        if size > limit_bytes:
            raise AnswerMalformed(what, f"it is longer than {limit_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


def _unpacked(response: httpx.Response, limit_bytes: int, what: str) -> Iterator[bytes]:
    """The body's parts, none longer than the limit by more than one byte if gzip made it. Raises AnswerMalformed."""
    if response.is_stream_consumed:  # an answer that this process has made itself, and read
        yield response.content
        return
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        yield from response.iter_raw()
        return
    if encoding != "gzip":
        raise AnswerMalformed(what, f"it is encoded as {encoding[:40]!r}, asked for was gzip")
    unpacker, begun = zlib.decompressobj(zlib.MAX_WBITS | 16), False
    try:
        for part in response.iter_raw():
            begun = begun or bool(part)
            yield unpacker.decompress(part, limit_bytes + 1)
    except zlib.error as broken:
        raise AnswerMalformed(what, f"its gzip is broken ({broken})") from broken
    if begun and not unpacker.eof:
        raise AnswerMalformed(what, "its gzip is cut off")


def _problem(response: httpx.Response, content: bytes) -> Problem:
    if response.headers.get("content-type", "").split(";")[0].strip() == PROBLEM_MEDIA_TYPE:
        try:
            return Problem.model_validate_json(content)
        except ValidationError:
            pass  # an answer that only claims to be a problem is told by its status, like any other
    status = response.status_code
    return Problem(
        type="about:blank",
        title=f"HTTP {status}",
        status=status,
        detail=f"the backend refused without saying why ({len(content)} bytes of another type)",
    )


def _another_version(status: int) -> Problem:
    """Said by this device itself: its backend can't know what this version of the program understands."""
    return Problem(
        type="urn:ownfeed:problem:protocol-differs",
        title="The backend speaks another version of the protocol",
        status=status,
        detail=f"This device speaks version {PROTOCOL_VERSION}; bring both to the same version of Ownfeed.",
        field=PROTOCOL_HEADER,
        limit=str(PROTOCOL_VERSION),
    )


def _plain(failed: Exception) -> str:
    if isinstance(failed, httpx.TimeoutException):
        return "no answer in time"
    return str(failed) or type(failed).__name__

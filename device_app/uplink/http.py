"""The device's only HTTP client, with a connection pool for each purpose.

Every request is written to the byte log before its first byte leaves. Separate pools keep the server from linking
requests of different purposes by their connection.
"""

import re
import ssl
import threading
import time
import zlib
from collections import OrderedDict
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
from protocol.ids import PROBLEM_MEDIA_TYPE, PROTOCOL_HEADER, PROTOCOL_VERSION, Problem
from protocol.server_timing import Stopwatch

KEPT_CONNECTIONS = 4
CONNECTIONS_LIMIT = 16
IDLE_SEC = 5.0
"""How long an idle connection is kept: less than servers keep theirs, so that no request meets a closing one."""
PLACES_KEPT = 4
"""Most pools of places in rounds that stay open; the least recently used is closed to make room for another."""

_REPORTS = re.compile(rb"/v1/(recall|news/bodies)(\?|$)")
_PLACE = re.compile(rb"/v1/rounds/([^/?]+)/[^/?]+/([^/?]+)")
_ROUNDS = re.compile(rb"/v1/rounds(/|$)")


class SeparatePools(httpx.BaseTransport):
    """Sends a request over the pool that its path belongs to. Thread-safe.

    'reports': recall, and texts of the lists that recall returned. 'rounds': polls for a round and check-ins, each on a
    connection of its own that is closed after the answer. There is one pool for each of the device's rounds, named by
    round and pseudonym. 'everybody's': the rest, which is the same for all readers.

    Formal guarantees: no TCP connection carries requests of two of these pools, so no connection links a report to a
    round, two pseudonyms, or two polls for a round. No TLS session is resumed across connections (the standard
    library's client never offers a ticket unless it's handed one). This doesn't hide the network address and the time
    of a request.

    Args:
        encrypted: whether certificates are checked; loading them takes 30 ms, done once for all pools.
    """

    def __init__(self, *, encrypted: bool) -> None:
        self._verify: ssl.SSLContext | bool = httpx.create_ssl_context(trust_env=False) if encrypted else False
        self._lock = threading.Lock()
        self._pools: dict[str, httpx.HTTPTransport] = {}
        self._places: OrderedDict[str, httpx.HTTPTransport] = OrderedDict()
        self._closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.HTTPTransport`. Raises httpx.ConnectError if it was closed meanwhile."""
        pool = self._pool(pool_name(request.url.raw_path))
        response = pool.handle_request(request)
        if self._closed:  # by another thread, while this one was connecting: nobody else would close this connection
            response.close()
            pool.close()
            raise httpx.ConnectError("the device was closed", request=request)
        return response

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for pool in (*self._pools.values(), *self._places.values()):
                pool.close()
            self._pools.clear()
            self._places.clear()

    def _pool(self, name: str) -> httpx.HTTPTransport:
        with self._lock:
            if self._closed:
                raise httpx.ConnectError("the device was closed")
            pools = self._places if name.startswith("place ") else self._pools
            if name not in pools:
                pools[name] = self._opened(0 if name == "rounds" else KEPT_CONNECTIONS)
            if pools is self._places:
                self._places.move_to_end(name)
                if len(self._places) > PLACES_KEPT:
                    self._places.popitem(last=False)[1].close()
            return pools[name]

    def _opened(self, kept: int) -> httpx.HTTPTransport:
        limits = httpx.Limits(
            max_connections=CONNECTIONS_LIMIT, max_keepalive_connections=kept, keepalive_expiry=IDLE_SEC
        )
        return httpx.HTTPTransport(verify=self._verify, limits=limits, trust_env=False)


def pool_name(raw_path: bytes) -> str:
    """Return the connection pool of a path.

    It is 'reports', 'rounds', 'everybody's', or 'place <round> <pseudonym>'.
    """
    if _REPORTS.match(raw_path):
        return "reports"
    if place := _PLACE.match(raw_path):
        return f"place {place[1].decode('ascii')} {place[2].decode('ascii')}"
    return "rounds" if _ROUNDS.match(raw_path) else "everybody's"


USER_AGENT = "ownfeed"
ANSWER_LIMIT_BYTES = 16 * 1024 * 1024
PROBLEM_LIMIT_BYTES = 64 * 1024
PACKING_BYTES = 64 * 1024
"""Maximum that gzip may add to an answer: incompressible data grows by less than a thousandth."""
CONNECT_TIMEOUT_SEC = 3.0
RETRY_AFTER_LIMIT_SEC = 3_600
_ETAG_LIMIT = 80
LEFT_OUT = b"(left out of this log)"
"""In place of a token: the log can be exported, and a copy of it must not open anything."""


@dataclass(frozen=True)
class Answer:
    """A complete answer.

    body is unzipped; ms counts from the first byte sent to the last byte received.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    ms: float


class HttpClient:
    """HTTP to one server. Thread-safe.

    A request has only what is needed and is the same for every reader: method, path, Host, Accept, Accept-Encoding, a
    User-Agent without version, the protocol's version, Connection, and Content-Type and Content-Length of a body. It
    keeps no cookies, uses no proxy or password from the environment, and follows no redirects. A body is sent only if
    sealed. Reports, rounds and requests that are the same for every device never share a connection (`SeparatePools`).

    transport replaces the network, in fleets and tests. bearer: a token for the reader's own server, sent with each
    request and left out of the log.

    Errors: BackendUnreachable, BackendRefused (also for an answer in another version of the protocol, whatever its
    content), AnswerMalformed; StoreBroken if the log can't be written, and then nothing was sent.
    """

    def __init__(
        self,
        base_url: str,
        log: ByteLog,
        clock: Callable[[], datetime],
        transport: httpx.BaseTransport | None = None,
        timeout_sec: float = 10.0,
        bearer: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._log = log
        self._clock = clock
        self._client = httpx.Client(
            headers={
                "user-agent": USER_AGENT,
                "accept-encoding": "gzip",
                PROTOCOL_HEADER: str(PROTOCOL_VERSION),
            }
            | ({"authorization": f"Bearer {bearer}"} if bearer else {}),
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(timeout_sec, connect=min(CONNECT_TIMEOUT_SEC, timeout_sec)),
            # An address without TLS has no certificates to check.
            transport=transport or SeparatePools(encrypted=not self.base_url.startswith("http://")),
            # httpx would load certificates for a transport of its own, which is never used.
            verify=False,
            trust_env=False,
            follow_redirects=False,
        )

    def close(self) -> None:
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
        """Fetch what is the same for every device.

        `path` must not depend on the reader's behaviour. With `etag` the answer may be 304 with an empty body.
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
    ) -> Answer:
        """Send exactly the sealed bytes. Raises TypeError for anything that isn't sealed.

        watch receives the stages encode, store (the byte log) and network.
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
    ) -> Answer:
        watch = watch or Stopwatch()
        with watch.stage("encode"):
            request = self._client.build_request(method, self.base_url + path, headers=headers, content=body or None)
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
    """Return the answer's ETag without quotes.

    None if it has none, or if it is so long that it could mark this device.
    """
    etag = answer.headers.get("etag", "").removeprefix("W/").strip('"')
    return etag if 0 < len(etag) <= _ETAG_LIMIT and etag.isascii() and '"' not in etag else None


def retry_after_sec(header: str) -> float | None:
    """Return the seconds of a Retry-After header, at most an hour.

    None if there is none, or if it is a date.
    """
    header = header.strip()
    if not (header.isascii() and header.isdigit()):
        return None
    return float(min(int(header[:9]), RETRY_AFTER_LIMIT_SEC))


def _head(request: httpx.Request) -> bytes:
    """Return the request line and headers as HTTP/1.1 sends them, without a token."""
    lines = [f"{request.method} {request.url.raw_path.decode('ascii')} HTTP/1.1".encode("ascii")]
    lines += [
        name + b": " + (value if name.lower() != b"authorization" else LEFT_OUT) for name, value in request.headers.raw
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _answer_head(response: httpx.Response) -> bytes:
    version = response.http_version.encode("ascii")
    lines = [b"%s %d %s" % (version, response.status_code, response.reason_phrase.encode("ascii", "replace"))]
    lines += [name + b": " + value for name, value in response.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _read(response: httpx.Response, limit_bytes: int, what: str) -> bytes:
    """Return the decoded body.

    Raises as soon as it passes the limit: neither a flood nor a gzip bomb can fill memory. httpx would undo several
    encodings one after another, each without a limit: 2 KB of gzip in gzip became 1 GB.
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
    """Yield the body's parts; a part of a gzip body is at most a byte longer than the limit.

    Raises AnswerMalformed.
    """
    if response.is_stream_consumed:  # an answer that this process has made itself, and read
        yield response.content
        return
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        yield from response.iter_raw()
        return
    if encoding != "gzip":
        raise AnswerMalformed(what, f"it is encoded as {encoding[:40]!r}, but gzip was requested")
    unpacker, packed = zlib.decompressobj(zlib.MAX_WBITS | 16), 0
    try:
        for part in response.iter_raw():
            packed += len(part)
            yield unpacker.decompress(part, limit_bytes + 1)
            if unpacker.unused_data:  # zlib keeps all that comes
                raise AnswerMalformed(what, "there are bytes after the end of its gzip data")
            if packed > limit_bytes + PACKING_BYTES:  # which may unpack to nothing
                raise AnswerMalformed(what, f"its compressed form has more than {limit_bytes + PACKING_BYTES} bytes")
    except zlib.error as broken:
        raise AnswerMalformed(what, f"its gzip data are damaged ({broken})") from broken
    if packed and not unpacker.eof:
        raise AnswerMalformed(what, "its gzip data are cut off")


def _problem(response: httpx.Response, content: bytes) -> Problem:
    if response.headers.get("content-type", "").split(";")[0].strip() == PROBLEM_MEDIA_TYPE:
        try:
            return Problem.model_validate_json(content)
        except ValidationError:
            pass  # not a valid problem: only its status counts
    status = response.status_code
    return Problem(
        type="about:blank",
        title=f"HTTP {status}",
        status=status,
        detail=f"the backend refused without saying why ({len(content)} bytes of another type)",
    )


def _another_version(status: int) -> Problem:
    """Return the problem for an answer in another protocol version.

    This device writes it, since it can't parse that version's problems.
    """
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

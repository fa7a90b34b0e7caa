"""Reads a feed from a file or over HTTP, with limits on addresses, size, time and redirects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import httpx

from backend.news.errors import SourceTooLarge, SourceUnreachable
from backend.news.public_addresses import CheckedTransport, HttpDeadline, IpNetwork, ProxyTransport
from backend.news.sources.content_encodings import ACCEPTED, FEED_LIMIT_BYTES, unpacked
from backend.news.sources.files import open_source

REDIRECT_LIMIT = 5
ANSWER_TIMEOUT_SEC = 20.0
"""The longest silence of a server."""
DOWNLOAD_TIMEOUT_SEC = 60.0
"""The longest download of one feed, including redirects, however steadily it trickles."""
USER_AGENT = "Ownfeed/0.1 (news reader; conditional GET)"
VALIDATOR_LIMIT_CHARS = 500
GIVEN_UP = "this server is stopping"
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
SAID = {410: "that it is gone for ever", 429: "that it was asked too often"}


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
    """How long its server calls it fresh (Cache-Control: max-age, minus Age); 0 if it didn't say."""
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
    """The feed at an http or https URL or in a file.

    NotModified if the server says that `known` is still current.

    allowed: non-public networks that may be fetched from. transport: carries the requests; by default the network, each
    hop to a checked address (`CheckedTransport`). cancelled: polled several times a second; once it returns true, the
    download is cancelled as unreachable. unverified: its certificate isn't checked. proxy: carries the requests, and
    resolves the names (`ProxyTransport`).

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
            _in_time(location, deadline, cancelled)  # else its connection was shut by us
            raise SourceUnreachable(location, str(error).rstrip(".") or type(error).__name__) from error
    raise SourceUnreachable(location, f"more than {REDIRECT_LIMIT} redirects")


def _why(status: int) -> str:
    return f"the server answered {status}" + (f", {SAID[status]}" if status in SAID else "")


def _facts(response: httpx.Response) -> tuple[str, Validators]:
    etag, last_modified = response.headers.get("etag"), response.headers.get("last-modified")
    if etag and len(etag) > VALIDATOR_LIMIT_CHARS:
        etag = None
    if last_modified and len(last_modified) > 100:
        last_modified = None
    return response.headers.get("content-type", ""), Validators(etag, last_modified)


def retry_after_sec(said: str, now: datetime | None = None) -> float:
    """Retry-After (RFC 9110, section 10.2.3), seconds or a date, as seconds from now.

    0 if it is neither.
    """
    if re.fullmatch(r"\s*[0-9]{1,12}\s*", said):
        return float(said)
    try:
        return max(0.0, (parsedate_to_datetime(said) - (now or datetime.now(UTC))).total_seconds())
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
    # a connection that was shut looks like the body's end if no length was declared
    _in_time(location, deadline, cancelled)
    return bytes(data)


def _in_time(location: str, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise SourceUnreachable(location, GIVEN_UP)
    if deadline.over:
        raise SourceUnreachable(location, f"the download took longer than {DOWNLOAD_TIMEOUT_SEC:g} s")

"""Gets a feed's bytes from a file or over HTTP, within limits of addresses, size, time and redirects."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import httpx

from backend.http_deadline import HttpDeadline
from backend.news.errors import SourceMalformed, SourceTooLarge, SourceUnreachable
from backend.news.sources.files import open_source
from backend.public_addresses import CheckedTransport, IpNetwork

FEED_LIMIT_BYTES = 10_000_000
REDIRECT_LIMIT = 5
ANSWER_TIMEOUT_SEC = 20.0
"""The longest silence of a server."""
DOWNLOAD_TIMEOUT_SEC = 60.0
"""The longest download of one feed, redirects included, however steadily it drips."""
USER_AGENT = "Ownfeed/0.1 (news reader; conditional GET)"
VALIDATOR_LIMIT_CHARS = 500
GIVEN_UP = "this server is stopping"
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Validators(NamedTuple):
    """What makes the next GET conditional (RFC 9110, section 8.8)."""

    etag: str | None = None
    last_modified: str | None = None


class Document(NamedTuple):
    """A feed's bytes, where they came from after redirects, and what the server said of them."""

    location: str
    base: str
    data: bytes
    content_type: str
    validators: Validators
    fresh_sec: float = 0.0
    """How long its server still calls it fresh (Cache-Control: max-age, less Age); 0 where it didn't say."""


class NotModified(NamedTuple):
    """The server says that what is known of the feed still holds (304); `fresh_sec` as of `Document`."""

    fresh_sec: float = 0.0


def fetch(
    location: str,
    known: Validators | None = None,
    *,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Document | NotModified:
    """The feed at an http or https URL or in a file; NotModified if the server says that `known` still holds.

    allowed: networks that are not public and may be fetched from all the same.
    transport: what carries the requests; by default the network, each hop to a checked address (`CheckedTransport`).
    cancelled: asked several times a second; once it says so, the download is given up as unreachable.
    Raises SourceUnreachable, SourceTooLarge, SourceMalformed.
    """
    if "://" not in location:
        with open_source(Path(location)) as stream:
            data = stream.read(FEED_LIMIT_BYTES + 1)
        if len(data) > FEED_LIMIT_BYTES:
            raise SourceTooLarge(location, FEED_LIMIT_BYTES)
        return Document(location, "", data, "", Validators())
    carrier = transport or CheckedTransport(allowed)
    with (
        httpx.Client(timeout=ANSWER_TIMEOUT_SEC, follow_redirects=False, trust_env=False, transport=carrier) as client,
        HttpDeadline(DOWNLOAD_TIMEOUT_SEC, cancelled) as deadline,
    ):
        return _get(client, location, known or Validators(), deadline, cancelled)


def _get(
    client: httpx.Client, location: str, known: Validators, deadline: HttpDeadline, cancelled: Callable[[], bool]
) -> Document | NotModified:
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip"}
    headers["Accept"] = "application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.1"
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    url = location
    for _ in range(REDIRECT_LIMIT + 1):
        _in_time(location, deadline, cancelled)
        if not url.lower().startswith(("http://", "https://")):
            raise SourceUnreachable(location, f"only http and https are followed, not {url.partition(':')[0]!r}")
        try:
            with client.stream("GET", url, headers=headers, extensions={"trace": deadline.trace}) as response:
                if response.status_code in REDIRECTS and "location" in response.headers:
                    url = urljoin(url, response.headers["location"])
                    continue
                if response.status_code == httpx.codes.NOT_MODIFIED:
                    return NotModified(_fresh_sec(response))
                if response.status_code != httpx.codes.OK:
                    wait = retry_after_sec(response.headers.get("retry-after", ""))
                    raise SourceUnreachable(location, f"the server answered {response.status_code}", wait)
                body = _body(location, response, deadline, cancelled)
                return Document(location, url, body, *_facts(response), fresh_sec=_fresh_sec(response))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # ValueError: of addresses in redirects that can't be one, by urllib or idna.
            _in_time(location, deadline, cancelled)  # else its connection was shut by us
            raise SourceUnreachable(location, str(error).rstrip(".") or type(error).__name__) from error
    raise SourceUnreachable(location, f"more than {REDIRECT_LIMIT} redirects")


def _facts(response: httpx.Response) -> tuple[str, Validators]:
    etag, last_modified = response.headers.get("etag"), response.headers.get("last-modified")
    if etag and len(etag) > VALIDATOR_LIMIT_CHARS:
        etag = None
    if last_modified and len(last_modified) > 100:
        last_modified = None
    return response.headers.get("content-type", ""), Validators(etag, last_modified)


def retry_after_sec(said: str, now: datetime | None = None) -> float:
    """Retry-After (RFC 9110, section 10.2.3), seconds or a date, as seconds from now; 0 where it says neither."""
    if re.fullmatch(r"\s*[0-9]{1,12}\s*", said):
        return float(said)
    try:
        return max(0.0, (parsedate_to_datetime(said) - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, TypeError, OverflowError):  # no date, one without a zone, or of a year that there never is
        return 0.0


def _fresh_sec(response: httpx.Response) -> float:
    """max-age less the time that the answer has spent in caches (RFC 9111, section 4.2)."""
    found = re.search(r"(?:^|[\s,])max-age=\"?(\d{1,9})", response.headers.get("cache-control", "").lower())
    age = re.fullmatch(r"\d{1,9}", response.headers.get("age", "").strip())
    return max(0.0, float(found[1]) - (float(age[0]) if age else 0.0)) if found else 0.0


def _body(location: str, response: httpx.Response, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> bytes:
    declared = response.headers.get("content-length", "")
    if re.fullmatch(r"[0-9]+", declared) and (len(declared) > 20 or int(declared) > FEED_LIMIT_BYTES):
        raise SourceTooLarge(location, FEED_LIMIT_BYTES)
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding == "identity":
        parts: Iterable[bytes] = response.iter_raw()
    elif encoding in {"gzip", "x-gzip"}:
        parts = _inflated(location, response.iter_raw())
    else:
        raise SourceMalformed(location, f"is sent in the encoding {encoding!r}; only gzip was asked for")
    data = bytearray()
    for part in parts:
        data += part
        if len(data) > FEED_LIMIT_BYTES:
            raise SourceTooLarge(location, FEED_LIMIT_BYTES)
        _in_time(location, deadline, cancelled)
    _in_time(location, deadline, cancelled)  # a connection that was shut is a body's end where no length was said
    return bytes(data)


def _in_time(location: str, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise SourceUnreachable(location, GIVEN_UP)
    if deadline.over:
        raise SourceUnreachable(location, f"the download took longer than {DOWNLOAD_TIMEOUT_SEC:g} s")


def _inflated(location: str, parts: Iterable[bytes]) -> Iterator[bytes]:
    """Inflates piece by piece, never more than the limit at once: httpx would unfold a whole bomb in memory."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        for part in parts:
            yield inflater.decompress(part, FEED_LIMIT_BYTES + 1)
            if inflater.unconsumed_tail:
                raise SourceTooLarge(location, FEED_LIMIT_BYTES)
    except zlib.error as error:
        raise SourceMalformed(location, f"is not valid gzip ({error})") from error

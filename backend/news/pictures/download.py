"""Downloads a picture over HTTP, with limits on addresses, size, time and redirects.

A feed chooses the addresses of its pictures, and their servers choose redirects. So every hop goes to a checked address
(`backend.news.public_addresses`), as for feeds. Requests carry no cookie and no referrer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import urljoin, urlsplit

import httpx

from backend.news.public_addresses import AddressRefused, CheckedTransport, HttpDeadline, IpNetwork
from backend.news.sources.download import REDIRECTS, retry_after_sec

LIMIT_BYTES = 8_000_000
"""Limit for a picture as published; one of 6,000 x 4,000 pixels is 3 to 6 MB as JPEG."""
REDIRECT_LIMIT = 5
SILENCE_SEC, DOWNLOAD_SEC = 10.0, 30.0
"""Time limits of a server's silence, and of a whole download including redirects."""
RETRY_AFTER_LIMIT_SEC = 6 * 3_600
"""Upper limit for a server's Retry-After."""
HEADERS = {
    "User-Agent": "Ownfeed/0.1 (news reader)",
    "Accept": "image/webp,image/jpeg,image/png,image/gif;q=0.5",
    "Accept-Encoding": "identity",
}
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses for which a retry may succeed."""


class PictureMissing(Exception):
    """The picture can't be downloaded.

    wait: minimum time until the next try; None: don't retry. host: the host that failed, after redirects.
    """

    def __init__(self, why: str, wait: timedelta | None = None) -> None:
        super().__init__(why)
        self.why, self.wait = why, wait
        self.host = ""


def download(
    url: str,
    *,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> bytes:
    """The bytes at an http or https address, whatever content type the server declares.

    allowed, transport, cancelled: as in `backend.news.sources.download.fetch`. Raises PictureMissing.
    """
    carrier = transport or CheckedTransport(allowed)
    with (
        httpx.Client(timeout=SILENCE_SEC, follow_redirects=False, trust_env=False, transport=carrier) as client,
        HttpDeadline(DOWNLOAD_SEC, cancelled) as deadline,
    ):
        for _ in range(REDIRECT_LIMIT + 1):
            try:
                _in_time(deadline, cancelled)
                got = _got(client, url, deadline, cancelled)
            except PictureMissing as missing:
                missing.host = host_name(url)
                raise
            if isinstance(got, bytes):
                return got
            url = got
    raise PictureMissing(f"Its server redirected more than {REDIRECT_LIMIT} times.")


def host_name(url: str) -> str:
    """An address's host in lower case, without its port; '' if the address is not valid."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _got(client: httpx.Client, url: str, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> bytes | str:
    """The picture, or the address that its server redirects to."""
    if not url.lower().startswith(("http://", "https://")):
        raise PictureMissing(f"Only http and https are followed, not {url.partition(':')[0][:20]!r}.")
    try:
        with client.stream("GET", url, headers=HEADERS, extensions={"trace": deadline.trace}) as response:
            if response.status_code in REDIRECTS and "location" in response.headers:
                return urljoin(url, response.headers["location"])
            _answered(response)
            return _body(response, deadline, cancelled)
    except AddressRefused as refused:
        raise PictureMissing(f"{refused}.", timedelta()) from refused  # retried, since the name may not resolve now
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as broken:
        # ValueError: urllib or idna rejects an address in a redirect.
        _in_time(deadline, cancelled)  # raises if we shut the connection ourselves
        why = str(broken).rstrip(".") or type(broken).__name__
        raise PictureMissing(f"Its server couldn't be reached ({why}).", timedelta()) from broken


def _in_time(deadline: HttpDeadline, cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise PictureMissing("This server is stopping.", timedelta())
    if deadline.over:
        raise PictureMissing(f"The download took longer than {DOWNLOAD_SEC:g} s.", timedelta())


def _answered(response: httpx.Response) -> None:
    status = response.status_code
    if status in PASSING:
        wait = timedelta(seconds=min(retry_after_sec(response.headers.get("retry-after", "")), RETRY_AFTER_LIMIT_SEC))
        raise PictureMissing(f"Its server answered {status}.", wait)
    if status != httpx.codes.OK:
        raise PictureMissing(f"Its server answered {status}.")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise PictureMissing("Its server sent it in an encoding that wasn't asked for.")
    declared = response.headers.get("content-length", "")
    if re.fullmatch(r"[0-9]+", declared) and (len(declared) > 20 or int(declared) > LIMIT_BYTES):
        raise PictureMissing(f"It has more than {LIMIT_BYTES:,} bytes.")


def _body(response: httpx.Response, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> bytes:
    content = bytearray()
    for part in response.iter_raw():
        content += part
        if len(content) > LIMIT_BYTES:
            raise PictureMissing(f"It has more than {LIMIT_BYTES:,} bytes.")
        _in_time(deadline, cancelled)
    _in_time(deadline, cancelled)  # without a declared length, a shut connection looks like the end of the body
    return bytes(content)

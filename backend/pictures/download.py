"""Gets a picture's bytes over HTTP, within limits of addresses, size, time and redirects.

A feed chooses where its pictures are, and a picture's server where it leads on to: every hop goes to a checked address
(`backend.public_addresses`), as for the feeds themselves. Nothing is sent but the request: no cookie, no referrer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import urljoin, urlsplit

import httpx

from backend.http_deadline import HttpDeadline
from backend.news.sources.download import REDIRECTS, retry_after_sec
from backend.public_addresses import AddressRefused, CheckedTransport, IpNetwork

LIMIT_BYTES = 8_000_000
"""Of a picture as its publisher has it; one of 6,000 x 4,000 pixels is 3 to 6 MB as JPEG."""
REDIRECT_LIMIT = 5
SILENCE_SEC, DOWNLOAD_SEC = 10.0, 30.0
"""The longest silence of a server, and the longest download, redirects included, however steadily it drips."""
RETRY_AFTER_LIMIT_SEC = 6 * 3_600
"""Of what a server asks for (Retry-After), so much is heeded."""
HEADERS = {
    "User-Agent": "Ownfeed/0.1 (news reader)",
    "Accept": "image/webp,image/jpeg,image/png,image/gif;q=0.5",
    "Accept-Encoding": "identity",
}
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers that another try may change."""


class PictureMissing(Exception):
    """The picture can't be had. wait: at least so long until it may be tried again; None: trying is of no use. host:
    which one it failed at, after redirects."""

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
    """What is at an http or https address, whatever its server calls it.

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
    raise PictureMissing(f"Its server leads on more than {REDIRECT_LIMIT} times.")


def host_name(url: str) -> str:
    """An address's host in lower case, without its port; '' for what is no address."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _got(client: httpx.Client, url: str, deadline: HttpDeadline, cancelled: Callable[[], bool]) -> bytes | str:
    """The picture, or the address that its server leads on to."""
    if not url.lower().startswith(("http://", "https://")):
        raise PictureMissing(f"Only http and https are followed, not {url.partition(':')[0][:20]!r}.")
    try:
        with client.stream("GET", url, headers=HEADERS, extensions={"trace": deadline.trace}) as response:
            if response.status_code in REDIRECTS and "location" in response.headers:
                return urljoin(url, response.headers["location"])
            _answered(response)
            return _body(response, deadline, cancelled)
    except AddressRefused as refused:
        raise PictureMissing(f"{refused}.", timedelta()) from refused  # also where its name has no address just now
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as broken:
        # ValueError: of addresses in redirects that can't be one, by urllib or idna.
        _in_time(deadline, cancelled)  # else its connection was shut by us
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
    _in_time(deadline, cancelled)  # a connection that was shut is a body's end where no length was said
    return bytes(content)

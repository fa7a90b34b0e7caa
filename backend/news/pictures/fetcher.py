"""Fetches a batch of publishers' pictures within a total time limit.

It requests several hosts at a time, one picture per host, with limits on addresses, size, time and redirects.

A feed chooses the addresses of its pictures, and their servers choose redirects. So every hop goes to a checked address
(`backend.news.public_addresses`), as for feeds. Requests carry no cookie and no referrer.
"""

import logging
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urljoin, urlsplit

import httpx
from sqlalchemy import Engine

from backend.db.advisory_lock import awaited_lock
from backend.news.pictures.converter import PictureRefused, convert
from backend.news.pictures.shards import PictureShards
from backend.news.pictures.store import PicturedStory, PictureRepository
from backend.news.public_addresses import AddressRefused, CheckedTransport, HttpDeadline, IpNetwork
from backend.news.sources.download import REDIRECTS, retry_after_sec
from protocol.pictures import (
    PICTURE_HEIGHT,
    PICTURE_WIDTH,
    TEXT_PICTURE_HEIGHT,
    TEXT_PICTURE_WIDTH,
    PictureError,
    check_picture,
)

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
    """The bytes at an http or https address, of any declared content type.

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


WORK = "pictures"
"""Name of the lock held while the set of stored pictures changes."""
HOSTS_AT_ONCE, FETCHED_AT_ONCE, FEED_AT_ONCE = 4, 48, 12
"""Limits of a batch: hosts in parallel (one picture each at a time), pictures in total, and pictures of one feed."""
FETCHING_SEC = 60.0
"""Seconds after which a batch starts no further download."""
TRIES, FIRST_WAIT = 4, timedelta(minutes=10)
"""Number of tries for a picture that may become available; each wait is four times the previous one."""
LONGEST_WAIT = timedelta(hours=12)
"""The longest of these waits; an apparently longer one means that the clock has been set back since."""
CONVERTING = threading.Lock()
"""Only one picture is decoded at a time, which bounds memory to that of one process."""

_log = logging.getLogger(__name__)


class PictureFetcher:
    """Downloads and converts pictures, and records the results.

    allowed: non-public networks in which a feed there may have its pictures. A feed counts as in such a network only if
    its own address has an IP address as its host, since what a name resolves to can change at any time.
    """

    def __init__(
        self,
        engine: Engine,
        store: PictureRepository,
        shards: PictureShards,
        stopping: threading.Event,
        *,
        allowed: Sequence[IpNetwork],
        clock: Callable[[], datetime],
        transport: httpx.BaseTransport | None,
    ) -> None:
        self._engine, self._store, self._shards, self._stopping = engine, store, shards, stopping
        self._allowed, self._clock, self._transport = allowed, clock, transport
        self._settling, self._lock = threading.Lock(), threading.Lock()
        self._resting: dict[tuple[str, str], datetime] = {}

    def waits(self, story: PicturedStory, now: datetime) -> bool:
        """Whether a missing picture may be requested now: neither it nor its host is waiting for a retry."""
        with self._lock:
            rests = self._resting.get((story.source, host_name(story.url)))
        return not any(until is not None and _ahead(until, now) for until in (story.due_at, rests))

    def fetch(self, due: Sequence[PicturedStory]) -> int:
        """Fetch a batch of them, alternating between feeds and hosts; return how many were in the batch."""
        now = self._clock()
        with self._lock:
            self._resting = {key: until for key, until in self._resting.items() if _ahead(until, now)}
        by_host: dict[str, list[PicturedStory]] = {}
        for story in (batch := in_turn(due)):
            by_host.setdefault(host_name(story.url), []).append(story)
        waiting: queue.SimpleQueue[list[PicturedStory]] = queue.SimpleQueue()
        until = time.monotonic() + FETCHING_SEC
        for stories in by_host.values():
            waiting.put(stories)
        # Daemon threads: a process that exits doesn't wait for a picture's server.
        workers = [
            threading.Thread(target=self._work, args=(waiting, until), name="picture-reader", daemon=True)
            for _ in range(min(HOSTS_AT_ONCE, len(by_host)))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return len(batch)

    def _work(self, waiting: queue.SimpleQueue[list[PicturedStory]], until: float) -> None:
        while not self._stopping.is_set() and time.monotonic() < until:
            try:
                stories = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                for story in stories:
                    if self._stopping.is_set() or time.monotonic() >= until:
                        break
                    if self.waits(story, self._clock()):  # a host that doesn't answer is left alone for a while
                        self._take(story)
            except Exception:
                # Not even the failure could be recorded; the pictures stay due, and the other hosts continue.
                _log.exception("the result of fetching a picture could not be recorded")

    def _take(self, story: PicturedStory) -> None:
        cancelled = self._stopping.is_set
        try:
            allowed = self._networks(story)
            content = download(story.url, allowed=allowed, transport=self._transport, cancelled=cancelled)
            with CONVERTING:
                if story.of_text:
                    shown = convert(content, TEXT_PICTURE_WIDTH, TEXT_PICTURE_HEIGHT, whole=True)
                else:
                    shown = convert(content, PICTURE_WIDTH, PICTURE_HEIGHT)
                made = check_picture(shown, story.of_text)
        except PictureMissing as missing:
            if self._stopping.is_set():
                return
            if missing.wait is not None:
                until = self._clock() + max(missing.wait, FIRST_WAIT)
                with self._lock:  # also the host that redirects there, since each request to it would fail
                    self._resting |= {(story.source, host): until for host in (host_name(story.url), missing.host)}
            given_up = missing.wait is None or story.attempts + 1 >= TRIES
            pause = max(missing.wait or timedelta(), FIRST_WAIT * 4**story.attempts)
            self._store.failed(story, missing.why, None if given_up else self._clock() + pause)
        except (PictureRefused, PictureError) as refused:
            self._store.failed(story, str(refused), None)
        else:
            # Under the lock, since the sweep deletes stored objects without a row.
            with self._settling, awaited_lock(self._engine, WORK):
                self._store.made(story, self._shards.keep_picture(made), len(made))

    def _networks(self, story: PicturedStory) -> Sequence[IpNetwork]:
        try:
            address = ip_address(host_name(story.source))
        except ValueError:
            return ()
        return [network for network in self._allowed if address in network]


def in_turn(due: Sequence[PicturedStory]) -> list[PicturedStory]:
    """The next FETCHED_AT_ONCE pictures: the first of each feed, then the second of each, up to FEED_AT_ONCE.

    Within a feed, hosts alternate in the same way. So a feed with slow pictures delays no other feed.
    """
    of_host: Counter[tuple[str, str]] = Counter()
    by_host: list[tuple[int, PicturedStory]] = []
    for story in due:
        key = (story.source, host_name(story.url))
        by_host.append((of_host[key], story))
        of_host[key] += 1
    of_feed: Counter[str] = Counter()
    by_feed: list[tuple[int, PicturedStory]] = []
    for _, story in sorted(by_host, key=lambda each: each[0]):
        by_feed.append((of_feed[story.source], story))
        of_feed[story.source] += 1
    by_feed.sort(key=lambda each: each[0])
    return [story for place, story in by_feed if place < FEED_AT_ONCE][:FETCHED_AT_ONCE]


def _ahead(until: datetime, now: datetime) -> bool:
    return timedelta() < until - now <= LONGEST_WAIT

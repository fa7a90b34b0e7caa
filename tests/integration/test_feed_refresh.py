"""The scheduler of feeds against a local web server, over sockets, with the test's clock.

Oracle: RFC 9110 and 9111 (validators, Retry-After, max-age), and the server's requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import Engine

from backend.news.feed_refresh import follow
from backend.news.feed_scheduler import FeedScheduler, utc_now
from backend.news.followed_feeds import WAIT_LIMIT, FollowedFeed
from backend.news.pool import NewsPool
from backend.news.public_addresses import networks
from tests.doubles.clock import StillClock

EVERY = timedelta(minutes=30)
THIS_MACHINE = networks(["127.0.0.0/8"])
LONGEST_SEC = 60.0


@dataclass
class ScriptedAnswer:
    """The server's next answer: a status, headers, and the title of the one story that a 200 lists."""

    status: int = 200
    title: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        link = "https://courant.example/" + self.title.replace(" ", "-")
        return (
            '<?xml version="1.0"?><rss version="2.0"><channel><title>Courant</title>'
            f"<item><title>{self.title}</title><link>{link}</link></item></channel></rss>"
        ).encode()


class FeedServer:
    """One feed on its own port. With an etag set it answers a request that names it with 304."""

    def __init__(self) -> None:
        self.answer, self.asked = ScriptedAnswer(title="The ferry sails again"), list[Message]()
        self.received = threading.Event()
        outer = self

        class FeedHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.headers)
                said = outer.answer
                held = said.status == 200 and said.headers.get("ETag") == self.headers.get("If-None-Match") is not None
                body = said.body() if said.status == 200 and not held else b""
                self.send_response(304 if held else said.status)
                for name, value in {**said.headers, "Content-Type": "application/rss+xml"}.items():
                    self.send_header(name, value)
                if not held:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                outer.received.set()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), FeedHandler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/rss"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass
class RefreshedFeed:
    server: FeedServer
    clock: StillClock
    pool: NewsPool
    scheduler: FeedScheduler

    def only(self) -> FollowedFeed:
        (found,) = self.scheduler.followed.all()
        return found

    def titles(self) -> set[str]:
        return {row.title for row in self.pool.live(self.clock())}

    def look(self) -> timedelta:
        """Advance to when the feed is due, let it be read, and return how long it then waits."""
        due_at = self.only().due_at
        self.clock.go_on(max(0.0, (due_at - self.clock()).total_seconds()))
        assert self.scheduler.step() == 1
        assert self.scheduler.step() == 0, "not due before its time"
        return self.only().due_at - self.clock()


@pytest.fixture
def world(engine: Engine) -> Iterator[RefreshedFeed]:
    server, clock = FeedServer(), StillClock()
    pool = NewsPool(engine, clock=clock)
    scheduler = FeedScheduler(
        engine,
        pool,
        every=EVERY,
        allowed=THIS_MACHINE,
        clock=clock,
        chance=lambda: 0.0,
        sleep=clock.go_on,
    )  # the network itself carries the requests
    scheduler.followed.add(server.url, clock())
    yield RefreshedFeed(server, clock, pool, scheduler)
    scheduler.stop()
    server.close()


def test_feed_is_read_once_then_requested_conditionally(world: RefreshedFeed) -> None:
    world.server.answer.headers = {"ETag": '"v1"', "Last-Modified": "Thu, 19 Nov 2026 10:00:00 GMT"}
    assert world.look() == EVERY
    assert world.titles() == {"The ferry sails again"}
    version = world.pool.version()

    assert world.look() == EVERY
    assert world.only().fetched_at == world.clock()
    assert world.pool.version() == version, "a 304 changes nothing"

    world.server.answer = ScriptedAnswer(title="The ferry has stopped", headers={"ETag": '"v2"'})
    world.look()
    assert world.titles() == {"The ferry sails again", "The ferry has stopped"}
    world.look()
    assert [asked["If-None-Match"] for asked in world.server.asked] == [None, '"v1"', '"v1"', '"v2"']
    assert [asked["If-Modified-Since"] for asked in world.server.asked][1] == "Thu, 19 Nov 2026 10:00:00 GMT"


def test_missing_feed_is_requested_less_often_until_it_answers(
    world: RefreshedFeed,
) -> None:
    world.server.answer.headers = {"ETag": '"v1"'}
    world.look()
    before, world.server.answer = world.server.answer, ScriptedAnswer(404)
    for failures, factor in ((1, 1), (2, 2), (3, 4)):
        assert world.look() == EVERY * factor
        assert (world.only().failures, world.only().error) == (
            failures, f"{world.server.url} can't be read: the server answered 404.",
        )  # fmt: skip
    assert world.titles() == {"The ferry sails again"}, "its news stay"

    world.server.answer = before
    assert world.look() == EVERY
    assert (world.only().failures, world.only().error) == (0, None), "a 304 is an answer too"


def test_unreachable_feed_server_is_reported(world: RefreshedFeed) -> None:
    world.server.close()
    assert world.look() == EVERY
    assert world.only().failures == 1
    assert str(world.only().error).startswith(f"{world.server.url} can't be read: ")


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (ScriptedAnswer(429, headers={"Retry-After": "7200"}), timedelta(hours=2)),
        (ScriptedAnswer(429, headers={"Retry-After": "60"}), timedelta(minutes=1)),
        (ScriptedAnswer(500, headers={"Retry-After": "60"}), EVERY),
        (ScriptedAnswer(503, headers={"Retry-After": "99999999"}), WAIT_LIMIT),
        (ScriptedAnswer(title="a", headers={"Cache-Control": "public, max-age=7200"}), timedelta(hours=2)),
        (ScriptedAnswer(title="a", headers={"Cache-Control": "max-age=7200", "Age": "1800"}), timedelta(hours=1.5)),
        (ScriptedAnswer(title="a", headers={"Cache-Control": "max-age=60"}), EVERY),
        (ScriptedAnswer(title="a", headers={"Cache-Control": "max-age=999999999"}), WAIT_LIMIT),
        (ScriptedAnswer(title="a", headers={"Cache-Control": "max-age=soon", "Age": "-1"}), EVERY),
    ],
)
def test_delay_requested_by_a_server_is_respected_up_to_the_limit(
    world: RefreshedFeed, answer: ScriptedAnswer, wait: timedelta
) -> None:
    world.server.answer = answer
    assert world.look() == wait


def test_response_304_also_sets_the_delay(world: RefreshedFeed) -> None:
    world.server.answer.headers = {"ETag": '"v1"'}
    world.look()
    world.server.answer.headers["Cache-Control"] = "max-age=7200"
    assert world.look() == timedelta(hours=2)
    assert world.server.asked[-1]["If-None-Match"] == '"v1"'


def test_feed_added_by_hand_is_not_requested_again_before_its_cache_expires(world: RefreshedFeed) -> None:
    world.server.answer.headers = {"ETag": '"v1"', "Cache-Control": "max-age=7200"}
    now, feeds = world.clock(), world.scheduler.followed
    for seconds in (7200, 999_999_999):  # the second time it's a 304
        world.server.answer.headers["Cache-Control"] = f"max-age={seconds}"
        follow(world.pool, feeds, world.server.url, now=now, due_at=now + EVERY, allowed=THIS_MACHINE)
        assert world.only().due_at == now + min(timedelta(seconds=seconds), WAIT_LIMIT)


def test_waking_the_scheduler_reads_an_added_feed(world: RefreshedFeed) -> None:
    world.scheduler.followed.remove(world.server.url, world.clock())
    world.scheduler.start()
    world.scheduler.followed.add(world.server.url, world.clock())
    world.scheduler.wake()
    assert world.server.received.wait(LONGEST_SEC)
    _until(lambda: world.only().fetched_at is not None)
    assert world.titles() == {"The ferry sails again"}


def _until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread is about to record."""
    given_up_at = time.monotonic() + LONGEST_SEC
    while not holds():
        assert time.monotonic() < given_up_at, "never so"
        time.sleep(0.02)


def test_feeds_of_a_rate_limited_host_are_all_read_in_time(engine: Engine) -> None:
    """Uses sockets and the machine's clock. Oracle: the host's own log."""
    log, lock = list[tuple[float, int]](), threading.Lock()

    class LimitedHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with lock:
                now = time.monotonic()
                last = max((at for at, status in log if status == 200), default=-1e9)
                status = 200 if now - last >= 0.9 else 429
                log.append((now, status))
            body = ScriptedAnswer(title=f"From {self.path}").body() if status == 200 else b""
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), LimitedHandler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    pool = NewsPool(engine)
    scheduler = FeedScheduler(engine, pool, every=EVERY, pause_sec=0.05, allowed=THIS_MACHINE)
    for number in range(3):
        scheduler.followed.add(f"http://127.0.0.1:{server.server_address[1]}/{number}", utc_now())
    scheduler.start()
    try:
        _until(lambda: all(feed.fetched_at for feed in scheduler.followed.all()))
    finally:
        scheduler.stop()
        server.shutdown()
        server.server_close()
    refused = [at for at, status in log if status == 429]
    assert len(refused) == 1
    assert not [at for at, _ in log if refused[0] < at < refused[0] + 1.0]

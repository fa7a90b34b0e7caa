"""The scheduler of feeds, with a fixed clock, servers and jitter of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import Engine, insert

from backend.db.advisory_lock import advisory_lock
from backend.db.engine import writing
from backend.db.tables import FeedRow
from backend.news.errors import FeedNotFollowed, FeedRefused
from backend.news.feed_addresses import checked_url
from backend.news.feed_refresh import follow
from backend.news.feed_scheduler import FEEDS_AT_ONCE, WORK, FeedScheduler, wait
from backend.news.followed_feeds import FEEDS_LIMIT, WAIT_LIMIT, FollowedFeed, FollowedFeeds
from backend.news.pool import NewsPool
from backend.news.sources.download import Validators, retry_after_sec
from tests.doubles.clock import StillClock

URL = "https://courant.example/rss"
EVERY = timedelta(minutes=30)
Handler = Callable[[httpx.Request], httpx.Response]


def feed(name: str = "a", **headers: str) -> httpx.Response:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    words = (
        '<?xml version="1.0"?><rss version="2.0"><channel><title>Courant</title>'
        f"<item><title>Ferry {name} sails again</title><link>https://courant.example/{name}</link></item></channel></rss>"
    )
    return httpx.Response(200, headers=named, stream=httpx.ByteStream(words.encode()))


class SteppedScheduler:
    """A scheduler over an empty pool, its clock, and the requests to its feeds' servers."""

    def __init__(self, engine: Engine, handler: Handler, chance: float = 0.0) -> None:
        self.clock, self.asked = StillClock(), list[httpx.Request]()
        self.handler = handler

        def answered(request: httpx.Request) -> httpx.Response:
            self.asked.append(request)
            return self.handler(request)

        self.pool = NewsPool(engine, clock=self.clock)
        self.scheduler = FeedScheduler(
            engine, self.pool, every=EVERY, clock=self.clock, chance=lambda: chance,
            transport=httpx.MockTransport(answered), sleep=self.clock.go_on,
        )  # fmt: skip
        self.feeds = self.scheduler.followed

    def only(self) -> FollowedFeed:
        (found,) = self.feeds.all()
        return found

    def titles(self) -> set[str]:
        return {row.title for row in self.pool.live(self.clock())}


def test_due_feed_is_read_and_later_requested_conditionally(engine: Engine) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(304) if "if-none-match" in request.headers else feed(etag='"v1"')

    rig = SteppedScheduler(engine, handler, chance=0.5)
    rig.feeds.add(URL, rig.clock())
    assert rig.only().fetched_at is None
    assert rig.scheduler.step() == 1
    assert rig.titles() == {"Ferry a sails again"}
    assert (rig.only().fetched_at, rig.only().due_at) == (rig.clock(), rig.clock() + EVERY * 1.05)
    assert rig.scheduler.step() == 0, "not due"

    rig.clock.go_on(EVERY.total_seconds() * 1.05)
    assert rig.scheduler.step() == 1
    assert [request.headers.get("if-none-match") for request in rig.asked] == [None, '"v1"']
    assert rig.only().fetched_at == rig.clock()
    assert rig.feeds.last(URL) == Validators('"v1"'), "a 304 keeps the validators"


def test_each_error_doubles_the_wait_and_an_answer_resets_it(engine: Engine) -> None:
    rig = SteppedScheduler(engine, lambda _: httpx.Response(500))
    rig.feeds.add(URL, rig.clock())
    for failures, factor in ((1, 1), (2, 2), (3, 4)):
        assert rig.scheduler.step() == 1
        found = rig.only()
        assert found.error == f"{URL} can't be read: the server answered 500."
        assert (found.failures, found.due_at - rig.clock()) == (failures, EVERY * factor)
        rig.clock.go_on((found.due_at - rig.clock()).total_seconds())
    rig.handler = lambda _: feed()
    assert rig.scheduler.step() == 1
    assert (rig.only().failures, rig.only().error, rig.only().due_at) == (0, None, rig.clock() + EVERY)


def test_waits_are_bounded_and_respect_the_servers_request() -> None:
    assert wait(EVERY, 0.0, failures=10_000) == WAIT_LIMIT
    assert wait(EVERY, 0.0, asked_sec=7_200) == timedelta(hours=2)
    assert wait(EVERY, 0.0, asked_sec=60) == EVERY
    assert wait(EVERY, 0.0, asked_sec=float("inf")) == WAIT_LIMIT
    assert wait(timedelta(days=7), 0.0, failures=3) == timedelta(days=7)
    assert EVERY * 1.09 < wait(EVERY, 0.999) < EVERY * 1.1


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("120", 120.0), (" 5 ", 5.0), ("Fri, 20 Nov 2026 09:00:00 GMT", 3_600.0), ("Fri, 20 Nov 2026 07:00:00 GMT", 0.0),
     ("", 0.0), ("soon", 0.0), ("-5", 0.0)],
)  # fmt: skip
def test_retry_after_is_read_as_seconds_or_a_date(said: str, seconds: float) -> None:
    assert retry_after_sec(said, StillClock()()) == seconds


@pytest.mark.parametrize(
    ("answer", "failures"),
    [
        (lambda _: httpx.Response(503, headers={"retry-after": "7200"}), 1),
        (lambda _: feed(cache_control="public, max-age=7200"), 0),
    ],
)
def test_retry_after_and_a_cache_lifetime_delay_the_next_request(
    engine: Engine, answer: Handler, failures: int
) -> None:
    rig = SteppedScheduler(engine, answer)
    rig.feeds.add(URL, rig.clock())
    rig.scheduler.step()
    assert (rig.only().failures, rig.only().due_at) == (failures, rig.clock() + timedelta(hours=2))


def test_failing_feed_does_not_stop_the_others(engine: Engine) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/1":
            raise RuntimeError("a defect")
        return (
            httpx.Response(200, stream=httpx.ByteStream(b"<html>"))
            if request.url.path == "/2"
            else feed(request.url.path[1:])
        )

    rig = SteppedScheduler(engine, handler)
    for number in range(7):
        rig.feeds.add(f"https://courant.example/{number}", rig.clock())
    assert rig.scheduler.step() == 7
    assert [one.failures for one in rig.feeds.all()] == [0, 1, 1, 0, 0, 0, 0]
    assert "RuntimeError" in (rig.feeds.all()[1].error or "")
    assert "web page" in (rig.feeds.all()[2].error or "")
    assert len(rig.titles()) == 5


def test_number_of_concurrent_feed_reads_is_bounded(engine: Engine) -> None:
    meeting = threading.Barrier(FEEDS_AT_ONCE)  # broken, and so a failure, if fewer come together
    lock, running, most = threading.Lock(), 0, 0

    def handler(request: httpx.Request) -> httpx.Response:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait(60)
        with lock:
            running -= 1
        return feed(request.url.host)

    rig = SteppedScheduler(engine, handler)
    for number in range(2 * FEEDS_AT_ONCE):
        rig.feeds.add(f"https://{number}.example/", rig.clock())
    rig.scheduler.step()
    assert [one.error for one in rig.feeds.all()] == [None] * (2 * FEEDS_AT_ONCE)
    assert most == FEEDS_AT_ONCE


def test_only_one_process_refreshes_at_a_time(engine: Engine) -> None:
    rig = SteppedScheduler(engine, lambda _: feed())
    rig.feeds.add(URL, rig.clock())
    with advisory_lock(engine, WORK) as mine:
        assert mine
        assert rig.scheduler.step() == 0
        assert rig.asked == []
    assert rig.scheduler.step() == 1


def test_paused_feed_waits_and_a_resumed_one_is_due_at_once(engine: Engine) -> None:
    rig = SteppedScheduler(engine, lambda _: httpx.Response(500))
    rig.feeds.add(URL, rig.clock())
    rig.scheduler.step()
    rig.feeds.pause(URL)
    rig.clock.go_on(1e6)
    assert rig.scheduler.step() == 0
    rig.feeds.resume(URL, rig.clock())
    assert (rig.only().failures, rig.only().error, rig.only().paused) == (0, None, False)
    assert rig.scheduler.step() == 1


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=400)], ids=["an hour", "a year"])
def test_feed_postponed_by_a_fast_clock_is_read_once_it_is_corrected(engine: Engine, ahead: timedelta) -> None:
    """Regression: it was read again only when the clock reached the time to which it had once been ahead."""
    rig = SteppedScheduler(engine, lambda _: feed())
    right = rig.clock()
    rig.clock.go_on(ahead.total_seconds())
    rig.feeds.add(URL, rig.clock())
    rig.feeds.add(f"{URL}/2", rig.clock())
    assert rig.scheduler.step() == 2
    rig.feeds.pause(f"{URL}/2")
    rig.clock.now = right
    rig.handler = lambda _: httpx.Response(500)
    assert rig.scheduler.step() == 1, "the other is paused"
    found = rig.feeds.all()[0]
    assert (found.fetched_at, found.failures, found.due_at - right) == (right, 1, EVERY), "and not at every look"
    assert rig.scheduler.step() == 0
    rig.feeds.resume(f"{URL}/2", right)
    assert rig.scheduler.step() == 1


def test_failures_under_a_fast_clock_delay_at_most_the_longest_wait(engine: Engine) -> None:
    rig = SteppedScheduler(engine, lambda _: httpx.Response(500))
    right = rig.clock()
    rig.feeds.add(URL, right)
    rig.clock.go_on(40 * 86_400)
    rig.scheduler.step()
    rig.clock.now = right
    rig.handler = lambda _: feed()
    assert rig.scheduler.step() == 1
    assert (rig.only().fetched_at, rig.only().due_at) == (right, right + EVERY)


@pytest.mark.parametrize("every", [EVERY, timedelta(days=3)], ids=["half an hour", "three days"])
def test_regular_wait_is_not_mistaken_for_a_clock_set_back(engine: Engine, every: timedelta) -> None:
    rig = SteppedScheduler(engine, lambda _: httpx.Response(503, headers={"retry-after": "9999999"}), chance=0.999)
    rig.scheduler.every = rig.scheduler.seldom = every
    rig.feeds.add(URL, rig.clock())
    for _ in range(9):
        assert rig.scheduler.step() == 1
        assert rig.scheduler.step() == 0
        rig.clock.go_on(-30.0)  # set by its time server
        assert rig.scheduler.step() == 0
        rig.clock.go_on((rig.only().due_at - rig.clock()).total_seconds())


def test_feed_removed_while_read_does_not_return(engine: Engine) -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        rig.feeds.remove(URL, rig.clock())
        return feed()

    rig = SteppedScheduler(engine, handler)
    rig.feeds.add(URL, rig.clock())
    assert rig.scheduler.step() == 1
    assert rig.feeds.all() == []


def test_stopping_cancels_downloads_without_counting_failures(engine: Engine) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def handler(_: httpx.Request) -> httpx.Response:
        begun.set()
        assert stopped.wait(60)
        return feed()

    rig = SteppedScheduler(engine, handler)
    for number in range(2 * FEEDS_AT_ONCE):
        rig.feeds.add(f"https://courant.example/{number}", rig.clock())
    before = rig.feeds.all()
    rig.scheduler.start()
    assert begun.wait(60)
    rig.scheduler._stopping.set()
    stopped.set()
    rig.scheduler.stop()
    assert rig.scheduler._thread is not None
    assert not rig.scheduler._thread.is_alive()
    assert rig.feeds.all() == before, "all still due, none failed"
    assert len(rig.asked) <= FEEDS_AT_ONCE


def test_interval_of_zero_disables_automatic_refresh(engine: Engine) -> None:
    scheduler = FeedScheduler(engine, NewsPool(engine), every=timedelta(0))
    scheduler.start()
    assert scheduler._thread is None
    scheduler.stop()


def test_reading_the_address_of_a_feed_by_hand_also_follows_it(engine: Engine) -> None:
    rig = SteppedScheduler(engine, lambda _: feed())
    later = rig.clock() + EVERY
    transport = httpx.MockTransport(rig.handler)
    follow(rig.pool, rig.feeds, URL, now=rig.clock(), due_at=later, transport=transport)
    assert (rig.only().url, rig.only().due_at, rig.only().fetched_at) == (URL, later, rig.clock())


@pytest.mark.parametrize(
    ("url", "why"),
    [("ftp://courant.example/", "must be complete"), ("courant.example/rss", "must be complete"),
     ("http://", "must be complete"), ("http://[a.example]/", "must be complete"),
     ("http://a.example:99999/", "port is '99999'.*port 80, 443, or one from 1,024 to 65,535"),
     ("http://a.example:eighty/", "port is 'eighty'"), ("http://me:you@a.example:-80/", "port is '-80'"),
     ("http://a.example:0/", "port is '0'"), ("http://[2001:db8::1]:22/", "port is '22'"),
     ("http://a.example:\u0668\u0660/", "port is '\u0668\u0660'"), ("http://a.example:" + "1" * 999, "port is '1"),
     ("http://999.1.1.1/", "'999.1.1.1' can't be"), ("http://xn--a/", "'xn--a' can't be"),
     ("http://\u00fc" + "x" * 99 + "/", "…' can't be"),
     ("http://a.example/ b", "spaces"), ("http://a.example/\n", "spaces"),
     ("http://a.example/" + "x" * 2_000, "more than 2,000 characters")],
)  # fmt: skip
def test_invalid_feed_address_is_refused_with_its_limit(url: str, why: str) -> None:
    with pytest.raises(FeedRefused, match=why) as refused:
        checked_url(url)
    assert (refused.value.limit is not None) == ("port is" in refused.value.detail)


@pytest.mark.parametrize("port", ["", ":", ":80", ":0443", ":1024", ":65535"])
def test_address_with_an_allowed_port_is_accepted_unchanged(port: str) -> None:
    for host in ("a.example", "me:you@a.example", "[2001:db8::1]"):
        assert checked_url(f"http://{host}{port}/feed:9") == f"http://{host}{port}/feed:9"


def test_following_a_feed_twice_or_beyond_the_limit_is_refused(engine: Engine) -> None:
    feeds, now = FollowedFeeds(engine), StillClock()()
    feeds.add(URL, now)
    with pytest.raises(FeedRefused, match="followed already"):
        feeds.add(URL, now)
    urls = [f"https://{n}.example/" for n in range(FEEDS_LIMIT - 1)]
    rows = [{"key": url, "url": url, "added_at": now, "due_at": now} for url in urls]
    with writing(engine) as connection:
        connection.execute(insert(FeedRow), rows)
    with pytest.raises(FeedRefused, match="at most 1,000 feeds"):
        feeds.add("https://one.more.example/", now)
    for change in (feeds.pause, lambda url: feeds.remove(url, now), lambda url: feeds.resume(url, now)):
        with pytest.raises(FeedNotFollowed):
            change("https://unknown.example/")

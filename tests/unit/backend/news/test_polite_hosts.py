"""One request at a time to a host, pauses, and permanent answers, with a fixed clock.

Oracles: RFC 9110 (301, 308, 410, Retry-After), RFC 6585 (429), and the log of a host that answers once in 30 s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count

import httpx
import pytest
from sqlalchemy import Engine

from backend.news.feed_refresh import learnt, pace
from backend.news.feed_scheduler import FeedScheduler
from backend.news.followed_feeds import FollowedFeed
from backend.news.polite_hosts import PAUSE_LIMIT_SEC, REST_SEC, PoliteHosts
from backend.news.pool import NewsPool
from tests.doubles.clock import StillClock

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
Handler = Callable[[httpx.Request], httpx.Response]


def rss(name: str, published: datetime | None = None, more: str = "") -> httpx.Response:
    dated = f"<pubDate>{format_datetime(published)}</pubDate>" if published else ""
    item = f"<item><title>First post of {name}</title><link>https://{name}.example/1</link>{dated}</item>"
    words = f'<rss version="2.0"><channel><title>{name}</title>{more}{item}</channel></rss>'
    return httpx.Response(200, stream=httpx.ByteStream(words.encode()))


class Rig:
    """A scheduler whose every request is logged with its time and the status of its answer."""

    def __init__(self, engine: Engine, answer: Handler, *, every: timedelta = 15 * timedelta(minutes=1)) -> None:
        self.engine, self.clock, self.answer, self.every = engine, StillClock(), answer, every
        self.log: list[tuple[float, str, int]] = []
        self.started = self.clock()
        self.pool = NewsPool(engine, clock=self.clock)
        self.scheduler = self.fresh()
        self.feeds = self.scheduler.followed

    def fresh(self) -> FeedScheduler:
        """Return another scheduler on the same database, as after a restart."""
        return FeedScheduler(
            self.engine, self.pool, every=self.every, seldom=DAY, clock=self.clock, chance=lambda: 0.0,
            transport=httpx.MockTransport(self._answered), sleep=self.clock.go_on,
        )  # fmt: skip

    def _answered(self, request: httpx.Request) -> httpx.Response:
        response = self.answer(request)
        self.log.append((self.seconds(), request.url.path, response.status_code))
        return response

    def seconds(self) -> float:
        return (self.clock() - self.started).total_seconds()

    def add(self, *urls: str) -> None:
        for url in urls:
            self.feeds.add(url, self.clock())

    def only(self) -> FollowedFeed:
        (found,) = self.feeds.all()
        return found

    def until(self, seconds: float, restarts: bool = False) -> None:
        """Let the scheduler run for this long, and restart it after every third step if asked to."""
        for number in count(1):
            if self.seconds() >= seconds:
                break
            self.scheduler.step()
            if restarts and number % 3 == 0:
                self.scheduler = self.fresh()
            self.clock.go_on(min(max(self.scheduler._free_in(), 0.1), 15.0))

    def next(self) -> timedelta:
        """Read the only feed when it is due, and return how long it then waits."""
        self.clock.go_on(max(0.0, (self.only().due_at - self.clock()).total_seconds()))
        assert self.scheduler.step() == 1
        return self.only().due_at - self.clock()


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_eight_feeds_of_a_rate_limited_host_are_read_in_six_minutes(engine: Engine, restarts: bool) -> None:
    answered_at = [-1e9]

    def limiter(request: httpx.Request) -> httpx.Response:
        if rig.seconds() - answered_at[0] < 30:
            return httpx.Response(429, headers={"retry-after": "30"})
        answered_at[0] = rig.seconds()
        return rss(request.url.path.removeprefix("/r/"), rig.clock() - HOUR)

    rig = Rig(engine, limiter)
    rig.add(*(f"https://red.example/r/{name}" for name in "abcdefgh"))
    rig.until(360, restarts)
    assert sorted(path for _, path, status in rig.log if status == 200) == [f"/r/{name}" for name in "abcdefgh"]
    refused = [at for at, _, status in rig.log if status == 429]
    assert len(refused) <= 1, "the host teaches its pause once"
    assert all(not at < later < at + 30 for at in refused for later, _, _ in rig.log), "Retry-After is kept"
    assert [one.failures for one in rig.feeds.all()] == [0] * 8


def test_host_gets_one_request_at_a_time_with_a_pause(engine: Engine) -> None:
    lock, running, most = threading.Lock(), dict[str, int](), dict[str, int]()

    def answer(request: httpx.Request) -> httpx.Response:
        host = request.url.host
        with lock:
            running[host] = running.get(host, 0) + 1
            most[host] = max(most.get(host, 0), running[host])
        response = rss(host.partition(".")[0] + request.url.path[1:])
        with lock:
            running[host] -= 1
        return response

    rig = Rig(engine, answer)
    rig.add(*(f"https://{host}.example/{number}" for host in ("one", "two") for number in range(3)))
    assert rig.scheduler.step() == 6
    assert most == {"one.example": 1, "two.example": 1}
    for path in ("/0", "/1", "/2"):
        assert sum(each == path for _, each, _ in rig.log) == 2
    assert rig.seconds() == 2.0, "two pauses of a second each, at once on both hosts"


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
@pytest.mark.parametrize("status", [429, 503])
def test_refusal_applies_to_all_feeds_of_the_host_after_a_restart(
    engine: Engine, status: int, as_date: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_: httpx.Request) -> httpx.Response:
        said = format_datetime(rig.clock() + HOUR, usegmt=True) if as_date else "3600"
        return httpx.Response(status, headers={"retry-after": said})

    rig = Rig(engine, refusing)
    if as_date:  # the date is compared with the machine's clock
        from backend.news.sources import download

        read = download.retry_after_sec
        monkeypatch.setattr(download, "retry_after_sec", lambda said: read(said, rig.clock()))
    rig.add("https://red.example/a", "https://red.example/b", "https://other.example/c")
    assert rig.scheduler.step() == 2
    assert [path for _, path, _ in rig.log] == ["/c", "/a"] or [path for _, path, _ in rig.log] == ["/a", "/c"]
    rig.clock.go_on(1_800)
    rig.scheduler = rig.fresh()
    asked = len(rig.log)
    rig.scheduler.step()
    assert not [path for _, path, _ in rig.log[asked:] if path in ("/a", "/b")]
    rig.answer = lambda request: rss(request.url.path[1:])
    rig.clock.go_on(1_801)
    rig.scheduler.step()
    assert {path for _, path, _ in rig.log[asked:]} >= {"/a", "/b"}


def test_pauses_without_a_given_length_double_until_an_answer(engine: Engine) -> None:
    clock = StillClock()
    hosts = PoliteHosts(engine, 1.0)
    assert [hosts.refused("a", clock(), 0.0, paces=False) for _ in range(3)] == [REST_SEC, 2 * REST_SEC, 4 * REST_SEC]
    hosts.answered("a", clock())
    assert hosts.refused("a", clock(), 0.0, paces=False) == REST_SEC
    assert hosts.refused("b", clock(), PAUSE_LIMIT_SEC, paces=True) == PAUSE_LIMIT_SEC
    hosts.answered("b", clock())
    assert hosts.refused("b", clock(), 1e9, paces=True) == DAY.total_seconds()
    again = PoliteHosts(engine, 1.0)
    again.load(clock())
    assert again.free_in("b", clock()) == DAY.total_seconds()
    again.answered("b", clock())
    assert again.free_in("b", clock()) == PAUSE_LIMIT_SEC
    clock.go_on(DAY.total_seconds() + 1)
    again.load(clock())
    assert again.free_in("b", clock()) == 0.0, "a day later its pause is forgotten"


def test_fast_clock_delays_no_host_beyond_its_request(engine: Engine) -> None:
    clock = StillClock()
    right = clock()
    hosts = PoliteHosts(engine, 1.0)
    clock.go_on(40 * 86_400)
    hosts.begin("a", clock())
    hosts.end("a", clock())
    hosts.refused("b", clock(), 60.0, paces=False)
    hosts.load(right)
    assert hosts.free_in("a", right) == 0.0
    assert hosts.free_in("b", right) == 60.0


@pytest.mark.parametrize("status", [301, 308])
def test_permanent_redirect_changes_the_address_after_two_answers(engine: Engine, status: int) -> None:
    def moving(request: httpx.Request) -> httpx.Response:
        if request.url.host == "old.example":
            return httpx.Response(status, headers={"location": "https://new.example/feed"})
        return rss("blog", rig.clock() - HOUR)

    rig = Rig(engine, moving)
    rig.add("https://old.example/feed")
    rig.next()
    assert rig.only().url == "https://old.example/feed", "one answer is not enough"
    before = {(row.id, row.title) for row in rig.pool.live(rig.clock())}
    rig.next()
    assert (rig.only().url, rig.only().key) == ("https://new.example/feed", "https://old.example/feed")
    rig.next()
    assert rig.log[-1][2] == 200
    assert len(rig.log) == 5, "the last request went straight to the new address"
    assert {(row.id, row.title) for row in rig.pool.live(rig.clock())} == before
    rig.feeds.rename("https://old.example/feed", "Mine")
    assert rig.feeds.one("https://new.example/feed").title == "Mine"


@pytest.mark.parametrize("hops", [[302], [307], [302, 301]], ids=str)
def test_temporary_redirect_changes_nothing(engine: Engine, hops: list[int]) -> None:
    def moving(request: httpx.Request) -> httpx.Response:
        hop = int(request.url.path[1:])
        if hop < len(hops):
            return httpx.Response(hops[hop], headers={"location": f"https://a.example/{hop + 1}"})
        return rss("blog")

    rig = Rig(engine, moving)
    rig.add("https://a.example/0")
    for _ in range(3):
        rig.next()
    assert rig.only().url == "https://a.example/0"


def test_feed_moving_to_another_feeds_address_stays(engine: Engine) -> None:
    def moving(request: httpx.Request) -> httpx.Response:
        if request.url.host == "old.example":
            return httpx.Response(301, headers={"location": "https://new.example/feed"})
        return rss("blog")

    rig = Rig(engine, moving)
    rig.add("https://old.example/feed", "https://new.example/feed")
    for _ in range(3):
        rig.scheduler.step()
        rig.clock.go_on(DAY.total_seconds())
    assert [one.url for one in rig.feeds.all()] == ["https://new.example/feed", "https://old.example/feed"]
    assert [one.failures for one in rig.feeds.all()] == [0, 0]


def test_answer_410_ends_a_feed_until_it_is_resumed(engine: Engine) -> None:
    rig = Rig(engine, lambda _: httpx.Response(410))
    rig.add("https://gone.example/feed")
    rig.scheduler.step()
    assert rig.only().ended
    assert "gone permanently" in str(rig.only().error)
    rig.clock.go_on(30 * 86_400)
    assert rig.scheduler.step() == 0
    rig.answer = lambda _: rss("back")
    rig.feeds.resume("https://gone.example/feed", rig.clock())
    assert rig.scheduler.step() == 1
    assert (rig.only().ended, rig.only().error) == (False, None)


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([HOUR * n for n in range(1, 30)], HOUR),
        ([DAY * 7 * n for n in range(1, 11)], DAY * 7),
        ([timedelta(minutes=10) * n for n in range(1, 60)], timedelta(minutes=10)),
        ([DAY * 40], DAY * 40),
        ([timedelta(days=60) + HOUR * n for n in range(1, 11)], timedelta(days=6) + HOUR),
    ],
    ids=["hourly", "weekly", "wire", "one post", "silent for two months"],
)
def test_interval_is_learned_from_recent_dates_and_grows_with_silence(
    ages: list[timedelta], expected: timedelta
) -> None:
    assert learnt([NOON - age for age in ages], NOON) == expected


def test_interval_without_dates_follows_new_entries_and_the_feeds_hint() -> None:
    assert learnt([NOON, NOON + DAY], NOON) is None
    assert pace([], NOON) == HOUR
    assert pace([], NOON, hint=6 * HOUR) == 6 * HOUR
    assert pace([], NOON, last=4 * HOUR, brought=2) == 2 * HOUR
    assert pace([], NOON, last=4 * HOUR) == 6 * HOUR
    assert pace([NOON - HOUR], NOON, hint=2 * HOUR) == 2 * HOUR, "a feed isn't asked more often than its ttl"
    assert pace([NOON - HOUR * 3], NOON, hint=HOUR) == 3 * HOUR
    assert pace(None, NOON, last=4 * HOUR) == 5 * HOUR


@pytest.mark.parametrize(
    ("age", "more", "expected"),
    [
        (timedelta(minutes=2), "", timedelta(minutes=15)),
        (3 * HOUR, "", 3 * HOUR),
        (60 * DAY, "", DAY),
        (timedelta(minutes=2), "<ttl>90</ttl>", HOUR * 1.5),
        (
            None,
            '<sy:updatePeriod xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">daily</sy:updatePeriod>'
            '<sy:updateFrequency xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">4</sy:updateFrequency>',
            6 * HOUR,
        ),
        (None, "<ttl>never</ttl>", HOUR),
        (None, "<ttl>1</ttl>", timedelta(minutes=15)),
    ],
    ids=["floor", "as it publishes", "daily", "ttl", "sy", "no word", "too often"],
)
def test_feed_is_requested_as_often_as_it_publishes_within_bounds(
    engine: Engine, age: timedelta | None, more: str, expected: timedelta
) -> None:
    rig = Rig(engine, lambda _: rss("blog", None if age is None else rig.clock() - age, more))
    rig.add("https://blog.example/feed")
    assert rig.next() == pytest.approx(expected, abs=timedelta(seconds=1))


def test_refreshed_feed_is_read_at_once_unless_its_host_is_paused(engine: Engine) -> None:
    rig = Rig(engine, lambda _: rss("blog"))
    rig.add("https://blog.example/feed")
    rig.next()
    assert rig.scheduler.step() == 0
    rig.clock.go_on(10)
    rig.feeds.ask_now(rig.clock())
    rig.answer = lambda _: httpx.Response(429, headers={"retry-after": "600"})
    assert rig.scheduler.step() == 1
    rig.feeds.ask_now(rig.clock(), "https://blog.example/feed")
    assert rig.scheduler.step() == 0

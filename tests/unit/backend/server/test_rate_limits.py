"""Limits on requests a minute: by address, and in total. Oracle: arithmetic on a clock that the test moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.errors import TooManyRequests
from backend.server.request_limits import SOURCES_KEPT, RateLimits, TokenBuckets
from tests.doubles.recall_app import running_server


class Moment:
    """A clock that moves when the test moves it."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def moment() -> Moment:
    return Moment()


def test_allowance_of_a_minute_may_be_used_at_once_and_refills_evenly(moment: Moment) -> None:
    buckets = TokenBuckets(60, moment)
    assert [buckets.seconds_to_wait("a") for _ in range(60)] == [0.0] * 60
    assert buckets.seconds_to_wait("a") == pytest.approx(1.0)
    moment.now += 0.5
    assert buckets.seconds_to_wait("a") == pytest.approx(0.5)
    moment.now += 0.5
    assert buckets.seconds_to_wait("a") == 0.0
    moment.now += 3_600
    assert [buckets.seconds_to_wait("a") for _ in range(61)].count(0.0) == 60, "no more than a minute's is saved up"


def test_flooding_address_takes_nothing_from_others(moment: Moment) -> None:
    limits = RateLimits(per_minute=10, per_minute_in_all=25, clock=moment)
    for _ in range(10):
        limits.check("flood", "/v1/recall")
    for _ in range(990):
        with pytest.raises(TooManyRequests) as often:
            limits.check("flood", "/v1/recall")
        assert (often.value.field, often.value.limit) == ("address", "10 requests a minute")
        assert often.value.wait_sec == 6
    for _ in range(10):
        limits.check("reader", "/v1/recall")


def test_total_request_rate_is_bounded_too(moment: Moment) -> None:
    limits = RateLimits(per_minute=10, per_minute_in_all=25, clock=moment)
    for number in range(25):
        limits.check(f"reader {number}", "/reader/")
    with pytest.raises(TooManyRequests) as often:
        limits.check("one more", "/reader/")
    assert (often.value.field, often.value.limit) == (None, "25 requests a minute")


def test_unbounded_addresses_health_and_limit_0_are_never_refused(moment: Moment) -> None:
    limits = RateLimits(per_minute=1, per_minute_in_all=1, clock=moment)
    without = RateLimits(per_minute=0, per_minute_in_all=0, clock=moment)
    for _ in range(100):
        limits.check(None, "/v1/recall")
        limits.check("a", "/v1/health")
        without.check("a", "/v1/recall")


def test_number_of_remembered_sources_is_bounded(moment: Moment) -> None:
    buckets = TokenBuckets(1, moment)
    for number in range(SOURCES_KEPT + 10):
        buckets.seconds_to_wait(str(number))
    assert len(buckets._left) == SOURCES_KEPT
    assert buckets.seconds_to_wait("0") == 0.0, "forgotten"
    assert buckets.seconds_to_wait(str(SOURCES_KEPT + 9)) > 0


def test_rate_limited_answer_is_429_with_retry_after_and_security_headers(tmp_path: Path) -> None:
    with running_server(tmp_path, news=0, releases=0, requests_per_minute=5) as server:
        answers = [server.client.get("/v1/keys") for _ in range(7)]
        console = server.client.get("/console")
        health = server.client.get("/v1/health")
    assert [answer.status_code for answer in answers] == [503] * 5 + [429] * 2
    assert console.status_code == 429, "a token can't be guessed faster than this either"
    assert health.status_code == 200
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
    assert answers[-1].json()["limit"] == "5 requests a minute"
    for answer in (*answers, console, health):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "set-cookie" not in answer.headers

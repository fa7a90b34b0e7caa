"""Answers from memory are the app's own, at most as old as promised, and never another address's.

Oracle: RFC 9110 for conditional requests, and a count of how often the app was asked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from backend.server.request_limits import Admission, ReadAdmission, RequestLimits
from backend.server.shared_answers import ANSWER_LIMIT_BYTES, SharedAnswers
from tests.doubles.own_loop import run_on_its_own_loop

KEEP_SEC, WAIT_SEC = 0.5, 30.0
CURRENT, FRONT, ROUNDS, BLOB = "/v1/releases/current", "/v1/news/front", "/v1/rounds/current", "/v1/blobs/large"


class CountedApp:
    """An app that numbers its answers, behind SharedAnswers with a clock that the test sets."""

    def __init__(self, keep_sec: float = KEEP_SEC) -> None:
        self.now, self.asked, self.polls = 0.0, Counter[str](), list[str | None]()
        self.wait: asyncio.Event | None = None
        app = FastAPI()

        @app.get(CURRENT)
        @app.get(FRONT)
        @app.post(CURRENT)
        @app.get("/v1/own")
        async def numbered(request: Request) -> Response:
            self.asked[request.url.path] += 1
            number = self.asked[request.url.path]
            if self.wait is not None:
                await self.wait.wait()
            text = f"{request.url.query} {request.headers.get('accept-encoding')} {number}"
            return Response(text, headers={"ETag": f'"{number}"', "Cache-Control": "public, max-age=1"})

        @app.get(ROUNDS)
        async def nothing() -> Response:
            self.asked[ROUNDS] += 1
            return Response(status_code=204)

        @app.get(BLOB)
        async def large() -> Response:
            self.asked[BLOB] += 1
            return Response(b"x" * (ANSWER_LIMIT_BYTES + 1), headers={"ETag": '"large"'})

        @app.get("/v1/releases/broken")
        async def broken() -> Response:
            self.asked["broken"] += 1
            return Response("no", status_code=404)

        admitted = ReadAdmission(app, admission=Admission(running=1, waiting=1, wait_sec=WAIT_SEC))
        shared = SharedAnswers(
            admitted, keep_sec=keep_sec, on_request={ROUNDS: self.polls.append}, clock=lambda: self.now
        )
        limits = RequestLimits(shared)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(limits), base_url="http://server")

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={each.replace("_", "-"): value for each, value in headers.items()})


def test_answer_is_reused_until_it_expires_and_then_computed_again() -> None:
    async def run() -> list[str]:
        app, found = CountedApp(), []
        for app.now in (0.0, KEEP_SEC - 0.01, KEEP_SEC, 2 * KEEP_SEC - 0.01, 2 * KEEP_SEC):
            found.append((await app.get(CURRENT)).text[-1])
        return found

    assert run_on_its_own_loop(run) == ["1", "1", "2", "2", "3"]


def test_time_counts_from_the_request_and_not_from_the_answer() -> None:
    async def run() -> Counter[str]:
        app = CountedApp()
        app.wait = asyncio.Event()
        first = asyncio.create_task(app.get(CURRENT))
        await asyncio.sleep(0.01)
        app.now = KEEP_SEC
        app.wait.set()
        await first
        await app.get(CURRENT)
        return app.asked

    assert run_on_its_own_loop(run)[CURRENT] == 2


def test_known_answer_is_304_with_the_same_validators_from_memory_or_not() -> None:
    async def run() -> list[httpx.Response]:
        app = CountedApp()
        return [await app.get(CURRENT, if_none_match=each) for each in ('W/"1"', '"0", "1"', '"2"', "")]

    first, second, other, without = run_on_its_own_loop(run)
    assert [each.status_code for each in (first, second, other, without)] == [304, 304, 200, 200]
    for each in (first, second):
        assert each.content == b""
        assert (each.headers["etag"], each.headers["cache-control"]) == ('"1"', "public, max-age=1")


def test_cached_answers_are_given_even_when_the_server_is_busy() -> None:
    async def run() -> list[int]:
        app = CountedApp()
        await app.get(CURRENT)
        app.wait = asyncio.Event()
        running, waiting = (asyncio.create_task(app.get("/v1/own")) for _ in range(2))
        await asyncio.sleep(0.01)
        found = [await app.get(path) for path in (CURRENT, "/v1/own", FRONT)]
        app.wait.set()
        return [each.status_code for each in (*found, await running, await waiting)]

    assert run_on_its_own_loop(run) == [200, 503, 503, 200, 200]


def test_answers_are_cached_per_query_and_encoding() -> None:
    async def run() -> tuple[list[str], Counter[str]]:
        app = CountedApp()
        wanted = [("?limit=1", "gzip"), ("?limit=2", "gzip"), ("?limit=1", "identity")] * 2
        return [(await app.get(FRONT + query, accept_encoding=coding)).text for query, coding in wanted], app.asked

    texts, asked = run_on_its_own_loop(run)
    assert texts[:3] == texts[3:]
    assert texts[:3] == ["limit=1 gzip 1", "limit=2 gzip 2", "limit=1 identity 3"]
    assert asked[FRONT] == 3


@pytest.mark.parametrize("path", ["/v1/releases/broken", BLOB])
def test_errors_and_large_answers_are_made_for_each_request(path: str) -> None:
    async def run() -> CountedApp:
        app = CountedApp()
        for _ in range(3):
            await app.get(path)
        return app

    assert run_on_its_own_loop(run).asked[path.replace("/v1/releases/broken", "broken")] == 3


def test_large_answer_that_the_client_has_is_304() -> None:
    async def run() -> httpx.Response:
        return await CountedApp().get(BLOB, if_none_match='"large"')

    answer = run_on_its_own_loop(run)
    assert (answer.status_code, answer.content) == (304, b"")


def test_other_addresses_and_methods_never_share_an_answer() -> None:
    async def run() -> Counter[str]:
        app = CountedApp()
        for _ in range(2):
            await app.get("/v1/own")
            await app.client.post(CURRENT)
        return app.asked

    assert run_on_its_own_loop(run) == {"/v1/own": 2, CURRENT: 2}


def test_simultaneous_requests_call_the_app_once() -> None:
    async def run() -> tuple[list[str], Counter[str]]:
        app = CountedApp()
        app.wait = asyncio.Event()
        tasks = [asyncio.create_task(app.get(CURRENT)) for _ in range(20)]
        await asyncio.sleep(0.05)
        app.wait.set()
        return [each.text for each in await asyncio.gather(*tasks)], app.asked

    texts, asked = run_on_its_own_loop(run)
    assert len({*texts}) == 1
    assert asked[CURRENT] == 1


def test_requests_waiting_for_a_failed_one_call_the_app_themselves() -> None:
    async def run() -> list[type | int]:
        failures = [RuntimeError("the database is gone")]
        inner = CountedApp()

        async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
            await asyncio.sleep(0.01)
            if failures:
                raise failures.pop()
            await inner.client._transport.app(scope, receive, send)  # type: ignore[attr-defined]

        shared = SharedAnswers(app, keep_sec=KEEP_SEC, on_request={})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(shared), base_url="http://server") as client:
            found = await asyncio.gather(*(client.get(CURRENT) for _ in range(3)), return_exceptions=True)
        return [each.status_code if isinstance(each, httpx.Response) else type(each) for each in found]

    assert run_on_its_own_loop(run) == [RuntimeError, 200, 200]


def test_each_poll_for_a_round_is_counted_also_when_answered_from_memory() -> None:
    async def run() -> CountedApp:
        app = CountedApp()
        for _ in range(5):
            assert (await app.get(ROUNDS)).status_code == 204
        return app

    app = run_on_its_own_loop(run)
    assert (len(app.polls), app.asked[ROUNDS]) == (5, 1)


@pytest.mark.parametrize(("keep_sec", "headers"), [(0.0, {}), (KEEP_SEC, {"range": "bytes=0-1"})])
def test_nothing_is_cached_without_a_lifetime_or_for_a_range(keep_sec: float, headers: dict[str, str]) -> None:
    async def run() -> Counter[str]:
        app = CountedApp(keep_sec)
        for _ in range(2):
            await app.get(CURRENT, **headers)
        return app.asked

    assert run_on_its_own_loop(run)[CURRENT] == 2


def test_memory_for_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.server.shared_answers.KEPT_LIMIT_BYTES", 5_000)

    async def run(ask: Callable[[int], str]) -> Counter[str]:
        app = CountedApp()
        for number in range(20):
            await app.get(ask(number))
        await app.get(ask(0))
        return app.asked

    assert run_on_its_own_loop(partial(run, lambda number: f"{CURRENT}?{number}"))[CURRENT] == 21
    assert run_on_its_own_loop(partial(run, lambda number: f"{CURRENT}?{number % 3}"))[CURRENT] == 3

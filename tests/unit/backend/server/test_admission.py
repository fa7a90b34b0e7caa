"""Requests at work, a queue behind them, and refusals that cost nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request

from backend.errors import OverCapacity
from backend.server.request_limits import Admission


def run_apart(play: Coroutine[Any, Any, Any]) -> Any:
    """Run in a separate thread: a browser test of the same worker may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, play).result()


def test_requests_beyond_the_queue_are_refused_at_once_and_others_in_order() -> None:
    async def play() -> tuple[list[int], int]:
        admission, done = Admission(running=2, waiting=3, wait_sec=60), list[int]()

        async def ask(number: int) -> None:
            async with admission.place():
                done.append(number)

        answers = await asyncio.gather(*(ask(number) for number in range(9)), return_exceptions=True)
        refused = [number for number, answer in enumerate(answers) if isinstance(answer, OverCapacity)]
        assert refused == [5, 6, 7, 8], "they came together, so they were counted before the first was answered"
        await ask(9)
        return done, admission.refused

    assert run_apart(play()) == ([0, 1, 2, 3, 4, 9], 4)


def test_request_waiting_too_long_is_refused_and_the_next_runs() -> None:
    async def play() -> list[str]:
        now, reported = SimpleNamespace(sec=0.0), list[str]()
        admission = Admission(running=1, waiting=5, wait_sec=1, clock=lambda: now.sec)
        await admission.enter()

        async def ask(name: str) -> None:
            try:
                async with admission.place():
                    reported.append(name)
            except OverCapacity:
                reported.append(f"{name} refused")

        early = asyncio.create_task(ask("early"))
        await asyncio.sleep(0)
        now.sec = 1.5
        late = asyncio.create_task(ask("late"))
        await asyncio.sleep(0)
        admission.leave()
        await asyncio.gather(early, late)
        return reported

    assert run_apart(play()) == ["early refused", "late"]


def test_abandoned_request_takes_no_place() -> None:
    async def play() -> None:
        admission = Admission(running=1, waiting=2, wait_sec=60)
        await admission.enter()
        gone = [asyncio.create_task(admission.enter()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(OverCapacity):
            admission.check()
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        admission.check()
        admission.leave()
        await asyncio.wait_for(admission.enter(), 60)

    run_apart(play())


def test_flood_from_one_source_does_not_delay_requests_of_others() -> None:
    """Regression: there was one queue, so the sixty-four requests of one address had all others refused with 503."""

    async def play() -> tuple[list[str], dict[str, int]]:
        admission, done = Admission(running=1, waiting=8, wait_sec=60), list[str]()
        refused = {"flood": 0, "another": 0, "unbounded": 0}
        await admission.enter("flood")

        async def ask(source: str, name: str | None) -> None:
            try:
                async with admission.place(name):
                    done.append(source)
            except OverCapacity:
                refused[source] += 1

        flood = [asyncio.create_task(ask("flood", "flood")) for _ in range(64)]
        await asyncio.sleep(0)
        for name in ("another", None):
            admission.check(name)
        others = [asyncio.create_task(ask("another", "another")) for _ in range(2)]
        others += [asyncio.create_task(ask("unbounded", None)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(OverCapacity):
            admission.check("flood")
        admission.leave()
        await asyncio.gather(*flood, *others)
        assert admission.refused == sum(refused.values()) + 1
        return done, refused

    done, refused = run_apart(play())
    assert refused == {"flood": 60, "another": 0, "unbounded": 0}
    assert done[:5] == ["flood", "another", "unbounded", "unbounded", "flood"], "each source in turn, not by arrival"
    assert sorted(done) == ["another"] * 2 + ["flood"] * 4 + ["unbounded"] * 2


def test_admission_places_are_neither_lost_nor_given_twice() -> None:
    """Oracle: a count of the test's, over 3,000 random steps of four sources, some of whose requests are abandoned."""

    async def play() -> None:
        dice, at_work, most = random.Random(7), 0, 0
        admission = Admission(running=3, waiting=6, wait_sec=60)
        tasks: set[asyncio.Task[None]] = set()

        async def ask(name: str | None) -> None:
            nonlocal at_work, most
            async with admission.place(name):
                at_work += 1
                most = max(most, at_work)
                try:
                    await asyncio.sleep(0)
                finally:
                    at_work -= 1

        for _ in range(3_000):
            if dice.random() < 0.6:
                tasks.add(asyncio.create_task(ask(dice.choice(["a", "a", "a", "b", "c", None]))))
            elif tasks and dice.random() < 0.3:
                dice.choice(sorted(tasks, key=id)).cancel()
            if dice.random() < 0.5:
                await asyncio.sleep(0)
            tasks = {task for task in tasks if not task.done()}
        await asyncio.gather(*tasks, return_exceptions=True)
        assert at_work == 0
        assert most == 3
        for _ in range(3):  # all places are free again, and no more than these
            await asyncio.wait_for(admission.enter(), 60)
        waiting = asyncio.create_task(admission.enter())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        admission.leave()
        await asyncio.wait_for(waiting, 60)

    run_apart(play())


def test_full_queue_refuses_recall_before_its_body_with_a_retry_time() -> None:
    from starlette.testclient import TestClient

    from backend.server.request_limits import RequestLimits

    app, full = FastAPI(), Admission(running=1, waiting=0, wait_sec=1)

    @app.post("/v1/recall")
    async def recall(request: Request) -> int:
        return len(await request.body())

    app.add_middleware(RequestLimits, recall=full)
    answer = TestClient(app).post("/v1/recall", content=b"{}")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == "urn:ownfeed:problem:over-capacity"
    assert answer.headers["content-type"] == "application/problem+json"


def test_queues_are_shared_by_client_network_behind_a_trusted_proxy() -> None:
    from starlette.testclient import TestClient

    from backend.federation.rounds.selection import AddressRules, ClientAddresses
    from backend.server.request_limits import SOURCE, RequestLimits

    app = FastAPI()
    addresses = ClientAddresses(AddressRules(3, proxies=("10.0.0.0/8",), unbounded=("127.0.0.0/8",)), b"k" * 32)

    @app.get("/v1/where")
    async def where(request: Request) -> str | None:
        return request.scope[SOURCE]

    app.add_middleware(RequestLimits, source_of=addresses.source)

    def seen(peer: str, forwarded: str = "") -> str | None:
        client = TestClient(app, client=(peer, 1))
        return client.get("/v1/where", headers={"x-forwarded-for": forwarded} if forwarded else {}).json()

    assert seen("127.0.0.1") is None
    assert seen("192.0.2.1") == seen("10.0.0.1", "192.0.2.1") != seen("192.0.2.2")
    assert seen("192.0.2.1", "192.0.2.9") == seen("192.0.2.1"), "nobody but a proxy is believed"

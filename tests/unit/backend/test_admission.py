"""Places at work, a line behind them, and refusals that cost nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from backend.admission import Admission
from backend.errors import OverCapacity


def run_apart(play: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: a browser test of the same worker may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, play).result()


def test_requests_beyond_the_line_are_refused_at_once_and_the_others_come_in_order() -> None:
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


def test_who_has_stood_in_line_for_too_long_is_refused_and_its_place_passes_on() -> None:
    async def play() -> list[str]:
        now, told = SimpleNamespace(sec=0.0), list[str]()
        admission = Admission(running=1, waiting=5, wait_sec=1, clock=lambda: now.sec)
        await admission.enter()

        async def ask(name: str) -> None:
            try:
                async with admission.place():
                    told.append(name)
            except OverCapacity:
                told.append(f"{name} refused")

        early = asyncio.create_task(ask("early"))
        await asyncio.sleep(0)
        now.sec = 1.5
        late = asyncio.create_task(ask("late"))
        await asyncio.sleep(0)
        admission.leave()
        await asyncio.gather(early, late)
        return told

    assert run_apart(play()) == ["early refused", "late"]


def test_a_request_that_is_given_up_in_line_takes_no_place() -> None:
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


def test_a_full_line_refuses_recall_before_its_body_and_says_when_to_come_back() -> None:
    from fastapi import FastAPI, Request
    from starlette.testclient import TestClient

    from backend.request_limits import RequestLimits

    app, full = FastAPI(), Admission(running=1, waiting=0, wait_sec=1)

    @app.post("/v1/recall")
    async def recall(request: Request) -> int:
        return len(await request.body())

    app.add_middleware(RequestLimits, recall=full)
    answer = TestClient(app).post("/v1/recall", content=b"{}")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == "urn:ownfeed:problem:over-capacity"
    assert answer.headers["content-type"] == "application/problem+json"

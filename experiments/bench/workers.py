"""How many recall requests by code one server process answers, and how many two behind one port do.

The rate is raised step by step, and the last one that was served whole, with its p95 within the bar, counts. The
servers share their cores with this process, which offers the requests; on two cores two servers never have one each. So
what a request takes of the processor's time is told besides, of the servers and of this process, at the first rate.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from backend.server_address import ServerAddress
from device_app.wire.ids import short_release
from experiments.bench.newspaper import RunningBackend, prepared_newspaper, running_backend
from experiments.bench.open_loop import LoadAnswers, offer
from experiments.bench.overload import CODES, recall_request
from experiments.table import Cell, Table

FORMS = (1, 2)
LEAST_RATE, MOST_RATE, STEP = 400.0, 6_000.0, 1.15
SECONDS = 8.0
P95_BAR_MS, GAIN_BAR = 50.0, 1.7
SEED = 7


def run(data: Path) -> list[Table]:
    """One row a form. Needs none of the research data."""
    rows: list[tuple[Cell, ...]] = []
    highest: list[float] = []
    taken: list[Taken] = []
    for workers in FORMS:
        with running_backend(prepared_newspaper(), workers=workers) as backend:
            _all_serve(backend)
            least, took, found, best = asyncio.run(_measured(backend.url))
        highest.append(found)
        taken.append(took)
        gain = found / highest[0] if highest[0] else None
        times = (1_000 * took.servers_sec, 1_000 * took.offering_sec, cores_gain(taken[0], took, workers))
        rows.append((workers, *_told(LEAST_RATE, least), *times, found or None, *_told(found, best)[1:], gain))
    columns = (
        "processes",
        "served of 400 a second",
        "p95 ms",
        "other than 200",
        "servers ms a request",
        "offering ms a request",
        "times one by processor time",
        "most a second",
        "p95 ms then",
        "other than 200 then",
        "times one process",
    )
    note = (
        f"Open loop, {SECONDS:.0f} s a rate, rates {STEP - 1:.0%} apart; servers and this process share "
        f"{os.cpu_count()} cores, load of {os.getloadavg()[0]:.1f}."
    )
    bar = (
        f"Bar: 400 a second by one process at p95 {P95_BAR_MS:.0f} ms without an error; two serve {GAIN_BAR} times the "
        "most of one, on as many cores and one more for who offers; 'times one by processor time' is what they "
        "could there at most, were each busy all the time: what a request takes of one / what it takes of them, times "
        "the processes."
    )
    return [Table("Recall by code, by server processes behind one port", columns, rows, (note, bar), (SEED,))]


def _all_serve(backend: RunningBackend) -> None:
    """Wait until the last process does: only then it is told where they listen."""
    address = ServerAddress(backend.settings.servers_dir)
    while address.known() != backend.url:
        backend.processes.check()
        time.sleep(0.1)


@dataclass(frozen=True)
class Taken:
    """Seconds of a processor that a request took: of all servers together, and of who offered it."""

    servers_sec: float
    offering_sec: float


def cores_gain(one: Taken, several: Taken, processes: int) -> float | None:
    """How many times as much so many processes serve as one, each on a core of its own. None where nothing was told."""
    return processes * one.servers_sec / several.servers_sec if several.servers_sec else None


def _processor_sec() -> tuple[float, float]:
    """That the processes begun here have taken up to now, and this one."""
    here = psutil.Process()
    begun = [each.cpu_times() for each in here.children(recursive=True)]
    return sum(each.user + each.system for each in begun), time.process_time()


async def _measured(url: str) -> tuple[LoadAnswers, Taken, float, LoadAnswers]:
    """What became of the least rate, and what it took; the highest that was within the bar, 0 for none, and what became
    of that."""
    port = urlsplit(url).port
    assert port is not None
    dice = random.Random(SEED)
    release = json.loads(httpx.get(f"{url}/v1/releases/current").json()["manifest"])["release"]
    draw = partial(dice.choice, [recall_request(short_release(release), code) for code in range(CODES)])
    await offer(port, draw, rate=40, seconds=2)  # each process makes each code's list once
    before = _processor_sec()
    least = best = await offer(port, draw, rate=LEAST_RATE, seconds=SECONDS)
    servers, offering = (after - then for after, then in zip(_processor_sec(), before, strict=True))
    took = Taken(servers / len(least.status), offering / len(least.status))
    rate, found, answers = LEAST_RATE, 0.0, least
    while within_bar(answers) and rate <= MOST_RATE:
        found, best = rate, answers
        rate = round(rate * STEP)
        answers = await offer(port, draw, rate=rate, seconds=SECONDS)
    return least, took, found, best


def within_bar(answers: LoadAnswers) -> bool:
    """All served, and their p95 in time."""
    slowest = answers.percentile_ms(200, 95)
    return slowest is not None and slowest <= P95_BAR_MS and answers.count(200) == len(answers.status)


def _told(rate: float, answers: LoadAnswers) -> tuple[Cell, ...]:
    if not rate:
        return (None, None, None)
    served = answers.count(200)
    return (served / answers.offered_sec, answers.percentile_ms(200, 95), len(answers.status) - served)

"""Measures how many recall requests by code one server process answers, and how many two behind one port do.

The rate rises step by step; the result is the last rate that was fully served with its p95 within the target. Servers
share their cores with this process, which sends the requests; on two cores, two servers never have a core each. The
table therefore also gives processor time per request, of the servers and of this process, at the first rate.
"""

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

from backend.server.address import ServerAddress
from experiments.bench.newspaper import RunningBackend, prepared_newspaper, running_backend
from experiments.bench.overload import CODES, LoadAnswers, offer, recall_request
from experiments.records import Cell, Table
from protocol.ids import short_release

FORMS = (1, 2)
LEAST_RATE, MOST_RATE, STEP = 400.0, 6_000.0, 1.15
SECONDS = 8.0
P95_BAR_MS, GAIN_BAR = 50.0, 1.7
SEED = 7


def run(data: Path) -> list[Table]:
    """Return the table, one row for each number of processes. Needs no research data."""
    rows: list[tuple[Cell, ...]] = []
    highest: list[float] = []
    taken: list[CpuPerRequest] = []
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
        f"Open loop, {SECONDS:.0f} s a rate, rates {STEP - 1:.0%} apart; servers and client share {os.cpu_count()} "
        "cores, so two processes do not have one core each."
    )
    bar = (
        f"Bars: one process serves 400 a second at p95 {P95_BAR_MS:.0f} ms without an error; two serve {GAIN_BAR} "
        "times the most of one, given a core each and one for the client."
    )
    return [Table("Recall by code, by server processes behind one port", columns, rows, (note, bar), (SEED,))]


def _all_serve(backend: RunningBackend) -> None:
    """Wait until the last process serves; its address is known only then."""
    address = ServerAddress(backend.settings.servers_dir)
    while address.known() != backend.url:
        backend.processes.check()
        time.sleep(0.1)


@dataclass(frozen=True)
class CpuPerRequest:
    """Processor seconds per request: of all servers together, and of the client."""

    servers_sec: float
    offering_sec: float


def cores_gain(one: CpuPerRequest, several: CpuPerRequest, processes: int) -> float | None:
    """How much more several processes serve than one, each on its own core.

    None without measurements.
    """
    return processes * one.servers_sec / several.servers_sec if several.servers_sec else None


def _processor_sec() -> tuple[float, float]:
    """Return processor seconds so far of the processes started here, and of this process."""
    here = psutil.Process()
    begun = [each.cpu_times() for each in here.children(recursive=True)]
    return sum(each.user + each.system for each in begun), time.process_time()


async def _measured(url: str) -> tuple[LoadAnswers, CpuPerRequest, float, LoadAnswers]:
    """Return the outcome and cost of the lowest rate, and the highest rate within the target with its outcome.

    The highest rate is 0 if none is within the target.
    """
    port = urlsplit(url).port
    assert port is not None
    dice = random.Random(SEED)
    release = json.loads(httpx.get(f"{url}/v1/releases/current").json()["manifest"])["release"]
    draw = partial(dice.choice, [recall_request(short_release(release), code) for code in range(CODES)])
    await offer(port, draw, rate=40, seconds=2)  # each process makes each code's list once
    before = _processor_sec()
    least = best = await offer(port, draw, rate=LEAST_RATE, seconds=SECONDS)
    servers, offering = (after - then for after, then in zip(_processor_sec(), before, strict=True))
    took = CpuPerRequest(servers / len(least.status), offering / len(least.status))
    rate, found, answers = LEAST_RATE, 0.0, least
    while within_bar(answers) and rate <= MOST_RATE:
        found, best = rate, answers
        rate = round(rate * STEP)
        answers = await offer(port, draw, rate=rate, seconds=SECONDS)
    return least, took, found, best


def within_bar(answers: LoadAnswers) -> bool:
    """Return whether all requests were served with p95 within the target."""
    slowest = answers.percentile_ms(200, 95)
    return slowest is not None and slowest <= P95_BAR_MS and answers.count(200) == len(answers.status)


def _told(rate: float, answers: LoadAnswers) -> tuple[Cell, ...]:
    if not rate:
        return (None, None, None)
    served = answers.count(200)
    return (served / answers.offered_sec, answers.percentile_ms(200, 95), len(answers.status) - served)

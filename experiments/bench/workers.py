"""How many recall requests by code one server process answers, and how many two behind one port do.

The rate is raised step by step, and the last one that was served whole, with its p95 within the bar, counts. The
servers share their cores with this process, which offers the requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx

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
    highest = []
    for workers in FORMS:
        with running_backend(prepared_newspaper(), workers=workers) as backend:
            _all_serve(backend)
            least, found, best = asyncio.run(_measured(backend.url))
        highest.append(found)
        gain = found / highest[0] if highest[0] else None
        rows.append((workers, *_told(LEAST_RATE, least), found or None, *_told(found, best)[1:], gain))
    columns = (
        "processes",
        "served of 400 a second",
        "p95 ms",
        "other than 200",
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
        "most of one."
    )
    return [Table("Recall by code, by server processes behind one port", columns, rows, (note, bar), (SEED,))]


def _all_serve(backend: RunningBackend) -> None:
    """Wait until the last process does: only then it is told where they listen."""
    address = ServerAddress(backend.settings.servers_dir)
    while address.known() != backend.url:
        backend.processes.check()
        time.sleep(0.1)


async def _measured(url: str) -> tuple[LoadAnswers, float, LoadAnswers]:
    """What became of the least rate; the highest that was within the bar, 0 for none, and what became of that."""
    port = urlsplit(url).port
    assert port is not None
    dice = random.Random(SEED)
    release = json.loads(httpx.get(f"{url}/v1/releases/current").json()["manifest"])["release"]
    draw = partial(dice.choice, [recall_request(short_release(release), code) for code in range(CODES)])
    await offer(port, draw, rate=40, seconds=2)  # each process makes each code's list once
    least = best = await offer(port, draw, rate=LEAST_RATE, seconds=SECONDS)
    rate, found, answers = LEAST_RATE, 0.0, least
    while within_bar(answers) and rate <= MOST_RATE:
        found, best = rate, answers
        rate = round(rate * STEP)
        answers = await offer(port, draw, rate=rate, seconds=SECONDS)
    return least, found, best


def within_bar(answers: LoadAnswers) -> bool:
    """All served, and their p95 in time."""
    slowest = answers.percentile_ms(200, 95)
    return slowest is not None and slowest <= P95_BAR_MS and answers.count(200) == len(answers.status)


def _told(rate: float, answers: LoadAnswers) -> tuple[Cell, ...]:
    if not rate:
        return (None, None, None)
    served = answers.count(200)
    return (served / answers.offered_sec, answers.percentile_ms(200, 95), len(answers.status) - served)

"""A server beyond its capacity, and one that is being stalled: what readers get meanwhile.

The server is `ownfeed serve` over the newspaper, in a process that may open 1,024 files; this process shares its cores.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from backend.operator import Operator
from device_app.wire.ids import PROTOCOL_VERSION, short_release
from device_app.wire.offers import SignedOffer
from device_app.wire.rounds import RoundManifest, RoundStatus
from experiments.bench.newspaper import RunningBackend, running_backend
from experiments.bench.open_loop import LoadAnswers, offer
from experiments.table import Cell, Table

OPEN_FILES = 1_024
RATES = (100, 300, 600)
SECONDS = 12.0
SLOW_UPLOADS, STUCK_HEADERS = 60, 1_500
STALLED_SYSTEM = "small_ranker"
"""A plain round: its uploads are due at once, so that all sixty are held open."""
CODES = 16
SEED = 7


def run(data: Path) -> list[Table]:
    """Recall at several rates, then reads while uploads and headers are stuck."""
    with _few_open_files() as lift, running_backend() as backend:
        lift()
        return asyncio.run(_measured(backend))


async def _measured(backend: RunningBackend) -> list[Table]:
    dice = random.Random(SEED)
    port = urlsplit(backend.url).port
    assert port is not None
    release = httpx.get(f"{backend.url}/v1/releases/current").json()
    current = json.loads(release["manifest"])["release"]
    reports = [recall_request(short_release(current), code) for code in range(CODES)]
    reads = {
        "recall": (40.0, reports),
        "releases": (10.0, [_get("/v1/releases/current")]),
        "default list": (10.0, [_get("/v1/news/front")]),
    }
    for _, requests in reads.values():
        for request in requests:
            await offer(port, partial(dice.choice, [request]), rate=1, seconds=1)
    rows = [
        _row(f"recall, {rate} a second", await offer(port, partial(dice.choice, reports), rate=rate, seconds=SECONDS))
        for rate in RATES
    ]
    operator = Operator(backend.url, backend.settings.admin_token_file)
    opened = operator.open_round(STALLED_SYSTEM, cohort=SLOW_UPLOADS, cohort_minimum=SLOW_UPLOADS, seconds=600)
    held: list[asyncio.StreamWriter] = []
    try:
        await _slow_uploads(backend, port, current, opened, held)
        stuck = asyncio.create_task(_stuck_headers(port, held))
        names, offers = zip(*reads.items(), strict=True)
        found = await asyncio.gather(
            *(offer(port, partial(dice.choice, sent), rate=rate, seconds=SECONDS) for rate, sent in offers)
        )
        await stuck
        stalled = [_row(name, answers) for name, answers in zip(names, found, strict=True)]
    finally:
        for writer in held:
            writer.transport.abort()
        # the folder is the next bench's as well: its rounds would wait ten minutes for this one
        await asyncio.to_thread(operator.cancel, opened.round)
    columns = (
        "offered",
        "served a second",
        "p50 ms",
        "p95 ms",
        "refused with 503",
        "p95 ms of 503",
        "time-outs",
        "other",
    )
    note = (
        f"Open loop: requests come when they are due, and times count from then. Server and this process share "
        f"{os.cpu_count()} cores, load of {os.getloadavg()[0]:.1f}. The server may open {OPEN_FILES:,} files."
    )
    return [
        Table("Recall by code, 400 candidates, beyond capacity", columns, rows, (
            note, "Bar at 600 a second: 250 served at p95 100 ms, the rest refused at once, no time-out.",
        ), (SEED,)),
        Table(f"Reads beside {SLOW_UPLOADS} slow uploads and {STUCK_HEADERS:,} stuck headers", columns, stalled, (
            note, "Bar: p95 200 ms throughout.",
        ), (SEED,)),
    ]  # fmt: skip


def _row(name: str, answers: LoadAnswers) -> tuple[Cell, ...]:
    return (
        name,
        answers.count(200) / answers.offered_sec,
        answers.percentile_ms(200, 50),
        answers.percentile_ms(200, 95),
        answers.count(503),
        answers.percentile_ms(503, 95),
        answers.count("time-out"),
        answers.troubles(),
    )


async def _slow_uploads(
    backend: RunningBackend, port: int, release: str, opened: RoundStatus, held: list[asyncio.StreamWriter]
) -> None:
    """Places of this round, each with an upload of which a few bytes have come; held gets their connections."""
    with httpx.Client(base_url=backend.url) as http:
        for _ in range(SLOW_UPLOADS):
            check_in = {"protocol": PROTOCOL_VERSION, "release": short_release(release), "tasks": [opened.task]}
            signed = SignedOffer.model_validate_json(http.post("/v1/rounds/check-in", json=check_in).content)
            manifest = RoundManifest.model_validate_json(signed.manifest)
            path = f"/v1/rounds/{manifest.round}/updates/{signed.pseudonym}"
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"PUT {path} HTTP/1.1\r\nhost: b\r\ncontent-type: application/vnd.safetensors\r\n"
                f"content-length: {_floats_bytes(manifest)}\r\n\r\nslow".encode()
            )
            held.append(writer)


def _floats_bytes(manifest: RoundManifest) -> int:
    """Bytes of the update's numbers, without their names: a size that the server has to believe."""
    return sum(4 * math.prod(shape) for shape in manifest.shapes.values())


async def _stuck_headers(port: int, held: list[asyncio.StreamWriter]) -> None:
    for _ in range(STUCK_HEADERS):
        try:
            async with asyncio.timeout(5):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
        except (TimeoutError, OSError):
            continue
        writer.write(b"GET /v1/health HTTP/1.1\r\nhost:")
        held.append(writer)


def recall_request(short: int, code: int) -> bytes:
    """A whole request of 400 candidates for a report of this code."""
    body = json.dumps({"release": short, "limit": 400, "report": {"kind": "code", "codebook": CODES, "code": code}})
    head = "POST /v1/recall HTTP/1.1\r\nhost: b\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: b\r\n\r\n".encode()


@contextmanager
def _few_open_files() -> Iterator[Callable[[], None]]:
    """Processes started in the block may open OPEN_FILES; what is yielded gives this one its own limit back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    try:
        yield lift
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

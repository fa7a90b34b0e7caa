"""Measures what readers get from a server beyond its capacity, and from one with stalled clients.

Requests are sent to a local server at fixed times, whether or not earlier ones were answered. Times count from when a
request was due, so that a stalled server is charged for everyone who waited. The server is `ownfeed serve` with the
newspaper, in a process that may open 1,024 files; it shares the machine's cores with this process.
"""

import asyncio
import json
import math
import os
import random
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np

from backend.operations.admin_client import Operator
from experiments.bench.newspaper import RunningBackend, running_backend
from experiments.records import Cell, Table
from protocol.ids import PROTOCOL_VERSION, short_release
from protocol.rounds import RoundManifest, RoundStatus, SignedOffer

TIME_OUT_SEC = 10.0
HEAD_END = b"\r\n\r\n"


@dataclass
class LoadAnswers:
    """The status or error of each request, and the milliseconds since it was due."""

    offered_sec: float = 0.0
    status: list[int | str] = field(default_factory=list)
    waited_ms: list[float] = field(default_factory=list)

    def count(self, status: int | str) -> int:
        """Return how many requests ended with this status."""
        return Counter(self.status)[status]

    def percentile_ms(self, status: int, percent: float) -> float | None:
        """Return a percentile of the milliseconds of requests with this status; None if there are none."""
        known = [one for one, received in zip(self.waited_ms, self.status, strict=True) if received == status]
        return float(np.percentile(known, percent)) if known else None

    def troubles(self) -> str:
        """Return everything except 200 and 503, as text."""
        rest = Counter(one for one in self.status if one not in (200, 503))
        return ", ".join(f"{count} {name}" for name, count in rest.items()) or "none"


class _Connection(asyncio.Protocol):
    """A keep-alive connection with one request at a time; bodies are counted and discarded."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.lost = False
        self._head = bytearray()
        self._left: int | None = None
        self._status = 0
        self._answered: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        if self._left is None:
            self._head += data
            end = self._head.find(HEAD_END)
            if end < 0:
                return
            head = bytes(self._head[:end]).lower()
            self._status = int(head[9:12])
            declared = head.partition(b"content-length:")[2].partition(b"\r")[0]
            self._left = int(declared or 0) - (len(self._head) - end - len(HEAD_END))
            self._head.clear()
        else:
            self._left -= len(data)
        if self._left <= 0:
            self._left = None
            if self._answered is not None and not self._answered.done():
                self._answered.set_result(self._status)

    async def ask(self, request: bytes) -> int:
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answered


async def offer(
    port: int, draw: Callable[[], bytes], *, rate: float, seconds: float, source: str | None = None
) -> LoadAnswers:
    """Send `rate` requests a second to 127.0.0.1:port, each a whole HTTP/1.1 request that `draw` returns.

    source: the address that connections come from, such as 127.0.0.2; the system chooses without one. A request takes
    an idle connection or opens a new one; a request without an answer within TIME_OUT_SEC has failed.
    """
    loop, found, free = asyncio.get_running_loop(), LoadAnswers(), list[_Connection]()
    started = loop.time()

    async def connected() -> _Connection:
        own = None if source is None else (source, 0)
        return (await loop.create_connection(_Connection, "127.0.0.1", port, local_addr=own))[1]

    async def one(due: float) -> None:
        status: int | str
        try:
            async with asyncio.timeout(TIME_OUT_SEC):
                while free and free[-1].lost:
                    free.pop()
                connection = free.pop() if free else await connected()
                status = await connection.ask(draw())
                free.append(connection)
        except (TimeoutError, OSError) as trouble:
            status = "time-out" if isinstance(trouble, TimeoutError) else "connection lost"
        found.status.append(status)
        found.waited_ms.append(1_000 * (loop.time() - due))

    async with asyncio.TaskGroup() as under_way:
        for place in range(round(rate * seconds)):
            due = started + place / rate
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            under_way.create_task(one(due))
    found.offered_sec = loop.time() - started
    for connection in free:
        connection.transport.close()
    return found


OPEN_FILES = 1_024
RATES = (100, 300, 600)
SECONDS = 12.0
SLOW_UPLOADS, STUCK_HEADERS = 60, 1_500
STALLED_SYSTEM = "small_ranker/local/mean"
"""A system whose rounds use plain uploads; all of them are due at once, so all sixty stay open."""
CODES = 16
SEED = 7


def run(data: Path) -> list[Table]:
    """Return two tables: recall at several rates, and reads while uploads and headers are stuck."""
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
        # The folder is shared with the next bench, whose rounds would wait ten minutes for this one.
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
    note = f"Open loop, so times count from when a request is due; server and client share {os.cpu_count()} cores."
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
    """Fill this round's places with uploads that stall after a few bytes.

    `held` gets their connections.
    """
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
    """Return the bytes of the update's numbers, without their names: a size that the server must accept as
    plausible.
    """
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
    """Return a complete request for 400 candidates, with a report of this code."""
    body = json.dumps({"release": short, "limit": 400, "report": {"kind": "code", "codebook": CODES, "code": code}})
    head = "POST /v1/recall HTTP/1.1\r\nhost: b\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: b\r\n\r\n".encode()


@contextmanager
def _few_open_files() -> Iterator[Callable[[], None]]:
    """Limit processes started in the block to OPEN_FILES.

    Yields a call that raises this process's own limit to the maximum.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    try:
        yield lift
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

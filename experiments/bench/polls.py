"""Measures what a poll that finds nothing new costs the server.

The answer comes from memory or is made each time; a bare uvicorn shows the lower limit. The server is `ownfeed serve`
with the newspaper, configured as behind a proxy. A cost is the CPU time of the event loop's thread, so other work
matters little; answers made each time also use another thread.
"""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import uvicorn
from starlette.types import Receive, Scope, Send

from experiments.bench.newspaper import free_port, prepared_newspaper, running_backend
from experiments.records import Cell, Table
from protocol.ids import short_release
from protocol.releases import ReleaseManifest, SignedManifest

REQUESTS, WARM_UP, TURNS = 2_000, 200, 3
SEED = 7
"""Seed of the newspaper."""
BEHIND_A_PROXY = {"OWNFEED_BACKEND_TRUSTED_PROXIES": '["127.0.0.0/8"]'}
MADE_EACH_TIME = {"OWNFEED_BACKEND_SHARED_ANSWERS_SEC": "0"}
BARE = "bare uvicorn, an empty 304"


def run(data: Path) -> list[Table]:
    """Return the CPU time of a poll of each kind."""
    settings = prepared_newspaper()
    costs: dict[str, dict[str, list[float]]] = {}
    for _ in range(TURNS):
        for kind, environment in (("from memory", {}), ("made each time", MADE_EACH_TIME)):
            with running_backend(settings, environment=BEHIND_A_PROXY | environment) as backend:
                server = _server_of(backend.url)
                polls = _polls(backend.url)
                _wait_until_prepared(polls.values(), backend.url)
                for name, path in polls.items():
                    costs.setdefault(name, {}).setdefault(kind, []).append(_cost_ms(server, backend.url, path))
        costs.setdefault(BARE, {}).setdefault("from memory", []).append(_bare_ms())
    columns = ("poll", "from memory, CPU ms", "made each time, CPU ms", "times less")
    rows = [_row(name, found) for name, found in costs.items()]
    note = (
        f"CPU time of the event loop a request with If-None-Match, {REQUESTS:,} requests on one connection, "
        f"median of {TURNS} turns. Bar: .15 ms."
    )
    return [Table("Polls that find nothing new", columns, rows, (note,), (SEED,))]


def _row(name: str, found: dict[str, list[float]]) -> tuple[Cell, ...]:
    kept = statistics.median(found["from memory"])
    if "made each time" not in found:
        return (name, kept, None, None)
    computed = statistics.median(found["made each time"])
    return (name, kept, computed, computed / kept)


def _polls(url: str) -> dict[str, str]:
    signed = SignedManifest.model_validate_json(httpx.get(f"{url}/v1/releases/current").content)
    number = short_release(ReleaseManifest.model_validate_json(signed.manifest).release)
    return {
        "current release": "/v1/releases/current",
        "current round": "/v1/rounds/current",
        "default list": "/v1/news/front",
        "codes": f"/v1/releases/{number}/codes",
        "popularity": f"/v1/releases/{number}/popularity",
        "pictures": "/v1/pictures",
    }


def _server_of(url: str) -> psutil.Process:
    port = urlsplit(url).port
    listening = (each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN)
    return psutil.Process(next(each.pid for each in listening if each.laddr.port == port and each.pid is not None))


def _wait_until_prepared(paths: Iterable[str], url: str) -> None:
    """Wait for what a server prepares after its start, such as the pool's codes."""
    while any(httpx.get(url + path).status_code == httpx.codes.SERVICE_UNAVAILABLE for path in paths):
        time.sleep(1)


def _spent(server: psutil.Process) -> float:
    """Return CPU seconds of the event loop's thread so far."""
    (loop,) = (each for each in server.threads() if each.id == server.pid)
    return float(loop.user_time + loop.system_time)


def _cost_ms(server: psutil.Process, url: str, path: str) -> float:
    etag = httpx.get(url + path).raise_for_status().headers.get("etag", '""')
    parts = urlsplit(url)
    head = f"GET {path} HTTP/1.1\r\nhost: {parts.netloc}\r\nif-none-match: {etag}\r\n\r\n".encode()
    return asyncio.run(_measured(parts.port or 0, head, partial(_spent, server)))


async def _measured(port: int, request: bytes, spent: Callable[[], float]) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = 0.0
    for number in range(WARM_UP + REQUESTS):
        if number == WARM_UP:
            began = spent()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if head[9:12] not in (b"304", b"204"):
            raise ValueError(f"a poll was answered {head[9:12].decode()}, not 304 or 204")
    found = 1_000 * (spent() - began) / REQUESTS
    writer.close()
    return found


def _bare_ms() -> float:
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=_serve_bare, args=(port,))
    process.start()
    try:
        while process.is_alive():
            try:
                return _cost_ms(psutil.Process(process.pid), f"http://127.0.0.1:{port}", "/")
            except httpx.ConnectError:
                time.sleep(0.1)
        raise ChildProcessError("the bare server ended before it answered")
    finally:
        process.terminate()
        process.join()


async def _bare(scope: Scope, receive: Receive, send: Send) -> None:
    status = 304 if any(name == b"if-none-match" for name, _ in scope["headers"]) else 200
    await send({"type": "http.response.start", "status": status, "headers": [(b"etag", b'"1"')]})
    await send({"type": "http.response.body"})


def _serve_bare(port: int) -> None:
    uvicorn.run(_bare, host="127.0.0.1", port=port, lifespan="off", access_log=False, log_level="error")

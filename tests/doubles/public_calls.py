"""Public requests of readers' devices to a backend, as complete HTTP requests from many local addresses.

Requests are sent in an open loop (`experiments.bench.overload`). Two addresses send more than the limit allows.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from experiments.bench.overload import LoadAnswers, offer, recall_request
from protocol.ids import short_release

ADDRESSES = 50
GREEDY = 2
"""Number of greedy addresses; each sends GREEDY_TIMES the limit of an address."""
GREEDY_TIMES = 3
CODES = 16
LISTED = 600
SHARES = {"recall": 40, "front": 15, "kept front": 10, "release": 10, "rounds": 15, "bodies": 5, "counts": 3, "page": 2}
"""Percentage of each call."""
FINE = (200, 204, 304)
"""204: no count has been published yet."""


@dataclass(frozen=True)
class Caller:
    """An address, its requests per second, and their outcomes."""

    address: str
    rate: float
    answers: LoadAnswers


def mixed_calls(url: str) -> Callable[[random.Random], bytes]:
    """Draw one of the public calls, with the names of this backend's current release, list and articles."""
    with httpx.Client(base_url=url, timeout=30.0) as http:
        release = short_release(json.loads(http.get("/v1/releases/current").json()["manifest"])["release"])
        listed = http.get("/v1/news/front", params={"limit": LISTED}).raise_for_status()
        popularity = f"/v1/releases/{release}/popularity"
        http.get(popularity).raise_for_status()
    named = [one["id"] for one in listed.json()["candidates"]][:20]
    front = f"/v1/news/front?limit={LISTED}"
    body = json.dumps({"ids": named})
    kinds: dict[str, Sequence[bytes]] = {
        "recall": [recall_request(release, code) for code in range(CODES)],
        "front": [_get(front, "accept-encoding: gzip")],
        "kept front": [_get(front, f"if-none-match: {listed.headers['etag']}")],
        "release": [_get("/v1/releases/current"), _get("/v1/keys")],
        "rounds": [_get("/v1/rounds/current")],
        "bodies": [
            f"POST /v1/news/bodies HTTP/1.1\r\nhost: b\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n{body}".encode()
        ],
        "counts": [_get(popularity)],
        "page": [_get("/reader/")],
    }
    names, weights = list(SHARES), list(SHARES.values())
    return lambda rng: rng.choice(kinds[rng.choices(names, weights)[0]])


def _get(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "host: b", *headers, "", "")).encode()


def rates(rate: float, limit_per_minute: int) -> list[float]:
    """Return each address's requests per second, greedy ones first.

    Raises ValueError if the others would be greedy too.
    """
    greedy = GREEDY_TIMES * limit_per_minute / 60
    each = (rate - GREEDY * greedy) / (ADDRESSES - GREEDY)
    if not 0 < each < limit_per_minute / 60:
        raise ValueError(f"rate: {rate:g} leaves {each:g} a second for an address, which may {limit_per_minute / 60:g}")
    return [greedy] * GREEDY + [each] * (ADDRESSES - GREEDY)


def allowed(caller: Caller, limit_per_minute: int) -> tuple[float, float]:
    """The least and the most requests that a token bucket accepts, within 5 % and a second.

    It accepts a minute's share at once, and refills while requests arrive.
    """
    may = limit_per_minute + caller.answers.offered_sec * limit_per_minute / 60
    return 0.95 * min(may, len(caller.answers.status)), 1.05 * may + limit_per_minute / 60


async def call_from_everywhere(
    port: int, draw: Callable[[random.Random], bytes], each: Sequence[float], seconds: float, seed: int
) -> list[Caller]:
    """Send mixed calls from 127.0.1.1 on, one address for each rate, for this long."""

    async def one(number: int, rate: float) -> Caller:
        rng, address = random.Random(seed + number), f"127.0.1.{1 + number}"
        await asyncio.sleep(rng.random() / rate)  # addresses don't send in step
        answers = await offer(port, lambda: draw(rng), rate=rate, seconds=seconds, source=address)
        return Caller(address, rate, answers)

    return list(await asyncio.gather(*(one(number, rate) for number, rate in enumerate(each))))


def offer_mixed_calls(url: str, each: Sequence[float], seconds: float, seed: int) -> list[Caller]:
    """Send mixed calls from everywhere, in a process of its own.

    In a busy process, delayed requests would be sent at once, which is not how readers behave.
    """
    port = urlsplit(url).port
    assert port is not None
    return asyncio.run(call_from_everywhere(port, mixed_calls(url), each, seconds, seed))


def faults(callers: Sequence[Caller], limit_per_minute: int) -> list[str]:
    """Return what callers were wrongly answered.

    Empty if only callers over the limit were refused, as often as expected.
    """
    wrong, found = Counter[str](), list[str]()
    for caller in callers:
        reported, over = Counter(caller.answers.status), caller.rate > limit_per_minute / 60
        for status, count in reported.items():
            if status not in FINE and not (over and status == 429):
                wrong[f"an address {'over' if over else 'below'} the limit was told {status!r}"] += count
        fine, (least, most) = sum(reported[status] for status in FINE), allowed(caller, limit_per_minute)
        if over and not least <= fine <= most:
            found.append(f"{caller.address} was served {fine} times, between {least:.0f} and {most:.0f} were due")
    return [f"{what} {count} times" for what, count in wrong.items()] + found

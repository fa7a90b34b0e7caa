"""Requests offered at fixed times, whether or not earlier ones were answered; for benches of a server on this machine.

Times count from the moment a request was due, so that a server that stands still is charged for all who waited.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

TIME_OUT_SEC = 10.0
HEAD_END = b"\r\n\r\n"


@dataclass
class LoadAnswers:
    """status, or the name of what went wrong, and milliseconds since the request was due; of all that were offered."""

    offered_sec: float = 0.0
    status: list[int | str] = field(default_factory=list)
    waited_ms: list[float] = field(default_factory=list)

    def count(self, status: int | str) -> int:
        """How many ended so."""
        return Counter(self.status)[status]

    def percentile_ms(self, status: int, percent: float) -> float | None:
        """Of those that ended so; None if there are none."""
        known = [one for one, said in zip(self.waited_ms, self.status, strict=True) if said == status]
        return float(np.percentile(known, percent)) if known else None

    def troubles(self) -> str:
        """Everything but 200 and 503, in words."""
        rest = Counter(one for one in self.status if one not in (200, 503))
        return ", ".join(f"{count} {name}" for name, count in rest.items()) or "none"


class _Connection(asyncio.Protocol):
    """One keep-alive connection with one request at a time; bodies are counted and thrown away."""

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
    """Offer rate requests a second to 127.0.0.1:port for so long, each a whole HTTP/1.1 request that `draw` gives.

    source: the address that connections come from, such as 127.0.0.2; the system's choice without one. A request takes
    a connection that is free, else a new one; one that isn't answered within TIME_OUT_SEC has failed.
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
                taken = free.pop() if free else await connected()
                status = await taken.ask(draw())
                free.append(taken)
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

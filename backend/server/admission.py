"""Admission control: limits on requests per minute and source, on running requests and on waiting ones.

A source is one network address (`ClientAddresses.source`). The waiting line is shared fairly: each source's first
request comes before any source's second, and if the line is full, a source with fewer waiting requests takes the place
of one with more. A request whose address has no limits is its own source.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import ClassVar

from backend.errors import OverCapacity, TooManyRequests

SOURCES_KEPT = 50_000
"""Sources counted in memory; beyond that, the least recently seen is forgotten."""
EVERYBODY = "everybody"
FULLER_BY = 2
"""A source takes another's place if the other has this many more waiting requests; with one more they would swap."""


@dataclass
class TokenBuckets:
    """One token bucket per source: it holds a minute's requests and refills evenly.

    Safe in threads.

    Args:
        per_minute: requests from one source; 0: no limit.
        clock: monotonic seconds.
    """

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seconds_to_wait(self, source: str | None) -> float:
        """Return 0 and count the request if it may continue; else how long to wait.

        None: a source without limits.
        """
        if source is None or not self.per_minute:
            return 0.0
        full, now = float(self.per_minute), self.clock()
        with self._lock:
            left, since = self._left.pop(source, (full, now))
            left = min(full, left + (now - since) * full / 60)
            taken = left >= 1.0
            self._left[source] = (left - 1.0 if taken else left, now)
            if len(self._left) > SOURCES_KEPT:
                self._left.popitem(last=False)
        return 0.0 if taken else (1.0 - left) * 60 / full


class RateLimits:
    """Limits of requests per minute for one source, and for all together.

    Checked before a request is read.

    Addresses in the setting unbounded_addresses are not counted at all.
    """

    free: ClassVar[frozenset[str]] = frozenset({"/v1/health"})
    """Paths that aren't counted, so that a flood can't make a running server look dead."""

    def __init__(self, *, per_minute: int, per_minute_in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        """0: no limit."""
        self._each = TokenBuckets(per_minute, clock)
        self._all = TokenBuckets(per_minute_in_all, clock)

    def check(self, source: str | None, path: str) -> None:
        """Count a request of this source.

        Raises TooManyRequests; a refused request doesn't use up the others' limit.
        """
        if source is None or path in self.free:
            return
        for buckets, who in ((self._each, source), (self._all, EVERYBODY)):
            if wait_sec := buckets.seconds_to_wait(who):
                raise TooManyRequests(buckets.per_minute, everybody=who is EVERYBODY, wait_sec=math.ceil(wait_sec))


class Admission:
    """Lets `running` requests run and `waiting` more wait for at most `wait_sec`.

    For one event loop.

    Refused are: a request that finds the line full; a waiting request of the source with the most requests, when a
    source with fewer arrives; and one that has waited too long, whose answer would be late.
    """

    def __init__(
        self, *, running: int, waiting: int, wait_sec: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._waiting, self._wait_sec, self._clock = running, waiting, wait_sec, clock
        self._running = self._standing = 0
        self._line: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self.refused = 0

    def check(self, source: str | None = None) -> None:
        """Raise OverCapacity if there is no room for this source. Called before a request is read."""
        if self._standing >= self._waiting and self._fuller_than(source) is None:
            self.refused += 1
            raise OverCapacity

    @asynccontextmanager
    async def place(self, source: str | None = None) -> AsyncIterator[None]:
        """Hold a running place during the block. Raises OverCapacity."""
        await self.enter(source)
        try:
            yield
        finally:
            self.leave()

    async def enter(self, source: str | None = None) -> None:
        """Take a running place; `leave` gives it back. Raises OverCapacity.

        Sources take turns, and each source's requests are served in order. None: a source without limits.
        """
        if self._running < self._limit:
            self._running += 1
            try:
                # Yield once, so that all requests that arrived together are in line before one is answered.
                await asyncio.sleep(0)
            except BaseException:
                self.leave()
                raise
            return
        self.check(source)
        if self._standing >= self._waiting and (fuller := self._fuller_than(source)) is not None:
            newest = self._line[fuller][-1]
            self._drop(fuller, newest)
            newest.set_exception(OverCapacity())
        came, turn = self._clock(), asyncio.get_running_loop().create_future()
        name: Hashable = turn if source is None else source
        self._line.setdefault(name, deque()).append(turn)
        self._standing += 1
        try:
            await turn
        except asyncio.CancelledError:
            self._drop(name, turn)
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave()  # the place was granted at the same moment
            raise
        except OverCapacity:
            self.refused += 1
            raise
        if self._clock() - came > self._wait_sec:
            self.leave()
            self.refused += 1
            raise OverCapacity

    def leave(self) -> None:
        """Give a place back, or pass it to the first request of the next source."""
        while self._line:
            name, turns = next(iter(self._line.items()))
            turn = turns[0]
            self._line.move_to_end(name)
            self._drop(name, turn)
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1

    def _fuller_than(self, source: str | None) -> Hashable | None:
        """The source with the most waiting requests, if it has enough more than this one to lose a place to it."""
        own = 0 if source is None else len(self._line.get(source, ()))
        name = max(self._line, key=lambda one: len(self._line[one]), default=None)
        return name if name is not None and len(self._line[name]) >= own + FULLER_BY else None

    def _drop(self, name: Hashable, turn: asyncio.Future[None]) -> None:
        """Remove this request from the line, if it is still there."""
        turns = self._line.get(name)
        if turns is None:
            return
        with suppress(ValueError):
            turns.remove(turn)
            self._standing -= 1
        if not turns:
            del self._line[name]

"""Bounded work on the event loop: so many requests at work, so many waiting in line, and every further one refused."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from backend.errors import OverCapacity


class Admission:
    """A place at work for `running` requests at a time; `waiting` more stand in line for at most `wait_sec`.

    A refusal costs no work: it comes at once to whoever finds the line full, and to whoever stood in it for too long,
    whose answer would be late. Use on one event loop.
    """

    def __init__(
        self, *, running: int, waiting: int, wait_sec: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._waiting, self._wait_sec, self._clock = running, waiting, wait_sec, clock
        self._running = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self.refused = 0

    def check(self) -> None:
        """Raises OverCapacity if the line is full: asked before anything of a request is read."""
        if len(self._line) >= self._waiting:
            self.refused += 1
            raise OverCapacity

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """At work while the block runs. Raises OverCapacity."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        """Take a place, in the order of arrival; `leave` gives it back. Raises OverCapacity."""
        if self._running < self._limit:
            self._running += 1
            try:
                # One turn of the loop, so that all requests which came together are in line before one is answered.
                await asyncio.sleep(0)
            except BaseException:
                self.leave()
                raise
            return
        self.check()
        came, turn = self._clock(), asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            with suppress(ValueError):
                self._line.remove(turn)
            if turn.done() and not turn.cancelled():
                self.leave()  # the place came in the same moment
            raise
        if self._clock() - came > self._wait_sec:
            self.leave()
            self.refused += 1
            raise OverCapacity

    def leave(self) -> None:
        """Give a place back, or on to the first in line."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1

"""Bounded work on the event loop: so many requests at work, so many waiting in line, and every further one refused.

The line is shared among those who ask: each source's first request comes before any source's second, and where the line
is full a source with fewer requests in it takes the place of one with more. A source is one network address
(`ClientAddresses.source`); a request whose address has no bounds is a source by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress

from backend.errors import OverCapacity

FULLER_BY = 2
"""A source takes another's place if the other has so many more requests in line: with one more they would swap."""


class Admission:
    """A place at work for `running` requests at a time; `waiting` more stand in line for at most `wait_sec`.

    A refusal costs no work: it comes at once to whoever finds the line full, to whoever made it so when a source with
    fewer requests comes, and to whoever stood in it for too long, whose answer would be late. Use on one event loop.
    """

    def __init__(
        self, *, running: int, waiting: int, wait_sec: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._waiting, self._wait_sec, self._clock = running, waiting, wait_sec, clock
        self._running = self._standing = 0
        self._line: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self.refused = 0

    def check(self, source: str | None = None) -> None:
        """Raises OverCapacity if there is no room for this source: asked before anything of a request is read."""
        if self._standing >= self._waiting and self._fuller_than(source) is None:
            self.refused += 1
            raise OverCapacity

    @asynccontextmanager
    async def place(self, source: str | None = None) -> AsyncIterator[None]:
        """At work while the block runs. Raises OverCapacity."""
        await self.enter(source)
        try:
            yield
        finally:
            self.leave()

    async def enter(self, source: str | None = None) -> None:
        """Take a place, the sources in turn and each in the order of its requests; `leave` gives it back.

        source: where the request comes from; None for one without bounds. Raises OverCapacity.
        """
        if self._running < self._limit:
            self._running += 1
            try:
                # One turn of the loop, so that all requests which came together are in line before one is answered.
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
                self.leave()  # the place came in the same moment
            raise
        except OverCapacity:
            self.refused += 1
            raise
        if self._clock() - came > self._wait_sec:
            self.leave()
            self.refused += 1
            raise OverCapacity

    def leave(self) -> None:
        """Give a place back, or on to the first request of the source whose turn it is."""
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
        """The source with the most requests in line, if it has enough more than this one to give a place up."""
        own = 0 if source is None else len(self._line.get(source, ()))
        name = max(self._line, key=lambda one: len(self._line[one]), default=None)
        return name if name is not None and len(self._line[name]) >= own + FULLER_BY else None

    def _drop(self, name: Hashable, turn: asyncio.Future[None]) -> None:
        """Take this out of the line, if it still is in it."""
        turns = self._line.get(name)
        if turns is None:
            return
        with suppress(ValueError):
            turns.remove(turn)
            self._standing -= 1
        if not turns:
            del self._line[name]

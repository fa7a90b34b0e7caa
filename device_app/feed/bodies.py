"""Fetches the texts of whole returned lists in the background, before a story is opened."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Condition, Event

import numpy as np
from numpy.typing import NDArray

from device_app.errors import BackendRefused, BackendUnreachable
from device_app.privacy.requests import seal_block, seal_common, seal_returned
from device_app.privacy.sealed import Sealed
from device_app.store.news import NewsStore
from device_app.store.pool_codes import PoolBlock
from device_app.uplink.backend_client import Uplink
from protocol.news import BodiesRequest
from protocol.recall import RecallAnswer

LISTS_WAITING = 4
AGAIN_AFTER_SEC = 3_600.0
"""Seconds during which a default list or block whose texts all came is not fetched again.

A list that answers a report is fetched every time, so that the server can't see whether it changed.
"""

TRIES = 3
"""How often a list is tried when the server refuses its texts; then it is dropped."""
BUSY = (429, 503)


@dataclass(frozen=True)
class _List:
    answer: RecallAnswer
    vectors: NDArray[np.float32]
    ids: tuple[str, ...]
    common: bool
    failures: int = 0


@dataclass(frozen=True)
class _Block:
    block: PoolBlock
    failures: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        return self.block.ids


class Bodies:
    """Fetches the texts of one list at a time, always all ids of an answer in one request.

    Whether and when a list is fetched depends only on the lists, which the server made, and not on what the reader
    opens. The one exception is mode `broadcast`, in which this device finds articles by itself, and fetches a text when
    the reader opens it, together with a whole block of the pool (see `privacy.requests.seal_block`).
    """

    def __init__(self, uplink: Uplink, store: NewsStore, clock: Callable[[], datetime]) -> None:
        self._uplink = uplink
        self._store = store
        self._clock = clock
        self._changed = Condition()
        self._waiting: deque[_List | _Block] = deque()
        self._under_way: _List | _Block | None = None
        self._fetched: dict[tuple[bool, str], float] = {}  # default list or block: (is it the default list, id) -> time
        self._attended = False
        self._lost = False

    def lost_some(self) -> bool:
        """Return whether fetching texts of the default list was given up since the last call."""
        lost, self._lost = self._lost, False
        return lost

    def want(self, answer: RecallAnswer, vectors: NDArray[np.float32], *, common: bool = False) -> None:
        """Queue a returned list (vectors [R, D], in its order).

        If more than four lists wait, the oldest is dropped. common: whether it is the default list.
        """
        ids = tuple(card.id for card in answer.candidates)
        if not ids:
            return
        self._queue(_List(answer, vectors, ids, common))

    def want_block(self, block: PoolBlock) -> None:
        """Queue the block of the pool that holds a story the reader opened."""
        self._queue(_Block(block))

    def _queue(self, wanted: _List | _Block) -> None:
        with self._changed:
            if _answers_report(wanted):  # one request per answer; a newer answer replaces one that still waits
                self._waiting = deque(one for one in self._waiting if not _answers_report(one))
            elif any(one.ids == wanted.ids for one in (*self._waiting, self._under_way) if one is not None):
                return
            self._waiting.append(wanted)
            while len(self._waiting) > LISTS_WAITING:
                self._note_lost(self._waiting.popleft())
            self._changed.notify_all()

    def step(self) -> bool:
        """Store the next waiting list and fetch its texts; return False if none waits.

        Raises what `Uplink.bodies` raises. If the server is busy or unreachable, the list stays first in the queue.
        After any other error it moves to the end, and after the third error it is dropped.
        """
        with self._changed:
            if self._under_way is not None or not self._waiting:
                return False
            current = self._under_way = self._waiting.popleft()
        again: _List | _Block | None = None
        try:
            if isinstance(current, _List):
                self._store.put(current.answer.candidates, current.vectors, current.answer.encoder, self._clock())
            if self._due(current):
                answer = self._uplink.bodies(_sealed(current))
                self._store.put_bodies({body.id: body.body for body in answer.bodies})
                if isinstance(current, _Block) or current.common:
                    self._fetched |= {(isinstance(current, _List), one): time.monotonic() for one in current.ids}
        except Exception as trouble:
            again = current if _passes(trouble) else replace(current, failures=current.failures + 1)
            raise
        finally:
            with self._changed:
                self._under_way = None
                if again is not None:
                    self._put_back(again)
                self._changed.notify_all()
        return True

    def _put_back(self, current: _List | _Block) -> None:
        """Requeue a list: first if it has had no failure of its own, else last.

        It is dropped if it has failed too often, the queue is full, or a newer answer waits.
        """
        if _answers_report(current) and any(map(_answers_report, self._waiting)):
            return
        if current.failures == 0:
            self._waiting.appendleft(current)
        elif current.failures < TRIES and len(self._waiting) < LISTS_WAITING:
            self._waiting.append(current)
        else:
            self._note_lost(current)

    def _note_lost(self, given_up: _List | _Block) -> None:
        self._lost |= isinstance(given_up, _List) and given_up.common

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Mark a block in which a background loop calls `step`.

        Only then does opening a story wait for its text.
        """
        with self._changed:
            self._attended = True
        try:
            yield
        finally:
            with self._changed:
                self._attended = False
                self._changed.notify_all()

    def waits(self) -> bool:
        """Return whether a list waits."""
        return bool(self._waiting)

    def wait_for_list(self, stop: Event, wait_sec: float) -> None:
        """Return when a list waits or `stop` is set, at most `wait_sec` from now."""
        with self._changed:
            self._changed.wait_for(lambda: self.waits() or stop.is_set(), timeout=wait_sec)

    def wake(self) -> None:
        """Make `wait_for_list` check its stop event."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, news_id: str, timeout_sec: float) -> None:
        """Wait at most `timeout_sec` while a list with this article is queued or being fetched."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._attended and self._expected(news_id)), timeout=timeout_sec)

    def _expected(self, news_id: str) -> bool:
        lists = (*self._waiting, self._under_way)
        return any(news_id in one.ids for one in lists if one is not None)

    def _due(self, wanted: _List | _Block) -> bool:
        if _answers_report(wanted):
            return True
        now = time.monotonic()
        self._fetched = {one: at for one, at in self._fetched.items() if now - at < AGAIN_AFTER_SEC}
        return any((isinstance(wanted, _List), one) not in self._fetched for one in wanted.ids)


def _answers_report(wanted: _List | _Block) -> bool:
    return isinstance(wanted, _List) and not wanted.common


def _sealed(wanted: _List | _Block) -> Sealed[BodiesRequest]:
    if isinstance(wanted, _Block):
        return seal_block(wanted.block)
    return seal_common(wanted.answer) if wanted.common else seal_returned(wanted.answer)


def _passes(trouble: Exception) -> bool:
    """Return whether the failure is temporary and would hit any other list too."""
    return isinstance(trouble, BackendUnreachable) or (
        isinstance(trouble, BackendRefused) and trouble.problem.status in BUSY
    )

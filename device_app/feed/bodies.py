"""The texts of whole returned lists, fetched in the background before anything on them is opened."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
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
from device_app.wire.news import BodiesRequest
from device_app.wire.recall import RecallAnswer

LISTS_WAITING = 4
AGAIN_AFTER_SEC = 3_600.0
"""A list is not asked for while all its texts came within this time, with it or with other lists."""

TRIES = 3
"""So often a list is tried whose texts are refused, though the backend answers; then it is dropped."""
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
    """Fetches the texts of lists one list at a time: every id of an answer in one request, never a choice among them.

    Whether and when a list is fetched depends on the lists alone, which the backend made, not on what the reader opens.
    The exception, in mode `broadcast` alone, is news that this device found by itself: its text is fetched when it is
    opened, among a whole block of the pool (see `privacy.requests.seal_block`).
    """

    def __init__(self, uplink: Uplink, store: NewsStore, clock: Callable[[], datetime]) -> None:
        self._uplink = uplink
        self._store = store
        self._clock = clock
        self._changed = Condition()
        self._waiting: deque[_List | _Block] = deque()
        self._under_way: _List | _Block | None = None
        self._fetched: dict[str, float] = {}
        self._attended = False

    def want(self, answer: RecallAnswer, vectors: NDArray[np.float32], *, common: bool = False) -> None:
        """Queue a returned list (vectors [R, D], in its order); of more than four waiting, the oldest is dropped.

        common: whether it is the list that every device gets.
        """
        ids = tuple(card.id for card in answer.candidates)
        if not ids:
            return
        self._queue(_List(answer, vectors, ids, common))

    def want_block(self, block: PoolBlock) -> None:
        """Queue a block of the pool, one of whose stories was opened."""
        self._queue(_Block(block))

    def _queue(self, wanted: _List | _Block) -> None:
        with self._changed:
            if any(one.ids == wanted.ids for one in (*self._waiting, self._under_way) if one is not None):
                return
            self._waiting.append(wanted)
            while len(self._waiting) > LISTS_WAITING:
                self._waiting.popleft()
            self._changed.notify_all()

    def step(self) -> bool:
        """Store the next waiting list and fetch its texts; False if none waits.

        Raises the errors of `Uplink.bodies`. While the backend is busy or out of reach, the list stays the next; after
        any other error the others go first, and at the third it is dropped.
        """
        with self._changed:
            if self._under_way is not None or not self._waiting:
                return False
            current = self._under_way = self._waiting.popleft()
        again: _List | _Block | None = None
        try:
            if isinstance(current, _List):
                self._store.put(current.answer.candidates, current.vectors, current.answer.encoder, self._clock())
            if self._due(current.ids):
                answer = self._uplink.bodies(_sealed(current))
                self._store.put_bodies({body.id: body.body for body in answer.bodies})
                self._fetched.update(dict.fromkeys(current.ids, time.monotonic()))
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
        """To the front if it has not failed by itself, else to the end, if there is room and it may be tried again."""
        if current.failures == 0:
            self._waiting.appendleft(current)
        elif current.failures < TRIES and len(self._waiting) < LISTS_WAITING:
            self._waiting.append(current)

    def attend(self, stop: Event, wait_sec: float, step: Callable[[], bool]) -> None:
        """Call `step` as lists come, until `stop` is set; its errors are the caller's. Wakes every `wait_sec`."""
        with self._changed:
            self._attended = True
        try:
            while not stop.is_set():
                if not step():
                    with self._changed:
                        self._changed.wait_for(lambda: bool(self._waiting) or stop.is_set(), timeout=wait_sec)
        finally:
            with self._changed:
                self._attended = False
                self._changed.notify_all()

    def wake(self) -> None:
        """Let `attend` look at its stop event."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, news_id: str, timeout_sec: float) -> None:
        """Wait while a list with this news is being fetched by another thread, at most `timeout_sec`."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._attended and self._expected(news_id)), timeout=timeout_sec)

    def _expected(self, news_id: str) -> bool:
        lists = (*self._waiting, self._under_way)
        return any(news_id in one.ids for one in lists if one is not None)

    def _due(self, ids: tuple[str, ...]) -> bool:
        now = time.monotonic()
        self._fetched = {one: at for one, at in self._fetched.items() if now - at < AGAIN_AFTER_SEC}
        return any(one not in self._fetched for one in ids)


def _sealed(wanted: _List | _Block) -> Sealed[BodiesRequest]:
    if isinstance(wanted, _Block):
        return seal_block(wanted.block)
    return seal_common(wanted.answer) if wanted.common else seal_returned(wanted.answer)


def _passes(trouble: Exception) -> bool:
    """Whether the next list would meet the same trouble, and this one may well come through later."""
    return isinstance(trouble, BackendUnreachable) or (
        isinstance(trouble, BackendRefused) and trouble.problem.status in BUSY
    )

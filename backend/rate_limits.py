"""How many requests one address may make in a minute, and all addresses together."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from backend.errors import TooManyRequests

SOURCES_KEPT = 50_000
"""Sources that are counted, in memory; the one heard of longest ago is forgotten for another."""
EVERYBODY = "everybody"


@dataclass
class TokenBuckets:
    """A token bucket a source: a minute's share may be used at once, and is given back evenly. Safe in threads.

    Args:
        per_minute: for one source; 0: any number.
        clock: seconds that only grow.
    """

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seconds_to_wait(self, source: str | None) -> float:
        """0 if the source may go on, which is counted; else how long to wait. None is a source without bounds."""
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
    """Asked before anything of a request is read. Addresses without bounds (the setting unbounded_addresses) aren't
    counted, neither as one nor among all."""

    free: ClassVar[frozenset[str]] = frozenset({"/v1/health"})
    """Paths that aren't counted: a flood mustn't make a living server look dead."""

    def __init__(self, *, per_minute: int, per_minute_in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        """0: any number."""
        self._each = TokenBuckets(per_minute, clock)
        self._all = TokenBuckets(per_minute_in_all, clock)

    def check(self, source: str | None, path: str) -> None:
        """Count a request of this source. Raises TooManyRequests; what one address makes too many spends nothing of the
        others' share."""
        if source is None or path in self.free:
            return
        for buckets, who in ((self._each, source), (self._all, EVERYBODY)):
            if wait_sec := buckets.seconds_to_wait(who):
                raise TooManyRequests(buckets.per_minute, everybody=who is EVERYBODY, wait_sec=math.ceil(wait_sec))

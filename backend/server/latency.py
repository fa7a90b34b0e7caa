"""Latencies of the last requests by stage, for the console and /v1/admin/latency.

Stores only times.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np
from pydantic import BaseModel, ConfigDict

TOTAL = "total"


class StageLatency(BaseModel):
    """Milliseconds of one stage over the window."""

    model_config = ConfigDict(frozen=True)

    p50_ms: float
    p95_ms: float
    p99_ms: float


class LatencyFigures(BaseModel):
    """One kind of request: its count since the start and in the window, and its stages."""

    model_config = ConfigDict(frozen=True)

    seen: int
    window: int
    stages: dict[str, StageLatency]


class LatencyLog:
    """A ring buffer of the last requests of each kind; safe for several threads."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._rings: dict[str, deque[dict[str, float]]] = {}
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()
        self._listeners: list[Callable[[str, Mapping[str, float]], None]] = []

    def listen(self, listener: Callable[[str, Mapping[str, float]], None]) -> None:
        """Call `listener` for each request from now on, with its kind and milliseconds by stage including 'total'."""
        self._listeners.append(listener)

    def record(self, kind: str, stages_ms: Mapping[str, float], total_ms: float) -> None:
        """Add one request. A stage that did not run is left out of that stage's figures."""
        entry = {**stages_ms, TOTAL: total_ms}
        with self._lock:
            self._rings.setdefault(kind, deque(maxlen=self._window)).append(entry)
            self._seen[kind] = self._seen.get(kind, 0) + 1
        for listener in self._listeners:
            listener(kind, entry)

    def last(self, kind: str, count: int) -> list[dict[str, float]]:
        """The stages of the last `count` requests of a kind, oldest first, in milliseconds including 'total'."""
        with self._lock:
            return list(self._rings.get(kind, ()))[-count:]

    def summary(self) -> dict[str, LatencyFigures]:
        """The figures of every kind seen."""
        with self._lock:
            rings = {kind: list(ring) for kind, ring in self._rings.items()}
            seen = dict(self._seen)
        return {
            kind: LatencyFigures(seen=seen[kind], window=len(ring), stages=_figures(ring))
            for kind, ring in sorted(rings.items())
        }


def _figures(ring: list[dict[str, float]]) -> dict[str, StageLatency]:
    names = list(dict.fromkeys(name for entry in ring for name in entry))
    figures = {}
    for name in names:
        times = [entry[name] for entry in ring if name in entry]
        p50, p95, p99 = (round(float(value), 3) for value in np.percentile(times, (50, 95, 99)))
        figures[name] = StageLatency(p50_ms=p50, p95_ms=p95, p99_ms=p99)
    return figures

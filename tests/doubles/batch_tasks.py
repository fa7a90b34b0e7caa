"""Tasks of batches that need nothing, so that a node begins with them at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ray

MEET_WITHIN_SEC = 120.0


@dataclass(frozen=True)
class MeetsAnother:
    """The node that computes a batch, the threads that it is told, and the square of the batch, once the other of two
    batches has begun: with a CPU a node, on the other node."""

    folder: Path
    key: str = "meets another"

    def portable(self) -> MeetsAnother:
        return self

    def open(self, threads: int) -> Callable[[int], tuple[str, int, int]]:
        def run(batch: int) -> tuple[str, int, int]:
            (self.folder / str(batch)).touch()
            until = time.monotonic() + MEET_WITHIN_SEC
            while not (self.folder / str(batch ^ 1)).exists():
                assert time.monotonic() < until, f"batch {batch ^ 1} has not begun"
                time.sleep(0.01)
            return str(ray.get_runtime_context().get_node_id()), threads, batch * batch

        return run


@dataclass(frozen=True)
class Divides:
    """1 / batch."""

    key: str = "divides"

    def portable(self) -> Divides:
        return self

    def open(self, threads: int) -> Callable[[float], float]:
        return lambda batch: 1 / batch

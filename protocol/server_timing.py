"""Measure the times of stages, and send them in a Server-Timing header (W3C Server Timing)."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

DEVICE_STAGES = ("store", "cluster", "decompose", "noise", "search", "encode", "network", "decode", "rank", "build")
SERVER_STAGES = ("decode", "aggregate", "search", "merge", "encode")
LONGEST_STAGE_MS = 86_400_000.0
_ENTRY = re.compile(r"^\s*([a-z_]{1,32})\s*;\s*dur=([0-9]+(?:\.[0-9]+)?)\s*$")


class Stopwatch:
    """Milliseconds by stage, in the order the stages first ran; a stage run twice adds up."""

    def __init__(self) -> None:
        self.stages_ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block and add it to `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1_000
            self.stages_ms[name] = self.stages_ms.get(name, 0.0) + elapsed_ms


def server_timing(stages_ms: Mapping[str, float]) -> str:
    """Return the value of a Server-Timing header."""
    return ", ".join(f"{name};dur={ms:.3f}" for name, ms in stages_ms.items())


def parse_server_timing(header: str) -> dict[str, float]:
    """Return the milliseconds of SERVER_STAGES.

    Other entries, malformed ones and times over a day are left out: proxies may add their own, and a server must not be
    able to create thousands of stored labels.
    """
    entries = {m[1]: float(m[2]) for part in header.split(",") if (m := _ENTRY.match(part))}
    return {stage: ms for stage, ms in entries.items() if stage in SERVER_STAGES and ms <= LONGEST_STAGE_MS}

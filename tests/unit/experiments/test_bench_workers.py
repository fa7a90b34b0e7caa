"""The gain of several server processes over one, by processor time. Oracle: arithmetic, and this process's clock."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from experiments.bench.workers import CpuPerRequest, _processor_sec, cores_gain

BUSY = "import sys, time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\nsys.stdin.read()"


def test_process_gain_is_limited_by_processor_time() -> None:
    one = CpuPerRequest(0.001, 0.0004)
    assert cores_gain(one, one, 1) == pytest.approx(1.0)
    assert cores_gain(one, CpuPerRequest(0.00125, 0.0004), 2) == pytest.approx(1.6)
    assert cores_gain(one, CpuPerRequest(0.0, 0.0), 2) is None


def test_server_time_counts_only_the_started_processes() -> None:
    before = _processor_sec()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        assert busy.stdin is not None
        busy.stdout.readline()
        servers, offering = (after - then for after, then in zip(_processor_sec(), before, strict=True))
        busy.stdin.close()
    assert servers >= 0.2 - 0.02  # the system counts hundredths
    assert 0 <= offering <= time.process_time() - before[1]

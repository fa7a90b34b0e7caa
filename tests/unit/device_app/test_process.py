"""What a started device does to its process, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

IN_A_NEW_PROCESS = """
import sys
import ownfeed
assert "numpy" not in sys.modules, "the command imports numpy before it can be told to keep to one thread"
from device_app.process import one_thread
one_thread()
import os
before = len(os.listdir("/proc/self/task"))
import numpy
numpy.ones((500, 500)) @ numpy.ones((500, 500))
print(len(os.listdir("/proc/self/task")) - before, os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in Linux's /proc")
@pytest.mark.parametrize(("chosen", "started"), [(None, "0 1"), ("2", "1 2")])
def test_numpy_starts_no_thread_unless_the_environment_says_so(chosen: str | None, started: str) -> None:
    if chosen and len(os.sched_getaffinity(0)) < int(chosen):
        pytest.skip("this machine has one core")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"OPENBLAS_NUM_THREADS": chosen} if chosen else {}
    ran = subprocess.run(
        [sys.executable, "-c", IN_A_NEW_PROCESS], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout.strip(), ran.stderr) == (started, "")

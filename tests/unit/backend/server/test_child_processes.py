"""Child processes of a killed server. Oracle: the system's own list of processes."""

from __future__ import annotations

import subprocess
import sys

import psutil

PARENT = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from backend.server.child_processes import end_with_parent
pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent)
print(pool.submit(os.getpid).result(), flush=True)
time.sleep(3_600)
"""


def test_pool_process_ends_with_a_killed_server() -> None:
    """Regression: each killed server left a process of 450 MB that waited forever."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
        child.wait(timeout=120)

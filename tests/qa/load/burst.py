"""`python -m tests.qa.load.burst --cohort 1000 --length 262`: many small vectors in one secure sum.

The server is a process of its own (`experiments.bench.secagg_http`). Prints how long its vectors took to arrive, and
the time from the round's opening to its end; exits with 1 if it failed, or a device was lost.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import httpx
from rich.console import Console

from backend.operations.admin_client import Operator
from backend.settings import load_settings
from experiments.bench.secagg_http import SUMMING, serving
from experiments.records import Table
from tests.qa.load.participants import Burst

ROUND_SEC = 600.0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohort", type=int, default=1_000)
    parser.add_argument("--length", type=int, default=262, help="numbers that are masked and summed")
    parser.add_argument("--seconds", type=float, default=ROUND_SEC, help="the round's; more on a busy machine")
    parser.add_argument("--threads", type=int, default=8, help="devices that ask at the same time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), given.length) as (url, server):
        operator = Operator(url, load_settings(data_dir=Path(folder)).admin_token_file)
        with httpx.Client(base_url=url, timeout=60.0) as http:
            burst = Burst(http, operator, given.threads, seconds=given.seconds)
            ended, took = burst.play(SUMMING, given.cohort)
        times = server.cpu_times()
    masked = burst.masked_at
    row = (given.cohort, given.length, ended.state, ended.survivors, len(masked), masked[-1] - masked[0], took)
    columns = (
        "devices",
        "values",
        "ended",
        "in the sum",
        "vectors",
        "vectors came in s",
        "all s",
        "server s",
        "devices s",
    )
    note = (
        "Seconds of the server and of the devices are of one processor, with their start. "
        f"{given.threads} devices ask at a time; their keys, masks and shares are made on the same {os.cpu_count()} "
        f"cores, load of {os.getloadavg()[0]:.1f}. Asked again after: {dict(burst.later) or 'nothing'}."
    )
    Table("A secure sum, all at once", columns, [(*row, times.user + times.system, time.process_time())], (note,)).show(
        Console()
    )
    return 0 if ended.state == "applied" and ended.survivors == given.cohort else 1


if __name__ == "__main__":
    sys.exit(main())

"""From a click to a built feed, through the real device app and backend as processes over loopback.

Every click is followed by a press for a new page, a report and a request, where a reader's device would go on with the
answer it has: each figure holds the whole flow of its mode. With codes, the default, that is: store, clusters, the
code, request, its list, ranking, feed; a code reported before costs nothing and brings the same noise again. With
Uni-FedRec's scores it is: store, clusters, decomposition, fresh noise, request, recall, answer, ranking, feed.
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import psutil

from device_app.stores import DeviceStores
from device_app.wire.server_timing import DEVICE_STAGES, SERVER_STAGES
from experiments.bench.newspaper import ARTICLES, reader_browser, running_backend, start_device
from experiments.table import Cell, Table

CLICKS = 200
WARM_UP = 20
SEED = 7
"""Of the stories that are clicked."""
PAUSE_SEC = 0.1
"""Between a feed and the next click, so that the texts fetched in the background for one feed don't slow the next."""
BAR_P50_MS, BAR_P95_MS, BAR_MIB = 25.0, 60.0, 250.0
STORY = re.compile(r'href="(/story/[^"]+)"')
MODES = ("code", "basis_laplace")
EVERY_CLICK_REPORTS = {
    "OWNFEED_DEVICE_PRIVACY__CLICKS_PER_REPORT": "1",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_REPORTS": "1e9",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_LIFETIME_REPORTS": "1e9",
    "OWNFEED_DEVICE_PERFORMANCE__RECALL_MAX_AGE_SEC": "0",
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "3600",
    "OWNFEED_DEVICE_PRIVACY__TRAINING": "false",
}


def run(data: Path) -> list[Table]:
    """Two tables a mode of reporting: stages of the device's own clock, and what a browser and the machine see."""
    return [table for mode in MODES for table in _measured(mode)]


def _measured(mode: str) -> list[Table]:
    dice = random.Random(SEED)
    page_ms, open_ms = [], []
    with running_backend() as backend, tempfile.TemporaryDirectory() as home:
        link = start_device(backend, Path(home), EVERY_CLICK_REPORTS | {"OWNFEED_DEVICE_PRIVACY__MODE": mode})
        with reader_browser(link) as browser:
            browser.post("/welcome")
            page = _get(browser, "/")
            for click in range(WARM_UP + CLICKS):
                stories = sorted(set(STORY.findall(page)))
                if not stories:
                    raise RuntimeError("the feed shows no stories")
                time.sleep(PAUSE_SEC)
                started = time.perf_counter()
                _get(browser, dice.choice(stories).replace("&amp;", "&"))
                opened = time.perf_counter()
                page = browser.post("/feed/refresh").raise_for_status().text
                if click >= WARM_UP:
                    open_ms.append((opened - started) * 1_000)
                    page_ms.append((time.perf_counter() - opened) * 1_000)
            stores = DeviceStores(Path(home) / "devices" / "reader" / "device.sqlite")
            seen = stores.timings.last(CLICKS)
            stores.database.close()
        process = psutil.Process(backend.processes.running["device"].pid)
        memory = process.memory_info().rss / 2**20
        peak = _peak_mib(process.pid)
    fresh = [request for request in seen if "network" in request.device_ms]
    rows: list[tuple[Cell, ...]] = [
        ("click to built feed", *_percentiles([sum(request.device_ms.values()) for request in fresh]))
    ]
    rows += [
        (f"device: {name}", *_percentiles([request.device_ms.get(name, 0.0) for request in fresh]))
        for name in DEVICE_STAGES
    ]
    rows += [
        (f"server: {name}", *_percentiles([request.server_ms.get(name, 0.0) for request in fresh]))
        for name in SERVER_STAGES
    ]
    stages = Table(
        f"Device round trip, {mode}",
        ("stage", "p50 ms", "p95 ms", "p99 ms"),
        rows,
        (
            f"{len(fresh)} feeds of {CLICKS} sent a report; {ARTICLES:,} articles, R = 400, loopback.",
            f"The device's own clock; bars: p50 <= {BAR_P50_MS:g}, p95 <= {BAR_P95_MS:g}. Network holds the server's.",
        ),
        (SEED,),
    )
    outside = Table(
        f"Seen from outside, {mode}",
        ("what", "p50", "p95", "p99"),
        [
            ("new feed page after a click, ms", *_percentiles(page_ms)),
            ("story page, ms", *_percentiles(open_ms)),
            ("device process, MiB resident now / peak", round(memory), round(peak), None),
        ],
        (f"{CLICKS} clicks through HTTP, pages drawn; bar for the device process: {BAR_MIB:g} MB.",),
        (SEED,),
    )
    return [stages, outside]


def _get(browser: httpx.Client, path: str) -> str:
    answer = browser.get(path)
    answer.raise_for_status()
    return answer.text


def _percentiles(values: list[float]) -> tuple[Cell, ...]:
    return tuple(round(float(value), 2) for value in np.percentile(values, [50, 95, 99])) if values else (None,) * 3


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")

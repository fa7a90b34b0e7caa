"""Measures the time from a click to a built feed, with the real device and server as processes over loopback.

After every click the device sends a report and fetches the answer in the background. Then the reader requests a new
page, which sends no request to the server. Each figure adds a page's time to that of the last background request before
it, and so covers the whole flow of its mode. With codes, the default: store, clusters, code, request, list, ranking,
feed; a code that was reported before costs nothing and keeps its noise. With Uni-FedRec's scores: store, clusters,
decomposition, new noise, request, recall, answer, ranking, feed.
"""

import random
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import psutil

from device_app.store.byte_log import TIMINGS_KEPT, Timing
from device_app.stores import DeviceStores
from device_app.view_models.latency import RECALL
from experiments.bench.newspaper import ARTICLES, reader_browser, running_backend, start_device
from experiments.records import Cell, Table
from protocol.server_timing import DEVICE_STAGES, SERVER_STAGES

CLICKS = 200
WARM_UP = 20
SEED = 7
"""The seed of the clicked stories."""
RECALL_SEC = 0.15
"""Average time between the background's requests for candidates."""
PAUSE_SEC = 2 * RECALL_SEC
"""Pause between a click and the request for a new page, so that the click's report is answered before."""
BAR_P50_MS, BAR_P95_MS, BAR_MIB = 25.0, 60.0, 250.0
STORY = re.compile(r'href="(/story/[^"]+)"')
MODES = ("code", "basis_laplace")
EVERY_CLICK_REPORTS = {
    "OWNFEED_DEVICE_PRIVACY__CLICKS_PER_REPORT": "1",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_REPORTS": "1e9",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_LIFETIME_REPORTS": "1e9",
    "OWNFEED_DEVICE_PERFORMANCE__RECALL_POLL_SEC": str(RECALL_SEC),
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "3600",
    "OWNFEED_DEVICE_PRIVACY__TRAINING": "false",
}


def run(data: Path) -> list[Table]:
    """Return two tables for each report mode: stages by the device's clock, and times that a browser measures."""
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
                started = time.perf_counter()
                _get(browser, dice.choice(stories).replace("&amp;", "&"))
                opened = time.perf_counter()
                time.sleep(PAUSE_SEC)
                pressed = time.perf_counter()
                page = browser.post("/feed/refresh").raise_for_status().text
                if click >= WARM_UP:
                    open_ms.append((opened - started) * 1_000)
                    page_ms.append((time.perf_counter() - pressed) * 1_000)
            stores = DeviceStores(Path(home) / "devices" / "reader" / "device.sqlite")
            fresh = _with_recall(stores.timings.last(TIMINGS_KEPT))[-CLICKS:]
            stores.database.close()
        process = psutil.Process(backend.processes.running["device"].pid)
        memory = process.memory_info().rss / 2**20
        peak = _peak_mib(process.pid)
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
            f"{len(fresh)} feeds of {CLICKS}, each with the report before; {ARTICLES:,} articles, R = 400, loopback. "
            f"The network stage includes the server's. Bars: p50 <= {BAR_P50_MS:g}, p95 <= {BAR_P95_MS:g}.",
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
        (f"{CLICKS} clicks over HTTP, with pages rendered; bar for the device process: {BAR_MIB:g} MB.",),
        (SEED,),
    )
    return [stages, outside]


def _with_recall(newest_first: list[Timing]) -> list[Timing]:
    """Return pages, oldest first, each with the stages of the request for candidates before it."""
    found: list[Timing] = []
    recall: Timing | None = None
    for one in reversed(newest_first):
        if one.kind == RECALL:
            recall = one
        elif recall is not None:
            stages = {
                name: one.device_ms.get(name, 0.0) + recall.device_ms.get(name, 0.0)
                for name in one.device_ms | recall.device_ms
            }
            found.append(replace(one, device_ms=stages, server_ms=recall.server_ms))
    return found


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

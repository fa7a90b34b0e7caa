"""`python -m tests.browser.loaded_pages`: measures a server under 300 public calls a second and 12 pages of Chromium.

The calls come from 50 addresses, two of them over their limit, while the pages read and take part in rounds. Prints the
answers and waiting times of each caller, and the server's processor time. Exits with 1 if a caller was wrongly refused,
or a page's recall took too long. Oracles: the statuses as they arrived, the arithmetic of a token bucket, Chromium's
own times of the requests, and the pages' own logs of unanswered requests.

Callers, browser and server share this machine. The browser, which stands for twelve readers' machines, runs at a lower
priority. `--pages 0` measures the server alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, Request, Response, sync_playwright

from backend.operations.admin_client import Operator, OperatorRefused
from protocol.rounds import RoundStatus
from tests.browser.conftest import ARGUMENTS, begin_first_visit, find_chromium
from tests.browser.two_readers import hurried_script, with_script
from tests.doubles.public_calls import ADDRESSES, FINE, Caller, faults, offer_mixed_calls, rates
from tests.doubles.small_world import backend_process, first_folder, free_port, small_world

SYSTEMS = ("private_counts/secure/huber", "small_ranker/secure/median")
MINIMUM = 10
"""Survivors of a round: with fewer its price is above what a device pays for a sum."""
ROUND_SEC = 90.0
"""Half of it to turn up in: a device doesn't join while its reader reads, and looks every 15 seconds."""
READS_SEC, RESTS_SEC, PAUSE_SEC = 12.0, 33.0, 3.0
"""A reader reads for so long, with a pause between two pages, and lets the page lie for so long."""
BAR_MS = 80.0
LIMIT_PER_MINUTE = 600
WITHIN_MS = 120_000
LAST_FEED = "main .notice[data-back]"
"""Where the server didn't answer: what it told is among the troubles."""
CEILING = "1000000"
"""Epsilon a day: a day's usual budget pays for one count of twelve devices."""


@dataclass
class LoadedReader:
    """A reader on a page, and what the page requested meanwhile."""

    page: Page
    begins: float
    waited_ms: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    read: int = 0
    next_at: float = 0.0

    def __post_init__(self) -> None:
        self.page.on("requestfinished", self._finished)
        self.page.on("response", self._answered)

    def _finished(self, request: Request) -> None:
        if request.url.endswith("/v1/recall"):
            self.waited_ms.append(request.timing["responseEnd"])

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and "/v1/rounds/" not in response.url:
            self.troubles.append(f"{response.status}: {response.url}")

    def note_unanswered(self, url: str) -> None:
        """Record the requests to which the device got no complete answer, from the device's own log.

        Chromium's record can't be used: it reports a worker's request as aborted after its answer was read completely,
        if the stream is collected before the network reports the end.
        """
        self.page.goto(f"{url}/reader/#/settings")
        with self.page.expect_download() as got:
            self.page.locator("a[href$='/privacy/export']").first.click()
        log = json.loads(got.value.path().read_text(encoding="utf-8"))["tables"]["traffic"]
        self.troubles += [f"{line['trouble']}: {line['method']} {line['url']}" for line in log if line["trouble"]]

    def begin(self, url: str) -> None:
        """Visit the page, pass the first visit, and switch on every kind of round."""
        self.page.set_default_timeout(WITHIN_MS)
        self.page.goto(f"{url}/reader/")
        begin_first_visit(self.page)
        self.page.wait_for_selector("article.card[id]")
        self.page.goto(f"{url}/reader/#/settings?switches=open")
        training = self.page.locator("input[name=training]")
        training.check()
        for name in ("epsilon_per_day_training", "epsilon_per_day_counts", "epsilon_per_day_alone"):
            self.page.locator(f"input[name={name}]").fill(CEILING)
        self.page.locator("form", has=training).get_by_role("button", name="Save").click()
        self.page.goto(f"{url}/reader/#/")
        self.page.wait_for_selector("article.card[id]")

    def turn(self, now: float) -> None:
        """Open the next page if it is this reader's time to read."""
        if now < self.next_at or (now - self.begins) % (READS_SEC + RESTS_SEC) > READS_SEC:
            return
        if self.read % 3 == 2:
            shown = self.page.locator("main[data-feed]").get_attribute("data-feed")
            self.page.get_by_role("button", name="Refresh").first.click()
            another = f"main[data-feed]:not([data-feed='{shown}'])"
            self.page.wait_for_selector(f"{another}, {LAST_FEED}")  # the last feed keeps its name
        else:
            self.page.locator("article.card[id]:not(.read) .headline a").first.click()
            self.page.wait_for_selector(".story h1")
            self.page.get_by_role("link", name="Back to the feed").click()
            self.page.wait_for_selector("article.card[id]")
        self.read += 1
        self.next_at = now + PAUSE_SEC


@contextmanager
def rounds_one_after_another(operator: Operator, wanted: int) -> Iterator[list[RoundStatus]]:
    """Run rounds of the two systems in turn while the block runs; return how they ended."""
    ended, stopped = list[RoundStatus](), threading.Event()

    def work() -> None:
        for system in cycle(SYSTEMS):
            if stopped.is_set():
                return
            with suppress(OperatorRefused):  # one that has failed is put away a moment after it says so
                number = operator.open_round(system, cohort=wanted, cohort_minimum=MINIMUM, seconds=ROUND_SEC).round
                while not stopped.wait(0.5):
                    if (status := operator.status(number)).state in ("applied", "failed"):
                        ended.append(status)
                        break

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ended
    finally:
        stopped.set()
        thread.join()


@dataclass
class ProcessorTime:
    """Processor seconds that groups of processes used during a block."""

    seconds: float = 0.0
    took: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, server: int, callers: int) -> Iterator[None]:
        """Measure the time of the server, of the callers, of this process, which turns pages, and of Chromium."""
        before, started = self._now(server, callers), time.monotonic()
        yield
        self.seconds = time.monotonic() - started
        self.took = {name: taken - before[name] for name, taken in self._now(server, callers).items()}

    @staticmethod
    def _now(server: int, callers: int) -> dict[str, float]:
        def taken(process: psutil.Process) -> float:
            with suppress(psutil.Error):
                times = process.cpu_times()
                return float(times.user + times.system)
            return 0.0

        here = psutil.Process()
        browser = [one for one in here.children(recursive=True) if one.pid not in (server, callers)]
        return {
            "server": taken(psutil.Process(server)),
            "callers": taken(psutil.Process(callers)),
            "reading": taken(here),
            "browser": sum(map(taken, browser)),
        }


def visited(chromium: Browser, url: str, count: int, script: bytes) -> list[LoadedReader]:
    """Return readers on contexts of their own that have passed the first visit, one after the other."""
    readers = []
    for number in range(count):
        context = chromium.new_context(service_workers="block")
        context.route("**/reader/files/worker.*.js", lambda route: with_script(route, script))
        page = context.new_page()
        reader = LoadedReader(page, number * (READS_SEC + RESTS_SEC) / count)
        reader.begin(url)
        readers.append(reader)
    return readers


def behind_others(program: Path | None, folder: Path) -> str:
    """Return a wrapper program that runs another only when nothing else wants the processor.

    A nice value isn't enough: such a process still finishes its time slice whenever a thread of the server wakes up.
    """
    assert program is not None, "Chromium is missing: apt-get install chromium"
    found = folder / "chromium"
    found.write_text(f'#!/bin/sh\nexec chrt --idle 0 {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
    found.chmod(0o700)
    return str(found)


def print_report(
    callers: list[Caller], readers: list[LoadedReader], ended: list[RoundStatus], took: ProcessorTime
) -> None:
    """Print what was measured."""
    statuses = sum((Counter(one.answers.status) for one in callers), Counter[int | str]())
    waited = [
        waited
        for one in callers
        for waited, status in zip(one.answers.waited_ms, one.answers.status, strict=True)
        if status in FINE
    ]
    lines = []
    if callers:
        rate = sum(statuses.values()) / max(one.answers.offered_sec for one in callers)
        p50, p95, p99 = np.percentile(waited, (50, 95, 99))
        lines += [
            f"{rate:.0f} calls a second from {len(callers)} addresses: {dict(statuses)}",
            f"calls that were served: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms since they were due",
        ]
    if readers:
        stories = sum(one.read for one in readers)
        recalls = [each for one in readers for each in one.waited_ms]
        lines.append(f"{len(readers)} pages turned {stories} times and recalled {len(recalls)} times")
        if recalls:
            p50, p95 = np.percentile(recalls, (50, 95))
            lines.append(f"a page's recall: p50 {p50:.0f} ms, p95 {p95:.0f} ms, longest {max(recalls):.0f} ms")
        lines += [
            f"{one.round}, {one.task}: {one.state}, {one.survivors or 0} survivors; {one.reason or 'no fault'}"
            for one in ended
        ]
    shares = ", ".join(f"{name} {took.took[name] / took.seconds:.2f}" for name in took.took)
    lines.append(f"of {os.cpu_count()} cores: {shares}; load {os.getloadavg()[0]:.1f}")
    print("\n".join(lines), flush=True)  # noqa: T201


def measure(pages: int, rate: float, seconds: float, seed: int, cache: Path | None = None) -> bool:
    """Run a world under load; return whether nobody got a wrong answer and pages waited no longer than allowed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        world = stack.enter_context(small_world(first_folder(cache or folder), folder / "world"))
        port = free_port()
        # Chromium's requests all come from 127.0.0.1; the callers' addresses are bounded as anybody's.
        bounds = {"unbounded_addresses": ["127.0.0.1/32"], "requests_per_minute": LIMIT_PER_MINUTE}
        server = stack.enter_context(backend_process(world.settings, port, **bounds))
        assert server.pid is not None
        url = f"http://127.0.0.1:{port}"
        readers, ended = list[LoadedReader](), list[RoundStatus]()
        if pages:
            playwright = stack.enter_context(sync_playwright())
            program = behind_others(find_chromium(playwright), folder)
            chromium = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
            stack.callback(chromium.close)
            readers = visited(chromium, url, pages, hurried_script(folder))
        took, each = ProcessorTime(), rates(rate, LIMIT_PER_MINUTE) if rate else []
        calling = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
        caller = calling.submit(os.getpid).result()
        if pages >= MINIMUM:
            operator = Operator(url, world.settings.admin_token_file)
            ended = stack.enter_context(rounds_one_after_another(operator, pages))
        with took.of(server.pid, caller):
            started = time.monotonic()
            offered = calling.submit(offer_mixed_calls, url, each, seconds, seed)
            while time.monotonic() - started < seconds:
                for reader in readers:
                    reader.turn(time.monotonic() - started)
                if readers:
                    readers[0].page.wait_for_timeout(50)
                else:
                    time.sleep(0.05)
            callers = offered.result()
        print_report(callers, readers, ended, took)
        for reader in readers:
            reader.note_unanswered(url)
        wrong = faults(callers, LIMIT_PER_MINUTE)
        wrong += [f"a page: {each}" for one in readers for each in one.troubles]
        recalls = [each for one in readers for each in one.waited_ms]
        if readers and not recalls:
            wrong.append("no page has recalled, so no wait was measured")
        for one in wrong:
            print(f"WRONG: {one}")  # noqa: T201
        return not wrong and (not readers or float(np.percentile(recalls, 95)) <= BAR_MS)


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--pages", type=int, default=12)
    wanted.add_argument(
        "--rate", type=float, default=300.0, help=f"calls a second of all {ADDRESSES} addresses; 0: none"
    )
    wanted.add_argument("--seconds", type=float, default=320.0)
    wanted.add_argument("--seed", type=int, default=1)
    wanted.add_argument("--cache", type=Path, help="a folder that keeps the world, which is made once")
    chosen = wanted.parse_args()
    sys.exit(0 if measure(chosen.pages, chosen.rate, chosen.seconds, chosen.seed, chosen.cache) else 1)

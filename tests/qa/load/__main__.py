"""`python -m tests.qa.load --minutes 5 --rate 100 --workers 2 --postgresql`: a backend under load (locust).

Devices read, report and poll. Meanwhile, in turn and for a ninth of the time each, secure rounds release a model,
articles arrive and the index is swapped, and a round has many simultaneous uploads; each happens a few times before the
measurement, to load what the first one needs. Prints the requests' times and errors, and the memory of each process.
Exits with 1 if a request failed permanently, an event did not happen, or, from ten minutes on, a process grew by more
than 2 % or was replaced. Needs `ownfeed[load]`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path

import httpx
import psutil
from rich.console import Console

from backend.db.engine import open_engine
from backend.news.ingest import ingest
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.operations.admin_client import Operator
from experiments.bench.newspaper import RunningBackend, running_backend
from experiments.records import Cell, Table
from tests.doubles.own_newspaper import newspaper_in
from tests.doubles.postgres_server import postgres_server
from tests.qa.load.figures import FleetAnswers, answers_table, memory_table, thirds_table
from tests.qa.load.participants import Burst

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
LOOK_SEC = 5.0
EACH_A_SECOND = 0.15
"""Requests of one device a second, of those that the locustfile has."""
SOAK_MINUTES = 10.0
RELEASING, COUNTING = "small_ranker/exact/mean", "private_counts/secure_large/mean"
STORIES = 20
SWAPS_AT_FIRST = 4
SWAP_WITHIN_SEC = 120.0
SETTLE_SEC = 20.0


@dataclass
class MemoryWatch:
    """Resident memory of processes, sampled from time to time."""

    seen: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def over(self, roots: dict[str, psutil.Process]) -> Iterator[MemoryWatch]:
        """Watch these processes and their children while the block runs."""
        thread = threading.Thread(target=self._look, args=(roots,))
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()

    def _look(self, roots: dict[str, psutil.Process]) -> None:
        while not self._stop.wait(LOOK_SEC):
            for name, root in roots.items():
                for each in (root, *root.children(recursive=True)):
                    try:
                        self.seen.setdefault(f"{name} {each.pid}", []).append((time.time(), each.memory_info().rss))
                    except psutil.NoSuchProcess:
                        continue


@dataclass
class LoadEvents:
    """The events at the backend under load."""

    backend: RunningBackend
    burst: Burst
    cohort: int
    told: list[tuple[Cell, ...]] = field(default_factory=list)
    failed: int = 0
    _written: int = 0

    def warm_up(self, workers: int) -> None:
        """Cause some of each event, so that all processes have loaded what a first one needs."""
        for event in (self.release, *(self.swap,) * (SWAPS_AT_FIRST * workers), self.counts, self.counts, self.release):
            self._noted(event)

    def run_all(self, times: int, every_sec: float, until: float) -> None:
        """Cause each event in turn, this many times, every so many seconds."""
        began, turns = time.monotonic(), cycle((self.release, self.swap, self.counts))
        for number in range(1, times + 1):
            if (wait := began + number * every_sec - time.monotonic()) > 0:
                time.sleep(wait)
            if time.monotonic() >= until:
                return
            self._noted(next(turns))

    def release(self) -> str:
        """Run a round whose release all devices then swap to."""
        ended, _ = self.burst.play(RELEASING, 12)
        assert ended.state == "applied", ended.reason
        assert ended.published is not None
        return f"{ended.published} of {ended.survivors} devices"

    def counts(self) -> str:
        """Run a round that every device joins at once."""
        ended, took = self.burst.play(COUNTING, self.cohort)
        assert ended.state == "applied", ended.reason
        return f"{ended.survivors} devices in {took:.0f} s"

    def swap(self) -> str:
        """Add articles that must be in the pool and index of the process that is asked next."""
        before = self._pool_version()
        engine = open_engine(self.backend.settings.database_url)
        report = ingest(NewsPool(engine), self._stories(), source="load")
        engine.dispose()
        give_up = time.monotonic() + SWAP_WITHIN_SEC
        while self._pool_version() == before:
            assert time.monotonic() < give_up, "the index was not swapped"
            time.sleep(0.5)
        return f"{report.added} stories"

    def _noted(self, event: Callable[[], str]) -> None:
        began = time.monotonic()
        try:
            what = event()
        except Exception as why:  # whatever it is, the load goes on, and the test has failed
            self.failed += 1
            what = f"failed: {type(why).__name__}: {why}"
        self.told.append((datetime.now(UTC).strftime("%H:%M:%S"), event.__name__, what, time.monotonic() - began))

    def _stories(self) -> list[NewsItem]:
        self._written += 1
        made = [f"load-{self._written:04d}-{number:02d}" for number in range(STORIES)]
        return [
            NewsItem(
                id=name,
                title=f"Council number {place} hears of the {name} matter",
                abstract=f"What {name} means.",
                body="One paragraph.",
                publisher="The Load Post",
                section="news",
                topic="council",
                published_at=datetime.now(UTC),
                weight=0.5,
            )
            for place, name in enumerate(made)
        ]

    def _pool_version(self) -> object:
        answer = httpx.get(f"{self.backend.url}/v1/health", timeout=10.0).raise_for_status()
        return answer.json()["pool_version"]


def locust(url: str, rate: float, minutes: float, answers: Path) -> subprocess.Popen[bytes]:
    """Run devices that together send this many requests a second; they start within a tenth of a minute."""
    devices = max(1, round(rate / EACH_A_SECOND))
    command = ["-f", str(LOCUSTFILE), "--headless", "--only-summary", "--host", url, "--loglevel", "WARNING"]
    asked = ["--users", str(devices), "--spawn-rate", str(max(1, devices // 6)), "--run-time", f"{minutes * 60:.0f}s"]
    return subprocess.Popen(
        [sys.executable, "-m", "locust", *command, *asked],
        env=os.environ | {"LOAD_ANSWERS": str(answers), "LOAD_EACH": str(EACH_A_SECOND)},
        stdout=subprocess.DEVNULL,
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second, without those of rounds")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--postgresql", action="store_true", help="a server of its own in the place of SQLite")
    parser.add_argument("--cohort", type=int, default=200, help="devices of a round that come at once")
    parser.add_argument("--articles", type=int, default=1_500)
    parser.add_argument("--events", type=int, default=9, help="releases, swaps and rounds, in turn; 0: none")
    parser.add_argument("--json", type=Path, help="where to write the tables, too")
    given = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ownfeed-load-")))
        database = stack.enter_context(postgres_server()) if given.postgresql else None
        others = {"database_url": database} if database else {}
        settings = newspaper_in(home / "backend", given.articles, **others)
        environment = {"OWNFEED_BACKEND_DATABASE_URL": settings.database_url}
        backend = stack.enter_context(running_backend(settings, given.workers, environment))
        http = stack.enter_context(httpx.Client(base_url=backend.url, timeout=30.0))
        events = LoadEvents(backend, Burst(http, Operator(backend.url, settings.admin_token_file)), given.cohort)
        events.warm_up(given.workers)
        time.sleep(SETTLE_SEC)
        server = psutil.Process(backend.processes.running["backend"].pid)
        began, ends = time.time(), time.monotonic() + 60 * given.minutes
        fleet = locust(backend.url, given.rate, given.minutes, home / "answers.json")
        stack.callback(fleet.kill)
        every_sec = 60 * given.minutes / (given.events + 1)
        play = threading.Thread(target=partial(events.run_all, given.events, every_sec, ends))
        with MemoryWatch().over({"backend": server}) as watch:
            play.start()
            fleet.wait()
            ended = time.time()
        play.join()
        answers = FleetAnswers.read(home / "answers.json")
    form = (
        f"{given.workers} process{'es' if given.workers > 1 else ''}, {'PostgreSQL' if given.postgresql else 'SQLite'}"
    )
    note = (
        f"{form}, {given.articles:,} articles; {given.minutes:g} minutes of {given.rate:g} requests a second offered, "
        f"locust and the server on {os.cpu_count()} cores, load of {os.getloadavg()[0]:.1f} at the end."
    )
    memory, flat = memory_table(watch.seen, began, ended)
    tables = [
        answers_table(answers, "A fleet's requests", (note,)),
        thirds_table(answers, began, ended),
        Table("What befell the backend", ("at", "what", "came of it", "s"), events.told, (
            f"Devices of rounds asked again after: {dict(events.burst.later) or 'nothing'}.",
        )),
        memory,
    ]  # fmt: skip
    console = Console()
    for table in tables:
        table.show(console)
    if given.json:
        given.json.write_text(json.dumps([table.as_json() for table in tables], indent=1), encoding="utf-8")
    lost = tables[0].rows[-1][-1] != "0"
    return 1 if lost or events.failed or (given.minutes >= SOAK_MINUTES and not flat) else 0


if __name__ == "__main__":
    sys.exit(main())

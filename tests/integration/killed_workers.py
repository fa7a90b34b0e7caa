"""`python -m tests.integration.killed_workers --minutes 5`: kills machines of a backend during rounds of every paper.

Three machines share only PostgreSQL and an S3 server; one of them is killed every 20 seconds, while 60 devices take
part in rounds.

Prints each round, each kill, and every fault; exits with 1 if there was a fault. Oracle: what devices recorded in their
own databases, against rounds and releases in the backend's database. A device's error is allowed if it retries by
itself: no connection, or asked to come later.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import httpx
from sqlalchemy import select

from backend.db.engine import open_engine, reading_session
from backend.db.tables import ParticipationRow, ReleaseRow, RoundRow
from backend.operations.admin_client import Operator, OperatorRefused
from backend.releases.publish import publish_rankers
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from device_app.errors import BackendRefused, BackendUnreachable, DeviceError
from device_app.fleet.fleet import Fleet, Member, catch_up, read, search, train, warm_up
from device_app.settings import DeviceSettings, PrivacySettings
from experiments.bench.newspaper import free_port
from experiments.bench.quality import WILLING
from exporters.graph_cache import GraphCache
from protocol.rounds import RoundStatus
from tests.doubles.own_newspaper import newspaper_in
from tests.doubles.postgres_server import postgres_server
from tests.doubles.round_robin import round_robin
from tests.doubles.s3_server import s3_server

SYSTEMS = ("basis/exact/mean", "news_head/exact/mean", "fednewsrec_user", "groups", "multi_view")
RANKERS = ("nrms", "fednewsrec", "finding", "multi_view")
SECRETS = ("signing.key", "admin.token", "metrics.token", "addresses.key")
MACHINES, DEVICES, ARTICLES = 3, 60, 1_500
LEAST_DEVICES = 2 * PrivacySettings().smallest_sum
KILL_EVERY_SEC, ROUND_SEC = 20.0, 200.0
"""A round has five stages, and one look of sixty devices on two cores takes up to nine seconds."""
ASK_SEC = 0.5
ENDED = ("applied", "failed")
RETRIED = (408, 425, 429, 500, 502, 503, 504)
SERVER_ERROR = 500
SEED = 11


@dataclass
class Machine:
    """A worker with its own data folder, restarted whenever it ends, as by a supervisor."""

    folder: Path
    port: int
    environment: Mapping[str, str]
    log: IO[bytes]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ownfeed", "serve", "--data-dir", str(self.folder), "--port", str(self.port)],
            env=os.environ | dict(self.environment),
            stdout=self.log,
            stderr=self.log,
        )

    def answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/v1/health", timeout=5.0).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@dataclass
class RepeatedKills:
    """Kills one machine after another, and restarts each at once."""

    machines: list[Machine]
    every_sec: float
    count: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[RepeatedKills]:
        """Kill machines while the block runs; at its end wait until the last killed one answers again."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        dice = random.Random(SEED)
        while not self._stop.wait(self.every_sec):
            # Two always serve: on a slow machine a start may take longer than the wait.
            if not all(each.answers() for each in self.machines):
                continue
            victim = dice.randrange(len(self.machines))
            self.machines[victim].kill()
            self.count += 1
            say(f"killed machine {victim + 1}")
            self.machines[victim].start()


@dataclass
class WatchedFleet:
    """The fleet, with the errors it saw and the rounds it opened."""

    fleet: Fleet
    troubles: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    clicks: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self) -> None:
        """Let every device sync, sometimes read, and try a round: each call on its own."""
        for step in (catch_up, self._reading, train):
            self.fleet.run(partial(self._tried, step))

    def _reading(self, member: Member) -> None:
        if member.rng.random() < 0.1:
            before = member.device.parts.stores.clicks.count()
            opened = read(member)
            with self._lock:
                self.clicks[member.device.settings.profile] += opened
            assert member.device.parts.stores.clicks.count() >= before

    def _tried(self, step: Callable[[Member], object], member: Member) -> None:
        try:
            step(member)
        except DeviceError as trouble:
            status = trouble.problem.status if isinstance(trouble, BackendRefused) else 0
            asks_again = isinstance(trouble, BackendUnreachable) or status in RETRIED
            with self._lock:
                self.troubles[f"{type(trouble).__name__} {status or ''}".strip()] += 1
                if not asks_again or status == SERVER_ERROR:
                    self.wrong.append(f"{member.device.settings.profile}: {trouble}")


def prepared(home: Path, database: str, storage: str, articles: int) -> BackendSettings:
    """Return the first machine's folder with every paper's model; graphs and encoder come from the benches' cache."""
    settings = newspaper_in(home / "machine-1", articles, database_url=database, storage=storage, rankers=RANKERS)
    engine = open_engine(settings.database_url)
    publish_rankers(ReleaseStore.open(engine, settings), RANKERS, cache=GraphCache(settings.graphs_dir))
    engine.dispose()
    return settings


def machines_of(settings: BackendSettings, environment: Mapping[str, str], logs: Path) -> list[Machine]:
    """Return all machines, not yet started; the others get the first one's secrets and nothing else."""
    own = {
        "OWNFEED_BACKEND_DATABASE_URL": settings.database_url,
        "OWNFEED_BACKEND_STORAGE": settings.storage or "",
        "OWNFEED_BACKEND_GRAPHS_DIR": str(settings.graphs_dir),
        "OWNFEED_BACKEND_RANKERS": '["nrms","fednewsrec","finding","multi_view"]',
        "OWNFEED_BACKEND_GATE": "false",
        "OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "0",
        "OWNFEED_BACKEND_UNBOUNDED_ADDRESSES": '["127.0.0.0/8"]',
        "OWNFEED_BACKEND_REQUESTS_PER_MINUTE": "0",
        "OWNFEED_BACKEND_REQUESTS_PER_MINUTE_IN_ALL": "0",
        "OMP_NUM_THREADS": "1",
        **environment,
    }
    return [
        Machine(settings.data_dir.with_name(f"machine-{n}"), free_port(), own, (logs / f"machine-{n}.log").open("wb"))
        for n in range(1, MACHINES + 1)
    ]


def start_machines(machines: list[Machine]) -> None:
    """Start the first machine, which makes the missing secrets, then the others with copies of them."""
    first, *others = machines
    first.start()
    wait_until_answering(first)
    for other in others:
        other.folder.mkdir(mode=0o700)
        for secret in SECRETS:
            shutil.copy2(first.folder / secret, other.folder / secret)
        other.start()
    for other in others:
        wait_until_answering(other)


def wait_until_answering(machine: Machine) -> None:
    """Wait until the machine answers. Raises RuntimeError if it has ended."""
    while not machine.answers():
        if machine.process is None or machine.process.poll() is not None:
            raise RuntimeError(f"{machine.folder.name} ended while starting; see its log")
        time.sleep(ASK_SEC)


def run_rounds(operator: Operator, devices: WatchedFleet, minutes: float, seconds: float) -> list[RoundStatus]:
    """Run rounds of every system in turn until the time is over; return each as it ended."""
    ended: list[RoundStatus] = []
    until, turn = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < until or turn < len(SYSTEMS):
        system = SYSTEMS[turn % len(SYSTEMS)]
        turn += 1
        cohort = len(devices.fleet.members)
        status = open_or_find_round(
            operator,
            partial(operator.open_round, system, cohort=cohort, cohort_minimum=cohort // 2, seconds=seconds),
        )
        while status is not None and status.state not in ENDED:
            devices.attempt()
            status = patiently(partial(operator.status, status.round)) or status
        if status is None:
            devices.attempt()
        else:
            say(f"{status.round} {status.system}: {status.state}, {status.uploaded} sent. {status.reason or ''}")
            ended.append(status)
    return ended


def open_or_find_round(operator: Operator, ask: Callable[[], RoundStatus]) -> RoundStatus | None:
    """Return a running round, whose opening answer may have been lost, or open a new one; None, with a message, if
    refused."""
    return patiently(lambda: running_round(operator) or ask())


def patiently(ask: Callable[[], RoundStatus]) -> RoundStatus | None:
    """Return the operator's answer, retrying while a worker is down; None, with a message, if refused."""
    while True:
        try:
            return ask()
        except OperatorRefused as refused:
            if not isinstance(refused.__cause__, httpx.TransportError):
                say(f"refused: {refused}")
                return None
            time.sleep(ASK_SEC)


def running_round(operator: Operator) -> RoundStatus | None:
    """Return a round that has not ended: the answer to whoever opened it may have been lost with its worker."""
    try:
        return next((each for each in operator.rounds() if each.state not in ENDED), None)
    except OperatorRefused:
        return None


def say(line: str) -> None:
    """Print a line at once, whatever collects the output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def find_errors(settings: BackendSettings, devices: WatchedFleet, ended: list[RoundStatus]) -> list[str]:
    """Return what was lost, done twice, or failed without a true reason; empty if nothing is wrong."""
    found = list(devices.wrong)
    engine = open_engine(settings.database_url)
    with reading_session(engine) as session:
        rows = {f"round-{row.number}": row for row in session.scalars(select(RoundRow))}
        places = session.scalars(select(ParticipationRow)).all()
        releases = session.scalars(select(ReleaseRow.number).order_by(ReleaseRow.number)).all()
    engine.dispose()
    if list(releases) != list(range(1, len(releases) + 1)):
        found.append(f"the chain of releases has gaps: {releases}")
    published = Counter(row.published for row in rows.values() if row.published is not None)
    found += [f"r{number} is of {count} rounds" for number, count in published.items() if count > 1]
    for name, row in rows.items():
        if row.state not in ENDED:
            found.append(f"{name} never ended: {row.state}")
        if row.state == "failed" and (not row.reason or row.reason.startswith("unforeseen")):
            found.append(f"{name} failed without a true reason: {row.reason}")
        if name not in {status.round for status in ended}:
            say(f"{name} {row.system}: {row.state}, its operator heard of no end. {row.reason or ''}")
    taken = Counter(f"round-{place.round}" for place in places if place.uploaded_at is not None)
    receipts: Counter[str] = Counter()
    for member in devices.fleet.members:
        profile, stores = member.device.settings.profile, member.device.parts.stores
        charged = Counter(line.subject for line in stores.ledger_entries.entries().rows if line.channel == "training")
        found += [f"{profile}: {name} charged {n} times" for name, n in charged.items() if n > 1]
        kept = {name: stores.participations.get(name) for name in rows}
        receipts.update(name for name, mine in kept.items() if mine is not None and mine.state == "uploaded")
        declined = [mine for mine in kept.values() if mine is not None and mine.state == "declined"]
        found += [f"{profile} declined {mine.round}: {mine.detail}" for mine in declined]
        if stores.clicks.count() < devices.clicks[profile]:
            found.append(f"{profile}: {devices.clicks[profile] - stores.clicks.count()} clicks are lost")
    found += [
        f"{name}: receipts for {n} updates, {taken[name]} kept" for name, n in receipts.items() if n > taken[name]
    ]
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--seconds", type=float, default=ROUND_SEC, help="a round's; more on a busy machine")
    parser.add_argument("--articles", type=int, default=ARTICLES)
    given = parser.parse_args()
    if given.devices < LEAST_DEVICES:
        parser.error(f"--devices: at least {LEAST_DEVICES}, since devices decline a sum that half of fewer may open")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ownfeed-machines-")))
        database = stack.enter_context(postgres_server())
        s3 = stack.enter_context(s3_server(refuses_every=50))
        os.environ.update(s3.environment)
        settings = prepared(home, database, f"{s3.url}/backend", given.articles)
        machines = machines_of(settings, s3.environment, home)
        for machine in machines:
            stack.callback(machine.kill)
        start_machines(machines)
        proxy = stack.enter_context(round_robin([each.port for each in machines]))
        own = DeviceSettings(data_dir=home, backend_url=proxy, privacy=WILLING)
        fleet = Fleet(own, given.devices, seed=SEED)
        stack.callback(fleet.close)
        fleet.run(warm_up)
        fleet.run(search)
        devices = WatchedFleet(fleet)
        for member in fleet.members:
            devices.clicks[member.device.settings.profile] = member.device.parts.stores.clicks.count()
        fleet.failures.clear()
        operator = Operator(proxy, settings.admin_token_file)
        with RepeatedKills(machines, KILL_EVERY_SEC).running() as deaths:
            ended = run_rounds(operator, devices, given.minutes, given.seconds)
        wrong = find_errors(settings, devices, ended)
        for line in wrong:
            say(f"wrong: {line}")
        states = Counter(status.state for status in ended)
        say(
            f"{deaths.count} deaths; {len(ended)} rounds: {dict(states)}; errors that devices asked again after: "
            f"{dict(devices.troubles)}; {len(wrong)} wrong"
        )
        if wrong:
            for machine in machines:
                machine.log.flush()
                shutil.copy(home / f"{machine.folder.name}.log", tempfile.gettempdir())
            say(f"logs of the machines: {tempfile.gettempdir()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

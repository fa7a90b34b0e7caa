"""Two server processes over one database and one folder: exactly one of them ends each round.

Oracle: the existing releases, and the SHA-256 of numpy's sum of the clients' vectors.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine, create_engine, text

from backend.db.advisory_lock import advisory_lock
from backend.db.engine import open_engine, reading_session
from backend.db.tables import ParticipationRow, RoundRow
from backend.federation.errors import RoundUnderWay, UpdateConflict
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.systems import COMPOSED
from backend.operations.admin_client import Operator
from backend.server.address import ServerAddress
from backend.settings import load_settings
from backend.storage.object_store import LocalFolder
from experiments.bench import secagg_http
from experiments.bench.secagg_clients import WireClient, drive
from experiments.bench.secagg_http import SUMMING, summing_services
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn
from protocol.secagg import Shares
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.forked import running
from tests.doubles.s3_server import s3_server
from tests.doubles.small_release import WEIGHTS, small_store
from tests.doubles.small_world import START_WITHIN_SEC, await_health, free_port
from tests.integration.test_operating import commands

LENGTH = 33
SECRETS = {"signing.key", "admin.token", "metrics.token", "addresses.key"}
CHECK_IN = CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",))
UPDATE = pack({f"g.{name}": np.full_like(value, 0.01) for name, value in WEIGHTS.items()})


@contextmanager
def worker(
    folder: Path, database: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, BaseProcess]]:
    """Run a server process that answers when the block begins. environment: additional variables."""
    port = free_port()
    variables = {"OWNFEED_BACKEND_DATABASE_URL": database, "OWNFEED_BACKEND_ROUND_TICK_SEC": "0.05"}
    with running(secagg_http.main, folder, port, LENGTH, environment={**variables, **(environment or {})}) as process:
        url = f"http://127.0.0.1:{port}"
        await_health(url, process)
        yield url, process


def numbers(place: int, size: int) -> NDArray[np.float64]:
    return np.random.default_rng(place).integers(-256, 257, size) / 256


def test_two_workers_share_a_secure_round_and_survive_one_kill(database_url: str, tmp_path: Path) -> None:
    """The workers are on one machine and share the folder."""
    with ExitStack() as stack:
        first, doomed = stack.enter_context(worker(tmp_path, database_url))
        second, _ = stack.enter_context(worker(tmp_path, database_url))
        a_round_survives_its_worker(tmp_path, database_url, first, doomed, second)


@pytest.mark.postgres
def test_two_machines_share_a_secure_round_and_survive_one_kill(postgres_url: str, tmp_path: Path) -> None:
    """The machines share only PostgreSQL and S3, besides the secrets that the operator has copied as the guide says."""
    database, folders = postgres_url.replace("/postgres?", "/machines?"), (tmp_path / "one", tmp_path / "two")
    engine = create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE machines"))
    engine.dispose()
    with ExitStack() as stack:
        s3 = stack.enter_context(s3_server(refuses_every=7))
        own = {**s3.environment, "OWNFEED_BACKEND_STORAGE": f"{s3.url}/backend"}
        first, doomed = stack.enter_context(worker(folders[0], database, own))
        copying = os.environ | {"DATA": str(folders[0]), "COPY": str(folders[1])}
        subprocess.run(["bash", "-euc", commands("Several machines")], env=copying, check=True)
        second, _ = stack.enter_context(worker(folders[1], database, own))
        a_round_survives_its_worker(folders[0], database, first, doomed, second)
        with httpx.Client(base_url=second) as client:
            graph = sha256(b"no graph: nobody runs it").hexdigest()
            assert client.get(f"/v1/blobs/{graph}").content == b"no graph: nobody runs it", "the other machine's blob"
    left = {path.name for path in folders[1].iterdir() if path.is_file() and path.suffix not in (".log", ".lock")}
    assert left == SECRETS
    assert not (folders[0] / "sums").exists()


def a_round_survives_its_worker(folder: Path, database: str, first: str, doomed: BaseProcess, second: str) -> None:
    clients_number = 8
    with ExitStack() as stack:
        workers = [stack.enter_context(httpx.Client(base_url=url, timeout=30.0)) for url in (first, second)]
        operator = Operator(second, load_settings(data_dir=folder).admin_token_file)
        opened = operator.open_round(SUMMING, cohort=clients_number, cohort_minimum=5, seconds=300)
        clients: list[WireClient] = []
        for place in range(clients_number):
            joined = WireClient.joining(workers[place % 2], "r1", SUMMING, partial(numbers, place))
            assert joined is not None
            clients.append(joined)
        # One client holds its masked vector back, so that the stage can't close before the kill.
        held, *others = clients
        while any(client.stage != "masked" for client in others):
            for number, client in enumerate(clients):
                client.http = workers[number % 2]
                if client is not held or client.stage == "keys":
                    client.go_on()
                elif client.stage == "shares" and (reported := client.ask()).status_code == 200:
                    client.receive(Shares.model_validate_json(reported.content))
                    client.send().raise_for_status()
        doomed.kill()
        doomed.join()
        for client in clients:
            client.http = workers[1]
        drive(clients)
        *_, status = operator.follow(opened)
        assert (status.state, status.survivors) == ("applied", clients_number), status.reason
    engine = open_engine(database)
    with reading_session(engine) as session:
        facts = session.get_one(RoundRow, 1).facts or {}
    engine.dispose()
    total = np.sum([numbers(place, LENGTH - 1) for place in range(clients_number)], axis=0)
    assert facts["sum"] == sha256(total.data).hexdigest()


SERVE_BEHIND_ONE_PORT = """
import sys
from functools import partial
from backend.settings import load_settings
from backend.operations.worker_processes import serve_by_workers
from tests.doubles.summing_application import summing_application
folder, port, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
settings = load_settings(data_dir=folder, port=port, requests_per_minute=0, requests_per_minute_in_all=0)
serve_by_workers(settings, 2, partial(summing_application, length))
"""
"""Over a folder that is prepared: the supervisor imports little, and its processes start at once."""


def serving(supervisor: psutil.Process) -> set[int]:
    """Return the processes started to serve; multiprocessing has one of its own beside them."""
    found = set()
    for child in supervisor.children():
        with suppress(psutil.Error):  # it has ended, and the supervisor hasn't looked yet
            if "spawn_main" in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def started(folder: Path) -> set[int]:
    """Return the processes that have built their application."""
    return {int(path.name) for path in folder.glob("started/*")}


def polled(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait as long as the server lives: only the test's time limit ends a hanging one."""
    while not holds():
        assert process.poll() is None, "the server ended"
        time.sleep(0.05)


@pytest.mark.timeout(900)  # several starts of a process, one after another, on a machine that may be busy
def test_killed_process_behind_one_port_is_replaced_and_its_round_continues(tmp_path: Path) -> None:
    clients_number, settings = 6, load_settings(data_dir=tmp_path)
    summing_services(settings, LENGTH).close()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE_BEHIND_ONE_PORT, str(tmp_path), str(free_port()), str(LENGTH)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OWNFEED_BACKEND_ROUND_TICK_SEC": "0.05"},
    )
    try:
        address = ServerAddress(settings.servers_dir)
        polled(lambda: address.known() is not None, process)
        url = address.known()
        assert url is not None
        supervisor = psutil.Process(process.pid)
        # The supervisor notices the death of a process that hasn't started yet only after its limit of two minutes.
        polled(lambda: len(serving(supervisor) & started(tmp_path)) == 2, process)
        both = serving(supervisor)
        httpx.get(f"{url}/v1/health", timeout=300.0).raise_for_status()  # it waits for the first that serves
        operator = Operator(url, settings.admin_token_file)
        opened = operator.open_round(SUMMING, cohort=clients_number, cohort_minimum=5, seconds=3_000)
        # Each request on a connection of its own, so that either process may get it.
        once = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=url, timeout=300.0, limits=once) as http:
            clients = []
            for place in range(clients_number):
                joined = WireClient.joining(http, "r1", SUMMING, partial(numbers, place))
                assert joined is not None
                clients.append(joined)
            # As far as all can go without the last one's keys.
            assert not any(client.go_on() for client in clients[1:])
            os.kill(killed := min(both), signal.SIGKILL)
            drive(clients)
        *_, status = operator.follow(opened)
        assert (status.state, status.survivors) == ("applied", clients_number), status.reason
        polled(lambda: len(serving(supervisor)) == 2 and killed not in serving(supervisor), process)
        process.terminate()
        assert process.wait() == 0
        assert address.known() is None
        assert not any(psutil.pid_exists(pid) for pid in both)
    finally:
        if process.poll() is None:
            for child in psutil.Process(process.pid).children():
                child.kill()
            process.kill()
        process.wait()
    engine = open_engine(settings.database_url)
    with reading_session(engine) as session:
        facts = session.get_one(RoundRow, 1).facts or {}
    engine.dispose()
    total = np.sum([numbers(place, LENGTH - 1) for place in range(clients_number)], axis=0)
    assert facts["sum"] == sha256(total.data).hexdigest()


class Two:
    """Two coordinators with their own engines, as in two processes; a barrier makes them act at once."""

    def __init__(self, url: str, folder: Path) -> None:
        self.engines = [open_engine(url), open_engine(url)]
        self.store = small_store(self.engines[0], folder)
        stores = [self.store, type(self.store)(self.engines[1], LocalFolder(folder / "blobs"), self.store._key)]
        clock = StillClock()
        self.coordinators = [
            Coordinator(engine, store, COMPOSED, folder, clock)
            for engine, store in zip(self.engines, stores, strict=True)
        ]

    def at_once(self, *acts: Callable[[], object]) -> list[object]:
        """Return what each returned, or the exception it raised."""
        barrier = threading.Barrier(len(acts))
        results: list[object] = [None] * len(acts)

        def act(number: int) -> None:
            barrier.wait()
            try:
                results[number] = acts[number]()
            except Exception as raised:
                results[number] = raised

        threads = [threading.Thread(target=act, args=(number,)) for number in range(len(acts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


@pytest.fixture
def two(engine: Engine, database_url: str, tmp_path: Path) -> Iterator[Two]:
    pair = Two(database_url, tmp_path)
    yield pair
    for one in pair.engines:
        one.dispose()


def test_two_workers_ending_one_round_apply_it_once(two: Two) -> None:
    first, second = two.coordinators
    for number in range(1, 6):
        first.open_round("uni_fedrec", cohort=2, cohort_minimum=2, seconds=60)
        for coordinator in (first, second):
            offer = coordinator.check_in(CHECK_IN.model_copy(update={"release": number}))
            assert offer is not None
            coordinator.plain.accept(f"round-{number}", offer.pseudonym, UPDATE)
        ended = two.at_once(first.step, second.step, first.step, second.step)
        assert not [one for one in ended if isinstance(one, Exception)]
        assert first.step() is None
        assert second.step() is None
        assert second.status(f"round-{number}").published == f"r{number + 1}"
    assert [one.release for one in two.store.history()] == [f"r{number}" for number in range(6, 0, -1)]


def test_two_operators_opening_a_round_at_once_open_one(two: Two) -> None:
    opened = two.at_once(
        *(partial(one.open_round, "uni_fedrec", cohort=2, cohort_minimum=2, seconds=60) for one in two.coordinators * 3)
    )
    kinds = Counter(type(one) for one in opened)
    assert kinds[RoundUnderWay] == 5
    assert len(two.coordinators[0].history()) == 1


def test_two_workers_never_exceed_the_cohort(two: Two) -> None:
    two.coordinators[0].open_round("uni_fedrec", cohort=5, cohort_minimum=2, seconds=60)
    offers = two.at_once(*(partial(one.check_in, CHECK_IN) for one in two.coordinators * 8))
    assert sum(one is not None for one in offers) == 5
    assert two.coordinators[1].status("round-1").joined == 5


def test_second_of_two_different_updates_from_one_place_is_refused_across_workers(two: Two) -> None:
    first, second = two.coordinators
    first.open_round("uni_fedrec", cohort=5, cohort_minimum=2, seconds=60)
    other = pack({f"g.{name}": np.full_like(value, 0.02) for name, value in WEIGHTS.items()})
    for _ in range(4):
        offer = first.check_in(CHECK_IN)
        assert offer is not None
        sent = two.at_once(
            partial(first.plain.accept, "round-1", offer.pseudonym, UPDATE),
            partial(second.plain.accept, "round-1", offer.pseudonym, other),
        )
        conflicts = [place for place, one in enumerate(sent) if isinstance(one, UpdateConflict)]
        assert len(conflicts) == 1, sent
        kept = sha256(UPDATE if conflicts == [1] else other).hexdigest()
        with reading_session(two.engines[0]) as session:
            row = session.query(ParticipationRow).filter_by(pseudonym=offer.pseudonym).one()
            assert row.sha256 == kept


def test_advisory_lock_is_exclusive_and_released_at_its_end(two: Two) -> None:
    first, second = two.engines
    with advisory_lock(first, "rounds") as mine:
        assert mine
        for engine in (first, second):
            with advisory_lock(engine, "rounds") as also:
                assert not also
        with advisory_lock(second, "something else") as other:
            assert other
    with advisory_lock(second, "rounds") as free:
        assert free


def test_advisory_lock_is_released_when_its_process_is_killed(two: Two, database_url: str) -> None:
    code = (
        "import sys, time\nfrom backend.db.engine import open_engine\nfrom backend.db.advisory_lock import "
        "advisory_lock\n"
        "with advisory_lock(open_engine(sys.argv[1]), 'rounds') as mine:\n    print(mine, flush=True)\n    "
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, database_url], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"True"
    with advisory_lock(two.engines[0], "rounds") as mine:
        assert not mine
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until = time.monotonic() + START_WITHIN_SEC
    while True:
        with advisory_lock(two.engines[0], "rounds") as mine:
            if mine:
                return
        assert time.monotonic() < until, "the dead process keeps its turn"
        time.sleep(0.05)

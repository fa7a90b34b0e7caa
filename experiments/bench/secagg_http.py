"""Measures secure rounds through the real server, which runs in its own process.

Sizes: 500 clients in the sparse form, and 50 at the paper's size. The server (`python -m experiments.bench.secagg_http
FOLDER PORT LENGTH`) sums plain vectors in its rounds and publishes nothing. Everything except that system is real: the
limits, routes, coordinator and database.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np
import psutil
from numpy.typing import NDArray

from backend.app import create_app
from backend.composition import Services, build_services
from backend.db.engine import open_engine, reading_session
from backend.db.tables import RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.federation.systems.composition import SystemSpec
from backend.operations.admin_client import Operator
from backend.releases.blobs import ReleaseDraft
from backend.releases.store import ReleaseStore
from backend.server.http_server import serve_until_stopped
from backend.settings import BackendSettings, load_settings
from experiments.bench.newspaper import free_port
from experiments.bench.secagg_clients import WireClient
from experiments.records import Cell, Table
from protocol.protections import SecureSum
from protocol.releases import ModelEntry, RecallProtocol
from protocol.rounds import RoundManifest
from protocol.secagg import SPARSE_FROM, choose_neighbourhood
from protocol.tensors import pack

SUMMING, ACTIVE = "summing", "summing_actively"
CLIP = 512.0


class DigestStrategy:
    """A strategy that sums one vector and stores the SHA-256 of the float64 sum."""

    def __init__(self, coordinates: int) -> None:
        self._coordinates = coordinates

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        return Plan({"x": (self._coordinates,)})

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        return RoundResult(facts={"sum": sha256(total.sums()["x"].data).hexdigest()})


def summing_systems(length: int) -> dict[str, SystemSpec]:
    """Return systems with vectors of this length: the default, sparse above 100 devices, and with an active server."""
    protection = SecureSum(clip=CLIP, fraction_bits=8)
    active = SecureSum(clip=CLIP, fraction_bits=8, mode="active", graph="complete")
    strategy = DigestStrategy(length - 1)
    return {
        name: SystemSpec(name=name, task=SUMMING, protection=each, strategy=strategy)
        for name, each in ((SUMMING, protection), (ACTIVE, active))
    }


def publish_nothing_much(store: ReleaseStore) -> None:
    """Publish a minimal first release, which rounds require; nobody runs its graphs."""
    graph = store.add_blob(b"no graph: nobody runs it")
    basis = np.eye(2, 3, dtype=np.float32)
    weights = store.add_blob(pack({"basis_keys": basis, "basis_values": basis}))
    store.commit(
        ReleaseDraft(
            encoder="none",
            dimensions=3,
            opset=18,
            recall=RecallProtocol(
                basis_size=2, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2
            ),
            models={
                "recall": ModelEntry(architecture="basis", role="recall", graphs={"context": graph}, weights=weights),
                "ranker.cosine": ModelEntry(architecture="cosine", role="ranker", graphs={"score": graph}),
            },
            default_ranker="ranker.cosine",
        ),
        note="for a bench",
    )


def summing_services(settings: BackendSettings, length: int) -> Services:
    """Return the server's parts with these systems instead of its own."""
    services = build_services(settings)
    if services.releases.current() is None:
        publish_nothing_much(services.releases)
    services.coordinator = Coordinator(
        services.engine, services.releases, summing_systems(length), settings.data_dir, storage=services.storage
    )
    return services


def main(folder: Path, port: int, length: int) -> None:
    """Serve until killed."""
    behind_a_proxy = {"trusted_proxies": ("127.0.0.0/8",), "requests_per_minute": 0, "requests_per_minute_in_all": 0}
    settings = load_settings(data_dir=folder, port=port, **behind_a_proxy)
    serve_until_stopped(create_app(services=summing_services(settings, length)), settings)


SIZES = ((500, 250_000), (50, 1_089_602))
"""Clients and the length of their vectors."""
COLUMNS = (
    "cohort", "summed", "k", "keys, shares s", "masking s", "slowest s", "server s", "requests", "ms a request",
    "server memory, vectors", "bytes", "all s",
)  # fmt: skip
WARM_CLIENTS = 5
SECONDS = 3_600.0
POLL_SEC = 0.05
START_WITHIN_SEC = 240.0
"""Limit for a hanging start; a start takes seconds, but the machine may be busy."""


def run(data: Path) -> list[Table]:
    """Measure a round of each size, after a round of five clients to warm up the server."""
    rows: list[tuple[Cell, ...]] = []
    for cohort, length in SIZES:
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder), length) as (url, process):
            operator = Operator(url, load_settings(data_dir=Path(folder)).admin_token_file)
            with httpx.Client(base_url=url, timeout=60.0) as http:
                measure_round(http, operator, WARM_CLIENTS, length, process, Path(folder))
                rows.append(measure_round(http, operator, cohort, length, process, Path(folder)))
    note = (
        "The server is a process of its own, configured as behind a proxy. masking: a client's processor seconds; "
        "server s: all its processor time; server memory: peak above the start, in vectors of the round; all s: "
        "wall-clock time. The opened sum equals numpy's. Bars of 500 x 250,000: masking .05 s, server 12 s, memory 6 "
        "vectors."
    )
    return [Table("Secure rounds over HTTP", COLUMNS, rows, (note,))]


def numbers(place: int, size: int) -> NDArray[np.float64]:
    """Return a client's vector, in whole steps of 2^-8, so that the sum is exact."""
    return np.random.default_rng(place).integers(-256, 257, size) / 256


def measure_round(
    http: httpx.Client, operator: Operator, cohort: int, length: int, process: psutil.Process, folder: Path
) -> tuple[Cell, ...]:
    """Measure one round, as a row of COLUMNS.

    Raises AssertionError if the sum differs from numpy's.
    """
    _forget_peak(process)
    memory_before, cpu_before = process.memory_info().rss, _cpu_sec(process)
    started = time.perf_counter()
    opened = operator.open_round(SUMMING, cohort=cohort, cohort_minimum=max(2, cohort // 2), seconds=SECONDS)
    total = np.zeros(length - 1)
    requests: list[str] = []
    http.event_hooks = {"request": [lambda request: requests.append(request.method)]}

    def draw(size: int) -> NDArray[np.float64]:
        mine = numbers(len(drawn), size)
        drawn.append(mine.size)
        np.add(total, mine, out=total)
        return mine

    drawn: list[int] = []
    clients: list[WireClient] = []
    while len(clients) < cohort:
        joined = WireClient.joining(http, opened.release, SUMMING, draw)
        if joined is None:
            raise AssertionError(f"the server has no place for client {len(clients) + 1}")
        clients.append(joined)
    left = list(clients)
    while left:
        left = [one for one in left if not one.go_on()]
        time.sleep(POLL_SEC)
    *_, status = operator.follow(opened)
    took, peak = time.perf_counter() - started, _peak_bytes(process)
    server_sec = _cpu_sec(process) - cpu_before
    _check(folder, opened.round, total)
    masking = [one.took["masked"] for one in clients]
    shares = [one.took["keys"] + one.took["shares"] for one in clients]
    size = 4 * length
    chosen = choose_neighbourhood(cohort) if cohort >= SPARSE_FROM else None
    return (
        f"{cohort} x {length:,}", status.survivors, chosen.degree if chosen else cohort - 1,
        statistics.median(shares), statistics.median(masking), max(masking), server_sec, len(requests),
        1_000 * server_sec / len(requests), (peak - memory_before) / size,
        statistics.median([one.sent + one.heard for one in clients]) / size, took,
    )  # fmt: skip


def _check(folder: Path, round_id: str, total: NDArray[np.float64]) -> None:
    engine = open_engine(load_settings(data_dir=folder).database_url)
    with reading_session(engine) as session:
        facts = session.get_one(RoundRow, int(round_id.removeprefix("round-"))).facts or {}
    engine.dispose()
    if facts.get("sum") != sha256(total.data).hexdigest():
        raise AssertionError("the secure sum differs from the sum")


def _cpu_sec(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _forget_peak(process: psutil.Process) -> None:
    """Reset Linux's record of a process's peak memory."""
    Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")


def _peak_bytes(process: psutil.Process) -> int:
    """The process's peak memory since the reset."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) * 1_024


@contextmanager
def serving(folder: Path, length: int) -> Iterator[tuple[str, psutil.Process]]:
    """Run the summing server while the block runs; yields its URL and its process."""
    port = free_port()
    command = [sys.executable, "-m", "experiments.bench.secagg_http", str(folder), str(port), str(length)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + START_WITHIN_SEC
        while True:
            try:
                httpx.get(f"{url}/v1/health", timeout=2.0).raise_for_status()
                break
            except httpx.HTTPError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        yield url, psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

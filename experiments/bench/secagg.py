"""Measures a secure sum at the paper's sizes, and one of 500 clients in the sparse form.

The paper's sizes are 50 clients with 1,089,602 values and threshold 34.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np

from backend.federation.secagg.secure_sum import SecureSumServer
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.messages import Contribution, Reply, Step, SumState, begin_sum
from device_app.privacy.secagg.transitions import SumParticipant
from experiments.bench import secagg_http
from experiments.bench.secagg_clients import Uncharged
from experiments.records import Cell, Table
from protocol.ids import Message
from protocol.protections import SecureSum
from protocol.ring import CHUNK_BYTES, ChaChaStream, RingVector, apply_masks
from protocol.secagg import AdvertisedKeys, Agreement, Complaints, RevealedShares, SharedKeys, SumTerms

CLIENTS, LENGTH, THRESHOLD = 50, 1_089_602, 34
SPARSE_CLIENTS, SPARSE_LENGTH = 500, 250_000
DROPOUTS = 5
CLIENTS_TIMED = 7
TRIES = 5
SEED = 7
"""Seed of the vectors that are summed."""
FLOWER_PYTHON = "OWNFEED_FLOWER_PYTHON"
"""Environment variable that names a Python with flwr, for when this one doesn't have it."""

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class StageClock:
    """Seconds by name: processor time of this thread, and wall time."""

    def __init__(self) -> None:
        self.cpu: dict[str, list[float]] = {}
        self.wall: dict[str, list[float]] = {}

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run the work and record its duration."""
        wall, cpu = time.perf_counter(), time.thread_time()
        result = work()
        self.cpu.setdefault(name, []).append(time.thread_time() - cpu)
        self.wall.setdefault(name, []).append(time.perf_counter() - wall)
        return result

    def median(self, name: str) -> tuple[float, float]:
        """Return the medians in seconds: processor, wall."""
        return statistics.median(self.cpu[name]), statistics.median(self.wall[name])


class Client:
    """A device's generator, its current step, and the bytes it has sent and received."""

    def __init__(self, number: int, terms: SumTerms, vector: RingVector, watch: StageClock | None) -> None:
        self.name = f"bench-client-{number:08}"
        self.watch, self.vector = watch, vector
        self.state = self._timed("keys", lambda: begin_sum(terms))
        self.part = SumParticipant(self.state, Contribution(vector, Charge("none", "bench")), Uncharged())
        self.step: Step = self._timed("keys", self.part.step)
        self.up_bytes, self.down_bytes = len(self.step.sealed.payload), 0
        self.shares: tuple[SumState, Reply] | None = None

    def receive(self, name: str, reply: Reply, size: int) -> None:
        """Pass on the server's reply, which has this many bytes."""
        self.down_bytes += size
        if name == "masked" and self.watch:
            self.shares = self.step.state, reply
        self.step = self._timed(name, lambda: self.part.receive(reply))
        self.up_bytes += len(self.step.sealed.payload)

    def mask_again(self, threads: int) -> float:
        """Return the wall seconds, best of several runs, to recompute the masked vector from the stored state and
        answer.
        """
        assert self.shares is not None
        state, reply = self.shares
        tries: list[float] = []
        for _ in range(TRIES):
            contribution = Contribution(self.vector, Charge("none", "bench"))
            part = SumParticipant(state, contribution, Uncharged(), threads=threads)
            started = time.perf_counter()
            part.receive(reply)
            tries.append(time.perf_counter() - started)
        return min(tries)

    def _timed(self, name: str, work: Callable[[], T]) -> T:
        return self.watch.time(name, work) if self.watch else work()


def run(data: Path) -> list[Table]:
    """Measure client and server in both modes, Flower if available, and the sparse form."""
    keystream = _keystream_gb_per_sec()
    rows: list[tuple[Cell, ...]] = []
    for mode in ("semi_honest", "active"):
        rows += [_complete(mode, 0), _complete(mode, DROPOUTS)]
    flower = _flower()
    beside = (
        "Flower's functions: 64-bit integers, masks from NumPy's generator with a 32-bit seed, wire not measured."
        if flower
        else f"Flower is left out: flwr can't be imported here; {FLOWER_PYTHON} may name a Python that can."
    )
    note = (
        f"{CLIENTS} clients x {LENGTH:,} values of 32 bits, t = {THRESHOLD}; medians of {CLIENTS_TIMED} clients, "
        f"processor seconds of one thread; 'on {os.cpu_count()} threads' is wall time, best of {TRIES}. "
        "'signing' is the consistency round; 'keys, shares' of the active form includes checking signatures. 'server' "
        "adds and unmasks, 'hashing' makes uploads idempotent; "
        f"'bytes' of a client, both ways, over the plain vector. Bars: .01, .06, server .1 / .4 at 0 / {DROPOUTS} "
        "dropouts, bytes 1.8, for a machine that masks a million values in .6 ms; here "
        f"{LENGTH * 4 / keystream / 1e6:.2f} ms for {LENGTH:,} ({keystream:.1f} GB/s of ChaCha20), "
        f"{CLIENTS * LENGTH * 4 / keystream / 1e9:.3f} s for a client's {CLIENTS} masks."
    )
    columns = (
        "run, dropouts", "keys, shares s", "masking s", f"on {os.cpu_count()} threads s", "signing s", "server s",
        "hashing s", "bytes",
    )  # fmt: skip
    rows += _flower_rows(flower)
    complete = Table("Secure sum, complete graph", columns, rows, (note, beside), (SEED,))
    return [complete, _threads(keystream), _sparse(), *secagg_http.run(data)]


def _complete(mode: str, dropouts: int) -> tuple[Cell, ...]:
    terms = SumTerms.model_validate({
        "round": "round-1", "mode": mode, "cohort": CLIENTS, "cohort_minimum": THRESHOLD, "length": LENGTH,
        "fraction_bits": 18, "bound": 100.0,
    })  # fmt: skip
    client, server_watch = StageClock(), StageClock()
    server = SecureSumServer.begin(terms, threshold=THRESHOLD)
    _, clients = drive(server, terms, client, server_watch, dropouts)
    first = clients[-1]
    keys = [a + b for a, b in zip(client.cpu["keys"][::2], client.cpu["keys"][1::2], strict=True)]
    shares = client.median("shares")[0] + statistics.median(keys)
    signing = client.median("agree")[0] + client.median("agreements")[0] if mode == "active" else None
    arithmetic = sum(server_watch.cpu["add"]) + sum(server_watch.cpu["open"])
    ratio = (first.up_bytes + first.down_bytes) / (4 * LENGTH)
    hashing = sum(server_watch.cpu["read"]) - sum(server_watch.cpu["add"])
    return (
        f"{mode.replace('_', '-')}, {dropouts}",
        shares,
        client.median("masked")[0],
        first.mask_again(os.cpu_count() or 1),
        signing,
        arithmetic,
        hashing,
        ratio,
    )


def _flower() -> dict[str, float | str] | None:
    """Run Flower on the same work, in this Python or the one that the environment names; None without either."""
    python = os.environ.get(FLOWER_PYTHON) or (sys.executable if find_spec("flwr") else None)
    if python is None:
        return None
    script = Path(__file__).with_name("secagg_flower.py")
    sizes = [str(size) for size in (CLIENTS, LENGTH, THRESHOLD, DROPOUTS)]
    done = subprocess.run([python, str(script), *sizes], capture_output=True, text=True, check=True)
    measured: dict[str, float | str] = json.loads(done.stdout)
    return measured


def _flower_rows(flower: dict[str, float | str] | None) -> list[tuple[Cell, ...]]:
    if flower is None:
        return []
    name, shares, masking = f"Flower {flower['version']}", flower["shares_sec"], flower["masking_sec"]
    return [
        (f"{name}, 0", shares, masking, None, None, flower["server_sec"], None, None),
        (f"{name}, {DROPOUTS}", shares, masking, None, None, flower["server_dropouts_sec"], None, None),
    ]


def _threads(keystream: float) -> Table:
    """Compute the same masks on every core; the cipher releases Python's global lock."""
    vector = np.zeros(LENGTH, dtype=np.uint32)
    rows: list[tuple[Cell, ...]] = []
    for masks in (CLIENTS, CLIENTS + DROPOUTS * (CLIENTS - DROPOUTS)):
        seeds = [number.to_bytes(32, "big") for number in range(masks)]
        times: list[float] = []
        for threads in (1, os.cpu_count() or 1):
            tries: list[float] = []
            for _ in range(TRIES):
                started = time.perf_counter()
                apply_masks(vector, seeds, threads=threads)
                tries.append(time.perf_counter() - started)
            times.append(min(tries))
        rows.append((masks, *times, masks * LENGTH * 4 / keystream / 1e9))
    columns = ("masks", "one thread s", f"{os.cpu_count()} threads s", "keystream alone s")
    note = (
        f"Seconds on the wall, best of {TRIES}, for masks of {LENGTH:,} values: a client's, and the server's at "
        f"{DROPOUTS} dropouts. 'keystream alone' is the cipher on one thread without adding anything "
        f"({keystream:.2f} GB/s; `openssl speed -evp chacha20` gives the same): no program is faster on one thread. "
        f"Load of {os.getloadavg()[0]:.1f}."
    )
    return Table("Secure sum, masks on several cores", columns, rows, (note,))


def _sparse() -> Table:
    """Measure the form that devices use by default above 100 members."""
    protection = SecureSum(clip=1.0, fraction_bits=12)
    terms = protection.terms(
        "round-2", cohort=SPARSE_CLIENTS, cohort_minimum=SPARSE_CLIENTS // 2, coordinates=SPARSE_LENGTH - 1
    )
    client, server_watch = StageClock(), StageClock()
    server = SecureSumServer.begin(terms)
    took, clients = drive(server, terms, client, server_watch, SPARSE_CLIENTS // 10)
    last = clients[-1]
    ratio = (last.up_bytes + last.down_bytes) / (4 * SPARSE_LENGTH)
    all_bytes = sum(one.up_bytes + one.down_bytes for one in clients)
    keys = [a + b for a, b in zip(client.cpu["keys"][::2], client.cpu["keys"][1::2], strict=True)]
    row: tuple[Cell, ...] = (
        f"{SPARSE_CLIENTS}, {SPARSE_CLIENTS // 10} drop", terms.mode, server.record.degree, server.record.threshold,
        client.median("shares")[0] + statistics.median(keys), client.median("masked")[0],
        sum(server_watch.cpu["add"]) + sum(server_watch.cpu["open"]),
        sum(sum(server_watch.cpu[name]) for name in ("messages", "read", "open")), ratio, all_bytes / 1e6, took,
    )  # fmt: skip
    columns = (
        "cohort", "mode", "k", "t", "keys, shares s", "masking s", "server s", "server with messages s", "bytes",
        "MB of all", "all in one process s",
    )  # fmt: skip
    note = (
        f"{SPARSE_LENGTH:,} values; k and t from the bounds of wire/neighbourhood.py. 'server with messages' also "
        "parses, checks and answers all messages; 'MB of all' are every client's, both ways. Bars: masking .05 s; it "
        "completes."
    )
    return Table("Secure sum, sparse graph (Bell et al. 2020)", columns, [row], (note,), (SEED,))


def drive(
    server: SecureSumServer, terms: SumTerms, client_watch: StageClock, server_watch: StageClock, dropouts: int
) -> tuple[float, list[Client]]:
    """Run the whole protocol, stage by stage.

    Vectors are masked and handed over one client at a time.
    """
    started = time.perf_counter()
    rng = np.random.default_rng(SEED)
    expected = np.zeros(terms.length, dtype=np.uint32)
    limit = int(terms.bound * 2**terms.fraction_bits)
    members = server.members
    clients: list[Client] = []

    def hand_in(one: Client, take: Callable[[str, M], bool], kind: type[M]) -> None:
        payload = one.step.sealed.payload
        server_watch.time("messages", lambda: take(one.name, kind.model_validate_json(payload)))

    def answer(one: Client, name: str, make: Callable[[str], Reply]) -> None:
        reply = server_watch.time("messages", partial(make, one.name))
        assert reply is not None
        one.receive(name, reply, len(server_watch.time("messages", reply.model_dump_json)))

    def close() -> None:
        server_watch.time("messages", server.close)

    for number in range(terms.cohort):
        fresh = number < 3
        vector = rng.integers(-limit, limit, terms.length).astype(np.uint32) if fresh else clients[number % 3].vector
        clients.append(Client(number, terms, vector, client_watch if number >= terms.cohort - CLIENTS_TIMED else None))
        hand_in(clients[-1], server.advertise, AdvertisedKeys)
    close()
    for one in clients:
        answer(one, "shares", members.roster)
        hand_in(one, server.share, SharedKeys)
    close()
    alive = clients[dropouts:]
    for one in clients:
        answer(one, "complaints", members.shares)
        hand_in(one, server.complain, Complaints)
    close()
    for one in alive:
        answer(one, "masked", members.sharers_answer)
        server_watch.time("read", partial(server.add_masked, one.name, [one.step.sealed.payload]))
        expected += one.vector
    scratch = np.zeros_like(expected)
    for _ in alive:
        server_watch.time("add", lambda: np.add(scratch, expected, out=scratch))
    close()
    if terms.mode == "active":
        for one in alive:
            answer(one, "agree", members.survivors)
            hand_in(one, server.agree, Agreement)
        close()
    for one in alive:
        answer(one, "agreements", members.agreements if terms.mode == "active" else members.survivors)
        if not server.complete:
            hand_in(one, server.reveal, RevealedShares)
    opened = server_watch.time("open", server.open)
    if not np.array_equal(opened.vector, expected):
        raise AssertionError("the secure sum differs from the sum")
    return time.perf_counter() - started, clients


def _keystream_gb_per_sec() -> float:
    chunk = np.zeros(CHUNK_BYTES, dtype=np.uint8)
    stream = ChaChaStream(bytes(32))

    def work() -> None:
        for _ in range(CLIENTS):
            stream.fill(chunk.data)

    return CLIENTS * CHUNK_BYTES / min(_seconds(work) for _ in range(5)) / 1e9


def _seconds(work: Callable[[], None]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started

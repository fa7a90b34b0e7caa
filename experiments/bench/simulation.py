"""Measures simulated clients per second: our rounds in one and two processes, bare graphs, Apple's pfl, and Flower.

All train NRMS on the same samples in the same run, alternately. Bare graphs are the limit: each process runs the
gradient graph on batches that are ready, and does nothing else.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.gradients import OnnxGradients, Params
from device_app.training.tasks.full_gradient import FullGradientTask, ranker_batch
from experiments.bench.secagg import FLOWER_PYTHON
from experiments.datasets.mind import RaggedArray
from experiments.datasets.samples import TrainingSamples
from experiments.records import Cell, Table
from experiments.simulation.clients import (
    Clients,
    ManyProcesses,
    OneProcess,
    SimulatedDevice,
    gradient_graph,
    ranker_inputs,
)
from experiments.simulation.readers import Library, SimulatedReader
from experiments.simulation.rounds import Rounds, simulate
from exporters.signature import parameters
from models.builders.rankers import nrms_user
from models.shapes import CLICKS, NEGATIVES, NEWS_DIM

PEERS = (
    ("pfl", "pfl", "pfl {}, 1 process", ()),
    ("pfl", "pfl", "pfl {}, 2 processes", ("-m", "torch.distributed.run", "--nproc-per-node=2")),
    ("flower", "flwr", "Flower {}, 2 processes", ()),
)
"""The peers: module, name of the row, and how each is started."""
READERS, NEWS, COHORT, SAMPLES_LIMIT = 1_000, 2_000, 50, 16
SAMPLES_MEAN = 4.3
"""Mean number of samples per reader, as in MIND's subset (`experiments.datasets.samples`)."""
ROUNDS, WARM_UP, TURNS = 8, 2, 2
PEER_LIMIT_SEC = 300.0
"""Time limit of a peer, which waits forever if its workers died; alone it takes less than a minute."""
MANY_READERS, MANY_COHORT, MANY_ROUNDS = 100_000, 500, 20
SEED = 7


@dataclass(frozen=True)
class SimulationTask:
    """What every engine trains on."""

    samples: TrainingSamples
    library: Library
    graph: bytes
    weights: Params

    @classmethod
    def of(cls, readers: int) -> SimulationTask:
        """Draw readers with 1 to 16 samples of 1 to 50 clicks each."""
        rng = np.random.default_rng(SEED)
        counts = np.clip(rng.geometric(1 / SAMPLES_MEAN, size=readers), 1, SAMPLES_LIMIT)
        total = int(counts.sum())
        clicks = rng.integers(NEWS, size=(total, CLICKS))
        clicks[np.arange(CLICKS) < CLICKS - rng.integers(1, CLICKS + 1, size=(total, 1))] = NEWS
        vectors = rng.normal(size=(NEWS, NEWS_DIM)) / np.sqrt(NEWS_DIM)
        model = nrms_user()
        return cls(
            TrainingSamples(
                reader=np.repeat(np.arange(readers), counts),
                clicks=clicks,
                positive=rng.integers(NEWS, size=total),
                shown=RaggedArray.of([[] for _ in range(total)]),
                read=(frozenset(),) * readers,
                popular=np.arange(NEWS),
                news=NEWS,
            ),
            Library.of(vectors.astype(np.float32)),
            gradient_graph(model, ranker_inputs(NEWS_DIM)),
            {name: value.numpy() for name, value in parameters(model).items()},
        )

    def device(self) -> SimulatedDevice:
        """Return the simulated device: a device's task and engine."""
        source = partial(SimulatedReader, self.samples, library=self.library)
        return SimulatedDevice(FullGradientTask(NEGATIVES, SAMPLES_LIMIT), OnnxGradients(self.graph), source, SEED)

    def save(self, path: Path) -> None:
        """Write the samples for the peers, with negatives drawn once."""
        rows = np.arange(len(self.samples))
        np.savez(
            path,
            vectors=self.library.vectors,
            offsets=np.searchsorted(self.samples.reader, np.arange(self.samples.readers + 1)),
            clicks=self.samples.clicks,
            candidates=self.samples.candidates(rows, NEGATIVES, np.random.default_rng(SEED)),
        )


def run(data: Path) -> list[Table]:
    """Return two tables: clients per second, and a round of a hundred thousand devices."""
    work = SimulationTask.of(READERS)
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "readers.npz"
        work.save(samples)
        turns = [_turn(work, samples) for _ in range(TURNS)]
    limit = statistics.median(turn["bare graphs, 2 processes"] for turn in turns)
    rows: list[tuple[Cell, ...]] = []
    for name in turns[0]:
        rate = statistics.median(turn[name] for turn in turns)
        shares = [turn[name] / turn["bare graphs, 2 processes"] for turn in turns]
        rows.append((name, rate, rate / limit, min(shares), max(shares)))
    missing = [module for _, module, *_ in PEERS[1:] if not _version(module)]
    peers = f" Left out: {', '.join(missing)}; {FLOWER_PYTHON} may name a Python that has them." if missing else ""
    note = (
        f"NRMS with {sum(each.size for each in work.weights.values()):,} parameters, {COHORT} of {READERS:,} readers a "
        f"round, {len(work.samples) / READERS:.1f} samples a reader on average; medians of {TURNS} turns, in each of "
        f"which all run one after the other; ours: {ROUNDS} rounds after {WARM_UP}.{peers}"
    )
    columns = ("engine", "clients a second", "of two bare graphs", "least", "most")
    return [Table("Simulated clients a second", columns, rows, (note,), (SEED,)), _many()]


def _turn(work: SimulationTask, samples: Path) -> dict[str, float]:
    found = {"bare graphs, 1 process": _bare(work, 1), "bare graphs, 2 processes": _bare(work, 2)}
    found["Ownfeed, 1 process"] = _rate(OneProcess(work.device()), work)
    with ManyProcesses(work.device, 2) as many:
        found["Ownfeed, 2 processes"] = _rate(many, work)
    for name, module, engine, options in PEERS:
        if version := _version(module):
            found[engine.format(version)] = _peer(name, options, samples)
    return found


def _rate(clients: Clients, work: SimulationTask) -> float:
    times: list[float] = []
    plan = Rounds(WARM_UP + ROUNDS, COHORT, READERS, SEED)

    def note(number: int, weights: object) -> None:
        times.append(time.perf_counter())

    simulate(clients, work.weights, plan, FedAvg(), Sgd(0.01), after_round=note)
    return ROUNDS * COHORT / (times[-1] - times[WARM_UP - 1])


def _bare(work: SimulationTask, processes: int) -> float:
    plan = Rounds(WARM_UP + ROUNDS, COHORT, READERS, SEED)
    cohorts = [plan.cohort_of(number) for number in range(WARM_UP, WARM_UP + ROUNDS)]
    readers = [reader for cohort in cohorts for reader in cohort]
    context = get_context("spawn")
    with context.Manager() as manager:
        together = manager.Barrier(processes)
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            jobs = [pool.submit(_bare_graphs, work, readers[i::processes], together.wait) for i in range(processes)]
            return sum(job.result() for job in jobs)


def _bare_graphs(work: SimulationTask, readers: list[int], wait: Callable[[], int]) -> float:
    """Return clients per second of the graph alone, once all processes are ready."""
    device = work.device()
    rng = np.random.default_rng(SEED)
    drawn = [device.source(reader).draw(negatives=NEGATIVES, limit=SAMPLES_LIMIT, rng=rng) for reader in readers]
    batches = [ranker_batch(each, slice(0, len(each))) for each in drawn]
    for batch in batches[:COHORT]:
        device.grad(work.weights, batch)
    wait()
    began = time.perf_counter()
    for batch in batches:
        device.grad(work.weights, batch)
    return len(batches) / (time.perf_counter() - began)


@cache
def _version(module: str) -> str:
    """Return a peer's version; '' if no Python is named that has it."""
    completed = subprocess.run(
        [_python(), "-c", f"import {module}; print({module}.__version__)"], capture_output=True, text=True, check=False
    )
    return completed.stdout.strip()


def _python() -> str:
    return os.environ.get(FLOWER_PYTHON) or sys.executable


def _peer(name: str, options: tuple[str, ...], samples: Path) -> float:
    script = Path(__file__).with_name("simulation_peers.py")
    done = subprocess.run(
        [_python(), *options, str(script), name, str(samples), str(WARM_UP + ROUNDS), str(COHORT)],
        capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=PEER_LIMIT_SEC,
    )  # fmt: skip
    first = next(line for line in done.stdout.splitlines() if line.startswith('{"seconds"'))
    seconds: list[float] = json.loads(first)["seconds"]
    return COHORT / statistics.mean(seconds[WARM_UP - 1 :])


def _many() -> Table:
    """Return the table of many devices with one and two processes: the same weights, and the memory of both."""
    work = SimulationTask.of(MANY_READERS)
    plan = Rounds(MANY_ROUNDS, MANY_COHORT, MANY_READERS, SEED)
    rows: list[tuple[Cell, ...]] = []
    kept: dict[str, Params] = {}
    for processes in (1, 2):
        peak = 0

        def measure(number: int, weights: object) -> None:
            nonlocal peak
            me = psutil.Process()
            peak = max(peak, sum(each.memory_info().rss for each in (me, *me.children(recursive=True))))

        began = time.perf_counter()
        if processes == 1:
            trained = simulate(OneProcess(work.device()), work.weights, plan, FedAvg(), Sgd(0.01), after_round=measure)
        else:
            with ManyProcesses(work.device, processes) as many:
                trained = simulate(many, work.weights, plan, FedAvg(), Sgd(0.01), after_round=measure)
        kept[str(processes)] = trained.weights
        same = all(np.array_equal(kept["1"][name], value) for name, value in trained.weights.items())
        rows.append((processes, time.perf_counter() - began, peak / 1e9, "equal" if same else "different"))
    note = f"{MANY_READERS:,} devices, {MANY_COHORT} a round, {MANY_ROUNDS} rounds. Bars: 3 GB, equal weights."
    return Table("A hundred thousand devices", ("processes", "seconds", "GB", "weights"), rows, (note,), (SEED,))

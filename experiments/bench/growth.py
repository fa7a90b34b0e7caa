"""How costs grow: with the pool's news, with devices of a simulated protocol, and with a cohort over HTTP.

A cost that grows as c n^e is a line of slope e where both axes are logarithmic: e is fitted by least squares to all
sizes, and what one costs is told at the largest.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from backend.federation.secagg.secure_sum import SecureSumServer
from backend.operator import Operator
from backend.recall.basis_scan import BasisScan
from backend.settings import load_settings
from device_app.privacy.exact_samplers import randomised_response
from device_app.privacy.noise_sources import SystemNoise
from device_app.wire.secagg import SumTerms
from experiments.bench import secagg_http
from experiments.bench.headlines import CLUSTERS_SEED, basis_of, clustered_vectors, interest_vectors
from experiments.bench.large_pools import NOISE_SEED, noisy_copies
from experiments.bench.secagg import SEED, StageClock, drive
from experiments.table import Cell, Table

POOLS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
DEVICES = (100, 1_000, 10_000, 100_000)
SUMMED = (100, 300, 1_000, 3_000)
COHORTS = (50, 100, 200, 500, 1_000)
GROUP = 50
"""Devices of a sum, where more than that are several sums."""
LENGTH = 262 + 1
"""Of the default ranker's update."""
SEED_VECTORS, BASIS_ROWS, REQUESTS, CHANNELS, DEPTH = 10_000, 65_536, 40, 5, 400
CODES, EPSILON = 16, 4.0

FOUND, MEASURED = "Growth", "Growth, size by size"


@dataclass(frozen=True)
class GrowthCurve:
    """A cost by size. of: whose number is the size; what: the cost, with its unit last."""

    of: str
    what: str
    costs: tuple[tuple[int, float], ...]

    @property
    def exponent(self) -> float:
        """e of the fitted c n^e. Raises ValueError for a single size."""
        if len(self.costs) < 2:
            raise ValueError(f"costs: a growth needs two sizes, got {len(self.costs)}")
        sizes, costs = np.log(np.array(self.costs)).T
        return float(np.polyfit(sizes, costs, 1)[0])

    @property
    def unit_cost(self) -> float:
        """Of one, at the largest size."""
        size, cost = self.costs[-1]
        return cost / size


def run(data: Path) -> list[Table]:
    """The table of exponents, and what they are fitted to. Needs none of the research data."""
    return tables([*pools(), *devices(), *sums(), *cohorts()])


def tables(courses: Sequence[GrowthCurve]) -> list[Table]:
    """A row a course, and a row a size of each."""
    found: list[tuple[Cell, ...]] = [
        (each.of, each.what, each.costs[0][0], each.costs[-1][0], round(each.exponent, 2), f"{each.unit_cost:.3g}")
        for each in courses
    ]
    measured: list[tuple[Cell, ...]] = [
        (each.of, each.what, size, float(f"{cost:.4g}")) for each in courses for size, cost in each.costs
    ]
    note = (
        "The exponent e of c n^e by least squares over all sizes: 1 is in proportion, below 1 gets cheaper by the "
        "piece. 'of one' is the cost at the largest size over the size. Seconds are of the processor. News: "
        f"{CHANNELS} interests a request, {DEPTH} candidates, by the scan of the basis over synthetic vectors. "
        f"Reports: randomised response of {CODES} codes at epsilon {EPSILON:g}. Sums: groups of {GROUP} devices with "
        f"{LENGTH} numbers each, devices and server in one process, every message made and read. Cohort: secure "
        f"rounds of {LENGTH} numbers over HTTP, the server a process of its own. "
        f"Load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    )
    return [
        Table(
            FOUND, ("of", "what", "from", "to", "exponent", "of one"), found, (note,), (SEED, CLUSTERS_SEED, NOISE_SEED)
        ),
        Table(MEASURED, ("of", "what", "size", "cost"), measured),
    ]


def pools(sizes: Sequence[int] = POOLS) -> list[GrowthCurve]:
    """A request by scores, the index's memory and its making, by the news in the pool."""
    seeds = clustered_vectors(min(SEED_VECTORS, sizes[0]))
    search, held, built = [], [], []
    with tempfile.TemporaryDirectory(prefix="ownfeed-growth-") as folder:
        for size in sizes:
            path = Path(folder, f"{size}.f32")
            vectors = noisy_copies(seeds, size, path)
            basis = basis_of(vectors[:BASIS_ROWS])
            started = time.process_time()
            scan = BasisScan.over(basis, vectors, np.zeros(size, dtype=np.float32))
            built.append((size, time.process_time() - started))
            held.append((size, scan.bytes_held / 1e6))
            requests = [interest_vectors(basis, CHANNELS, seed) for seed in range(REQUESTS)]
            search.append((size, 1_000 * float(np.median([_cpu_sec(scan.search, each, DEPTH) for each in requests]))))
            del vectors
            path.unlink()
    return [
        GrowthCurve("news", "a request, ms", tuple(search)),
        GrowthCurve("news", "the index, MB", tuple(held)),
        GrowthCurve("news", "making it, s", tuple(built)),
    ]


def devices(sizes: Sequence[int] = DEVICES) -> list[GrowthCurve]:
    """Reports: each device draws its own, the server counts them."""
    source, courses = SystemNoise(), []
    for size in sizes:
        codes = np.random.default_rng(SEED).integers(0, CODES, size)

        def report(codes: np.ndarray[tuple[int], np.dtype[np.int64]] = codes) -> None:
            told = [
                randomised_response(source, codes[place : place + 1], CODES, EPSILON) for place in range(codes.size)
            ]
            np.bincount(np.concatenate(told), minlength=CODES)

        courses.append((size, _cpu_sec(report)))
    return [GrowthCurve("devices", "reports, s", tuple(courses))]


def sums(sizes: Sequence[int] = SUMMED, group: int = GROUP) -> list[GrowthCurve]:
    """Secure sums: devices in groups as of a large round, each group a sum, all of it in this process."""
    terms = SumTerms.model_validate({
        "round": "round-1", "cohort": group, "cohort_minimum": group // 2, "length": LENGTH, "fraction_bits": 12,
        "bound": 1.0,
    })  # fmt: skip
    found = []
    for size in sizes:

        def summed(size: int = size) -> None:
            for _ in range(max(1, size // group)):
                drive(SecureSumServer.begin(terms), terms, StageClock(), StageClock(), 0)

        found.append((max(1, size // group) * group, _cpu_sec(summed)))
    return [GrowthCurve("devices", "secure sums, s", tuple(found))]


def cohorts(sizes: Sequence[int] = COHORTS, length: int = LENGTH) -> list[GrowthCurve]:
    """A secure round over HTTP by its cohort: the server's processor time and memory, and the requests."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, secagg_http.serving(Path(folder), length) as (url, process):
        operator = Operator(url, load_settings(data_dir=Path(folder)).admin_token_file)
        with httpx.Client(base_url=url, timeout=60.0) as http:
            secagg_http.measure_round(http, operator, secagg_http.WARM_CLIENTS, length, process, Path(folder))
            for size in sizes:
                row = secagg_http.measure_round(http, operator, size, length, process, Path(folder))
                rows.append((size, dict(zip(secagg_http.COLUMNS, row, strict=True))))
    return [
        GrowthCurve("cohort", what, tuple((size, float(row[column] or 0)) for size, row in rows))
        for what, column in (("the server, s", "server s"), ("requests", "requests"))
    ]


def _cpu_sec(work: Callable[..., object], *arguments: object) -> float:
    started = time.process_time()
    work(*arguments)
    return time.process_time() - started

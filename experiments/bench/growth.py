"""Measures how costs grow with the articles of the pool, with devices, and with the size of a cohort over HTTP.

A cost is c n^e; e is fitted to all sizes by least squares.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from backend.federation.secagg.secure_sum import SecureSumServer
from backend.operations.admin_client import Operator
from backend.recall.indexes.basis import BasisScan
from backend.settings import load_settings
from device_app.privacy.exact_samplers import randomised_response
from device_app.privacy.noise_sources import SystemNoise
from experiments.bench import secagg_http
from experiments.bench.headlines import CLUSTERS_SEED, basis_of, clustered_vectors, interest_vectors
from experiments.bench.large_pools import NOISE_SEED, noisy_copies
from experiments.bench.secagg import SEED, StageClock, drive
from experiments.records import Cell, Table
from protocol.secagg import SumTerms

POOLS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
DEVICES = (100, 1_000, 10_000, 100_000)
SUMMED = (100, 300, 1_000, 3_000)
COHORTS = (50, 100, 200, 500, 1_000)
GROUP = 50
"""Members of one secure sum; more devices make several sums."""
LENGTH = 262 + 1
"""Numbers in the default ranker's update."""
SEED_VECTORS, BASIS_ROWS, REQUESTS, CHANNELS, DEPTH = 10_000, 65_536, 40, 5, 400
CODES, EPSILON = 16, 4.0

FOUND, MEASURED = "Growth", "Growth, size by size"


@dataclass(frozen=True)
class GrowthCurve:
    """A cost by size. of: what is counted; what: the name of the cost, with its unit last."""

    of: str
    what: str
    costs: tuple[tuple[int, float], ...]

    @property
    def exponent(self) -> float:
        """Return e of the fitted c n^e. Raises ValueError for a single size."""
        if len(self.costs) < 2:
            raise ValueError(f"costs: a growth needs two sizes, got {len(self.costs)}")
        sizes, costs = np.log(np.array(self.costs)).T
        return float(np.polyfit(sizes, costs, 1)[0])

    @property
    def unit_cost(self) -> float:
        """Return the cost per unit at the largest size."""
        size, cost = self.costs[-1]
        return cost / size


def run(data: Path) -> list[Table]:
    """Return the tables of exponents and of the measurements behind them. Needs no research data."""
    return tables([*pools(), *devices(), *sums(), *cohorts()])


def tables(courses: Sequence[GrowthCurve]) -> list[Table]:
    """Return one row for each curve, and one row for each of its sizes."""
    found: list[tuple[Cell, ...]] = [
        (each.of, each.what, each.costs[0][0], each.costs[-1][0], round(each.exponent, 2), f"{each.unit_cost:.3g}")
        for each in courses
    ]
    measured: list[tuple[Cell, ...]] = [
        (each.of, each.what, size, float(f"{cost:.4g}")) for each in courses for size, cost in each.costs
    ]
    note = (
        "Exponent e of c n^e, fitted to all sizes; 1 is proportional. Processor seconds. A request has "
        f"{CHANNELS} interests; sums and rounds have {LENGTH} numbers, sums in groups of {GROUP} devices."
    )
    return [
        Table(
            FOUND,
            ("of", "what", "from", "to", "exponent", "per unit"),
            found,
            (note,),
            (SEED, CLUSTERS_SEED, NOISE_SEED),
        ),
        Table(MEASURED, ("of", "what", "size", "cost"), measured),
    ]


def pools(sizes: Sequence[int] = POOLS) -> list[GrowthCurve]:
    """Measure a request by scores, and the index's memory and build time, by the number of articles."""
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
        GrowthCurve("articles", "a request, ms", tuple(search)),
        GrowthCurve("articles", "the index, MB", tuple(held)),
        GrowthCurve("articles", "building it, s", tuple(built)),
    ]


def devices(sizes: Sequence[int] = DEVICES) -> list[GrowthCurve]:
    """Measure reports: each device draws its own, the server counts them."""
    source, courses = SystemNoise(), []
    for size in sizes:
        codes = np.random.default_rng(SEED).integers(0, CODES, size)

        def report(codes: np.ndarray[tuple[int], np.dtype[np.int64]] = codes) -> None:
            sent = [
                randomised_response(source, codes[place : place + 1], CODES, EPSILON) for place in range(codes.size)
            ]
            np.bincount(np.concatenate(sent), minlength=CODES)

        courses.append((size, _cpu_sec(report)))
    return [GrowthCurve("devices", "reports, s", tuple(courses))]


def sums(sizes: Sequence[int] = SUMMED, group: int = GROUP) -> list[GrowthCurve]:
    """Measure secure sums in groups, as in a large round, in one process."""
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
    """Measure a secure round over HTTP by size of cohort: processor time, memory and requests of the server."""
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

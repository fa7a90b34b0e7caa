"""What ten million devices and five million news a month would take, by the costs that other benches recorded.

Nothing is measured here: every cost is a cell of a committed record, everything else an assumption that stands in a
table of its own. What a record doesn't have yet is left empty, and so is what hangs on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from device_app.settings import PerformanceSettings
from experiments import records
from experiments.records import Record
from experiments.table import Cell, Table

DAY_SEC, DAYS_A_MONTH = 86_400.0, 30.0
SCENARIOS = ((10_000, 50_000), (100_000, 200_000), (1_000_000, 1_000_000), (10_000_000, 5_000_000))
"""Devices, and news a month; news live a month, so that is also the pool."""
SERVED_NEWS = 1_000_000
"""The pool whose server `ownfeed bench large-pools` measures."""


@dataclass(frozen=True)
class CapacityAssumptions:
    """What no bench can measure."""

    feeds_a_day: float = 8
    hours_open: float = 2
    trainers: float = 0.1
    places_a_month: float = 1
    swaps_a_month: float = 10
    swap_mb: float = 2.0
    poll_kb: float = 1.0
    peak: float = 3.0
    busy: float = 0.5
    machine_cores: float = 16
    machine_gb: float = 64
    machine_gbit: float = 10
    core_month: float = 20.0
    tb_cheap: float = 2.0
    tb_dear: float = 80.0


SAID = {
    "feeds_a_day": "fresh lists a device asks for a day: as many as its reports allow",
    "hours_open": "hours a day that a device runs, looking for releases and front lists as often as its settings say",
    "trainers": "share of devices that look for rounds, too",
    "places_a_month": "rounds a device takes part in a month",
    "swaps_a_month": "releases a device fetches a month",
    "swap_mb": "MB a device fetches of a release",
    "poll_kb": "kB of a look that finds nothing new",
    "peak": "times the mean load in the busiest hour",
    "busy": "share of a core, memory or line that is planned for",
    "machine_cores": "cores of a machine",
    "machine_gb": "GB of its memory",
    "machine_gbit": "Gbit/s of its line",
    "core_month": "currency units a core a month, with its share of memory",
    "tb_cheap": "the same a TB sent, where traffic is cheap",
    "tb_dear": "the same a TB sent, at a large cloud's list price",
}


@dataclass(frozen=True)
class Costs:
    """Measured: core seconds (cs), kB and GB; None where nothing is recorded yet."""

    feed_cs: float
    scores_cs: float
    feed_kb: float
    front_kb: float
    place_cs: float
    place_kb: float
    title_cs: float
    rebuild_sec: float | None
    worker_gb: float | None


SOURCES = {
    "feed_cs": "any list, or a look for one, core s at most: a worker's second over the lists it served in it",
    "scores_cs": "a list by scores at 100,000 news, core s: the server's p50",
    "feed_kb": "a list of 400, kB, compressed",
    "front_kb": "the front list of 600, kB, compressed",
    "place_cs": "a place in a secure round of 500 x 250,000 numbers, server core s",
    "place_kb": "a place in a round of the small ranker, kB received",
    "title_cs": "a title embedded, core s, two threads",
    "rebuild_sec": "new articles searchable in a pool of a million, s",
    "worker_gb": "a worker's private memory with a million news, GB",
}


def run(data: Path) -> list[Table]:
    """The tables, from the records as they are committed."""
    return tables(measured())


def measured(read: Callable[[str], Record] = records.read) -> Costs:
    """The costs from the records. Raises KeyError or FileNotFoundError for one that is not as it was."""

    def cell(record: str, title: str, row: str, column: str) -> float:
        table = read(record).table(title)
        for each in table.rows:
            if str(each[0]) == row:
                return float(each[table.columns.index(column)])  # type: ignore[arg-type]
        raise KeyError(f"{record}, {title}: no row {row!r}")

    rounds = read("bench-round").table("Federated rounds")
    last = [row for row in rounds.rows if row[0] == "small_ranker_secure"][-1]
    megabytes, updates = (float(last[rounds.columns.index(name)]) for name in ("MB received", "updates"))  # type: ignore[arg-type]
    over_http = ("bench-secagg", "Secure rounds over HTTP", "500 x 250,000")
    beyond = "Recall by code, 400 candidates, beyond capacity"
    try:
        large = ("bench-large-pools", "A server of a large pool")
        column = f"{SERVED_NEWS:,} news"
        rebuild = cell(*large, "100 new articles searchable after, s", column)
        worker = cell(*large, "private memory serving, MB", column) / 1_000
    except FileNotFoundError:
        rebuild, worker = None, None
    return Costs(
        feed_cs=1 / cell("bench-overload", beyond, "recall, 600 a second", "served a second"),
        scores_cs=cell("bench-endpoint", "Recall endpoint", "server: total", "p50 ms") / 1_000,
        feed_kb=cell("bench-pools", "What a list weighs", "41312", "400 places") / 1_000,
        front_kb=cell("bench-pools", "What a list weighs", "41312", "600 places") / 1_000,
        place_cs=cell(*over_http, "server s") / cell(*over_http, "summed"),
        place_kb=megabytes * 1_000 / updates,
        title_cs=2 / cell("bench-embed", "News encoder", "ONNX Runtime fp32 (shipped)", "titles a second"),
        rebuild_sec=rebuild,
        worker_gb=worker,
    )


@dataclass(frozen=True)
class Need:
    """What one scenario takes at its peak: cores by what they do, GB of memory a machine, Gbit/s, TB a month, and
    connections that devices hold open."""

    cores: dict[str, float]
    memory_gb: float | None
    gbit: float
    terabytes: float
    connections: float

    def machines(self, assumed: CapacityAssumptions) -> dict[str, float]:
        """Machines that each resource asks for, by its name; memory is of every machine, so a share of one."""
        found = {
            "cores": sum(self.cores.values()) / assumed.machine_cores,
            "line": self.gbit / (assumed.machine_gbit * assumed.busy),
        }
        if self.memory_gb is not None:
            found["memory"] = self.memory_gb / (assumed.machine_gb * assumed.busy)
        return found


def need(devices: int, news_a_month: int, costs: Costs, assumed: CapacityAssumptions) -> Need:
    """By proportion: lists by code cost the same whatever the pool, all else grows with devices or news."""
    second = 1 / DAY_SEC
    month = second / DAYS_A_MONTH
    scale = assumed.peak / assumed.busy
    looks = assumed.hours_open * 3_600 / _default("sync_poll_sec")
    polls = looks + assumed.trainers * assumed.hours_open * 3_600 / _default("training_poll_sec")
    cores = {
        "lists": devices * assumed.feeds_a_day * second * costs.feed_cs * scale,
        "front lists": devices * looks * second * costs.feed_cs * scale,
        "polls": devices * polls * second * costs.feed_cs * scale,
        "rounds": devices * assumed.places_a_month * month * costs.place_cs * scale,
        "news": news_a_month * month * costs.title_cs * scale,
    }
    kb_a_month = devices * (
        DAYS_A_MONTH * (assumed.feeds_a_day * costs.feed_kb + looks * costs.front_kb + polls * assumed.poll_kb)
        + assumed.swaps_a_month * assumed.swap_mb * 1_000
        + assumed.places_a_month * costs.place_kb
    )
    workers = assumed.machine_cores
    memory = None if costs.worker_gb is None else workers * costs.worker_gb * news_a_month / SERVED_NEWS
    held = devices * assumed.hours_open / 24 * assumed.peak
    return Need(cores, memory, kb_a_month * month * assumed.peak * 8 / 1e6, kb_a_month / 1e9, held)


def _default(setting: str) -> float:
    """Of a device's settings."""
    return float(PerformanceSettings.model_fields[setting].default)


def tables(costs: Costs, assumed: CapacityAssumptions | None = None) -> list[Table]:
    """Measured, assumed, and what they come to."""
    assumed = assumed or CapacityAssumptions()
    known = [(SOURCES[each.name], getattr(costs, each.name)) for each in fields(costs)]
    guessed = [(SAID[each.name], getattr(assumed, each.name)) for each in fields(assumed)]
    needs = [need(devices, news, costs, assumed) for devices, news in SCENARIOS]
    columns = ("what", *(f"{devices:,} devices, {news:,} news a month" for devices, news in SCENARIOS))
    rows: list[tuple[Cell, ...]] = [
        (f"cores at the peak: {name}", *(each.cores[name] for each in needs)) for name in needs[0].cores
    ]
    rows += [
        ("GB of memory a machine, a worker a core", *(each.memory_gb for each in needs)),
        ("Gbit/s at the peak", *(each.gbit for each in needs)),
        ("connections held open at the peak", *(round(each.connections) for each in needs)),
        ("TB sent a month", *(each.terabytes for each in needs)),
        ("machines for their cores", *(each.machines(assumed)["cores"] for each in needs)),
        ("machines for their lines", *(each.machines(assumed)["line"] for each in needs)),
        ("the first limit met", *(max(mine := each.machines(assumed), key=lambda name: mine[name]) for each in needs)),
        ("cores, currency units a month", *(sum(each.cores.values()) * assumed.core_month for each in needs)),
        ("traffic, units a month, cheap", *(each.terabytes * assumed.tb_cheap for each in needs)),
        ("traffic, units a month, dear", *(each.terabytes * assumed.tb_dear for each in needs)),
    ]
    notes = (
        "A reckoning, not a measurement: costs by the records of this repository, of machines of two cores; "
        "the rest as assumed. Lists, polls, rounds and traffic grow with devices, embedding and memory with news; a "
        "list by code costs the same whatever the pool. A front list is taken to have changed at every look.",
    )
    return [
        Table("What was measured", ("cost", "figure"), known),
        Table("What is assumed", ("assumption", "figure"), guessed),
        Table("Capacity", columns, rows, notes),
    ]

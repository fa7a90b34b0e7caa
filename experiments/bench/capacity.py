"""Estimates what ten million devices and five million articles a month need, from recorded costs.

Nothing is measured here. Every cost is a cell of a committed record; every other number is an assumption and is listed
as such. If a cost has no record, it and everything that depends on it stay empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from device_app.settings import PerformanceSettings
from experiments import records
from experiments.bench.changes import ARTICLES_A_MONTH
from experiments.bench.changes import TABLE as CHANGES
from experiments.records import Cell, Record, Table

DAY_SEC, DAYS_A_MONTH = 86_400.0, 30.0
SCENARIOS = ((10_000, 50_000), (100_000, 200_000), (1_000_000, 1_000_000), (10_000_000, 5_000_000))
"""Devices, and articles per month; articles live for a month, so this is also the size of the pool."""
SERVED_NEWS = 1_000_000
"""The size of the pool whose server `ownfeed bench large-pools` measures."""


@dataclass(frozen=True)
class CapacityAssumptions:
    """Assumptions that no bench can measure."""

    hours_open: float = 2
    starts: float = 1
    texts_kb: float = 400
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
    tb_price: float = 2.0


SAID = {
    "hours_open": "hours a day that a device runs, with its default settings",
    "starts": "times a day that a device starts, each time with a whole default list",
    "texts_kb": "kB of texts fetched after each list of 400, compressed",
    "trainers": "share of devices that also poll for rounds",
    "places_a_month": "rounds a month that a device takes part in",
    "swaps_a_month": "releases a month that a device fetches",
    "swap_mb": "MB fetched of each release",
    "poll_kb": "kB of a poll that finds nothing new",
    "peak": "busiest hour, times the mean load",
    "busy": "planned use of cores, memory and line",
    "machine_cores": "cores a machine",
    "machine_gb": "GB of memory a machine",
    "machine_gbit": "Gbit/s a machine",
    "core_month": "price of a core a month, with its memory, units",
    "tb_price": "price of a TB sent, where traffic is cheap, units",
}


@dataclass(frozen=True)
class Costs:
    """Measured costs: core seconds (cs), kB and GB; None without a record."""

    feed_cs: float
    poll_cs: float
    scores_cs: float
    feed_kb: float
    front_kb: float
    changes_kb: float
    changes_kb_most: float
    place_cs: float
    place_kb: float
    title_cs: float
    rebuild_sec: float | None
    worker_gb: float | None


SOURCES = {
    "feed_cs": "a list by code, core s at most",
    "poll_cs": "a poll or default list from memory, core s at most",
    "scores_cs": "a list by scores with 100,000 articles, core s, median",
    "feed_kb": "a list of 400, kB, compressed",
    "front_kb": "the default list of 600, kB, compressed",
    "changes_kb": "a minute's change of it, kB, with 50,000 articles a month",
    "changes_kb_most": "a minute's change of it, kB, with 5,000,000 articles a month",
    "place_cs": "a device in a secure round of 500 x 250,000 numbers, server core s",
    "place_kb": "a device in a round of the small ranker, kB received",
    "title_cs": "embedding a title, core s, two threads",
    "rebuild_sec": "new articles searchable in a pool of a million, s",
    "worker_gb": "a worker's private memory with a million articles, GB",
}


def run(data: Path) -> list[Table]:
    """Return the tables, from the committed records."""
    return tables(measured())


def measured(read: Callable[[str], Record] = records.read) -> Costs:
    """Read the costs from the records. Raises KeyError or FileNotFoundError if a record has changed or is missing."""

    def cell(record: str, title: str, row: str, column: str) -> float:
        table = read(record).table(title)
        for each in table.rows:
            if str(each[0]) == row:
                return float(each[table.columns.index(column)])  # type: ignore[arg-type]
        raise KeyError(f"{record}, {title}: no row {row!r}")

    rounds = read("bench-round").table("Federated rounds")
    last = [row for row in rounds.rows if row[0] == "small_ranker/secure/median"][-1]
    megabytes, updates = (float(last[rounds.columns.index(name)]) for name in ("MB received", "updates"))  # type: ignore[arg-type]
    over_http = ("bench-secagg", "Secure rounds over HTTP", "500 x 250,000")
    beyond = "Recall by code, 400 candidates, beyond capacity"
    try:
        large = ("bench-large-pools", "A server of a large pool")
        column = f"{SERVED_NEWS:,} articles"
        rebuild = cell(*large, "100 new articles searchable after, s", column)
        worker = cell(*large, "private memory serving, MB", column) / 1_000
    except FileNotFoundError:
        rebuild, worker = None, None
    from_memory = read("bench-polls").table("Polls that find nothing new")
    slowest = max(float(row[1]) for row in from_memory.rows)  # type: ignore[arg-type]
    return Costs(
        poll_cs=slowest / 1_000,
        feed_cs=1 / cell("bench-overload", beyond, "recall, 600 a second", "served a second"),
        scores_cs=cell("bench-endpoint", "Recall endpoint", "server: total", "p50 ms") / 1_000,
        feed_kb=cell("bench-pools", "What a list weighs", "41312", "400 places") / 1_000,
        front_kb=cell("bench-pools", "What a list weighs", "41312", "600 places") / 1_000,
        changes_kb=cell("bench-changes", CHANGES, f"{ARTICLES_A_MONTH[0]:,}", "kB of changes"),
        changes_kb_most=cell("bench-changes", CHANGES, f"{ARTICLES_A_MONTH[-1]:,}", "kB of changes"),
        place_cs=cell(*over_http, "server s") / cell(*over_http, "summed"),
        place_kb=megabytes * 1_000 / updates,
        title_cs=2 / cell("bench-embed", "News encoder", "ONNX Runtime fp32 (shipped)", "titles a second"),
        rebuild_sec=rebuild,
        worker_gb=worker,
    )


@dataclass(frozen=True)
class ResourceNeeds:
    """What one scenario needs at its peak: cores by task, GB of memory per machine, Gbit/s, TB per month,
    connections.
    """

    cores: dict[str, float]
    memory_gb: float | None
    gbit: float
    terabytes: float
    connections: float

    def machines(self, assumed: CapacityAssumptions) -> dict[str, float]:
        """Return the machines needed for each resource.

        Memory counts as a share of one machine, since every machine needs all of it.
        """
        found = {
            "cores": sum(self.cores.values()) / assumed.machine_cores,
            "line": self.gbit / (assumed.machine_gbit * assumed.busy),
        }
        if self.memory_gb is not None:
            found["memory"] = self.memory_gb / (assumed.machine_gb * assumed.busy)
        return found


def need(devices: int, news_a_month: int, costs: Costs, assumed: CapacityAssumptions) -> ResourceNeeds:
    """Compute the need of one scenario.

    Answers to a report by code cost the same in every pool; everything else grows with devices or articles.
    """
    second = 1 / DAY_SEC
    month = second / DAYS_A_MONTH
    scale = assumed.peak / assumed.busy
    lists = assumed.hours_open * 3_600 / _default("recall_poll_sec")
    looks = assumed.hours_open * 3_600 / _default("sync_poll_sec")
    polls = looks + assumed.trainers * assumed.hours_open * 3_600 / _default("training_poll_sec")
    cores = {
        "lists": devices * 2 * lists * second * costs.feed_cs * scale,
        "default lists": devices * looks * second * costs.poll_cs * scale,
        "polls": devices * polls * second * costs.poll_cs * scale,
        "rounds": devices * assumed.places_a_month * month * costs.place_cs * scale,
        "embedding": news_a_month * month * costs.title_cs * scale,
    }
    # Every number of articles a month gets the change of the larger one beside it.
    changes_kb = costs.changes_kb if news_a_month <= ARTICLES_A_MONTH[0] else costs.changes_kb_most
    default_lists_kb = assumed.starts * costs.front_kb + looks * changes_kb
    kb_a_month = devices * (
        DAYS_A_MONTH * (lists * (costs.feed_kb + assumed.texts_kb) + default_lists_kb + polls * assumed.poll_kb)
        + assumed.swaps_a_month * assumed.swap_mb * 1_000
        + assumed.places_a_month * costs.place_kb
    )
    workers = assumed.machine_cores
    memory = None if costs.worker_gb is None else workers * costs.worker_gb * news_a_month / SERVED_NEWS
    held = devices * assumed.hours_open / 24 * assumed.peak
    return ResourceNeeds(cores, memory, kb_a_month * month * assumed.peak * 8 / 1e6, kb_a_month / 1e9, held)


def _default(setting: str) -> float:
    """Return the default of a device's setting."""
    return float(PerformanceSettings.model_fields[setting].default)


def tables(costs: Costs, assumed: CapacityAssumptions | None = None) -> list[Table]:
    """Return the tables of costs, assumptions and needs."""
    assumed = assumed or CapacityAssumptions()
    known = [(SOURCES[each.name], getattr(costs, each.name)) for each in fields(costs)]
    guessed = [(SAID[each.name], getattr(assumed, each.name)) for each in fields(assumed)]
    needs = [need(devices, news, costs, assumed) for devices, news in SCENARIOS]
    columns = ("what", *(f"{devices:,} devices, {news:,} articles a month" for devices, news in SCENARIOS))
    rows: list[tuple[Cell, ...]] = [
        (f"cores at the peak: {name}", *(each.cores[name] for each in needs)) for name in needs[0].cores
    ]
    rows += [
        ("GB of memory a machine, one worker a core", *(each.memory_gb for each in needs)),
        ("Gbit/s at the peak", *(each.gbit for each in needs)),
        ("open connections at the peak", *(round(each.connections) for each in needs)),
        ("TB sent a month", *(each.terabytes for each in needs)),
        ("machines, by cores", *(each.machines(assumed)["cores"] for each in needs)),
        ("machines, by network", *(each.machines(assumed)["line"] for each in needs)),
        ("first limit", *(max(mine := each.machines(assumed), key=lambda name: mine[name]) for each in needs)),
        ("cost of cores, units a month", *(sum(each.cores.values()) * assumed.core_month for each in needs)),
        ("cost of traffic, units a month", *(each.terabytes * assumed.tb_price for each in needs)),
    ]
    notes = ("An estimate, not a measurement. It assumes that every poll of the default list finds a new one.",)
    return [
        Table("What was measured", ("cost", "figure"), known),
        Table("What is assumed", ("assumption", "figure"), guessed),
        Table("Capacity", columns, rows, notes),
    ]

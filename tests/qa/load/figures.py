"""Figures of a load test: answers by kind of request, and the memory of each process."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.records import Cell, Table

FLAT = 0.02
"""The most that a process' memory may grow from the middle third of a test to its last."""
COME_LATER = (429, 503)
GOOD = (200, 204, 304)


@dataclass(frozen=True)
class FleetAnswers:
    """Results of requests: seconds since 1970, kind of request, milliseconds, and the status or the error."""

    at: NDArray[np.float64]
    asked: NDArray[np.str_]
    ms: NDArray[np.float64]
    status: Sequence[int | str]

    @classmethod
    def read(cls, path: Path) -> FleetAnswers:
        """Read them as the locustfile writes them."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(np.array(kept["at"], dtype=float), np.array(kept["asked"]), np.array(kept["ms"]), kept["status"])

    def of(self, chosen: NDArray[np.bool_]) -> FleetAnswers:
        """Return some of them."""
        status = [one for one, mine in zip(self.status, chosen, strict=True) if mine]
        return FleetAnswers(self.at[chosen], self.asked[chosen], self.ms[chosen], status)

    def percentile_ms(self, percent: float) -> float | None:
        """Return the percentile of all; None if there are none."""
        return float(np.percentile(self.ms, percent)) if len(self.ms) else None

    def row(self, name: str) -> tuple[Cell, ...]:
        """Return a row of the first table of `tables`."""
        told = Counter(self.status)
        later = [told[status] for status in COME_LATER]
        other = {str(status): count for status, count in told.items() if status not in (*GOOD, *COME_LATER)}
        seconds = float(self.at.max() - self.at.min()) if len(self.at) > 1 else 0.0
        return (
            name,
            len(self.ms),
            len(self.ms) / seconds if seconds else None,
            self.percentile_ms(50),
            self.percentile_ms(95),
            self.percentile_ms(99),
            *later,
            ", ".join(f"{count} {status}" for status, count in sorted(other.items())) or "0",
        )


def answers_table(answers: FleetAnswers, title: str, notes: Sequence[str]) -> Table:
    """Return a row for each kind of request, and one for all."""
    kinds = sorted(set(answers.asked.tolist()))
    rows = [answers.of(answers.asked == kind).row(kind) for kind in kinds]
    columns = ("asked", "requests", "a second", "p50 ms", "p95 ms", "p99 ms", "429", "503", "other than 200, 204, 304")
    return Table(title, columns, [*rows, answers.row("all")], tuple(notes))


def thirds_table(answers: FleetAnswers, began: float, ended: float) -> Table:
    """Return the p95 of each kind of request in the three thirds of the test."""
    edges = np.linspace(began, ended, 4)
    rows: list[tuple[Cell, ...]] = []
    for kind in sorted(set(answers.asked.tolist())):
        mine = answers.of(answers.asked == kind)
        parts = [mine.of((mine.at >= since) & (mine.at < until)) for since, until in itertools.pairwise(edges)]
        rows.append((kind, *(each.percentile_ms(50) for each in parts), *(each.percentile_ms(95) for each in parts)))
    thirds = ("first third", "middle third", "last third")
    columns = ("asked", *(f"p50 ms, {third}" for third in thirds), *(f"p95 ms, {third}" for third in thirds))
    return Table("The same over time", columns, rows)


@dataclass(frozen=True)
class ProcessMemory:
    """One process' resident bytes over time, in seconds since 1970."""

    name: str
    at: NDArray[np.float64]
    resident: NDArray[np.float64]

    def between(self, since: float, until: float) -> float | None:
        """Return the median; None if there was no sample."""
        held = self.resident[(self.at >= since) & (self.at < until)]
        return float(np.median(held)) if len(held) else None

    def growth(self, began: float, ended: float) -> float | None:
        """Return the growth from the middle third to the last, as a share; None for a process that was not in both."""
        edges = np.linspace(began, ended, 4)
        middle, last = self.between(edges[1], edges[2]), self.between(edges[2], edges[3])
        return None if middle is None or last is None else last / middle - 1


def memory_table(looked: Mapping[str, Sequence[tuple[float, int]]], began: float, ended: float) -> tuple[Table, bool]:
    """Return each process' memory, and whether all stayed flat. looked: time and resident bytes, by process."""
    edges, rows, flat = np.linspace(began, ended, 4), list[tuple[Cell, ...]](), True
    for name, seen in sorted(looked.items()):
        at, resident = np.array(seen, dtype=float).T
        memory = ProcessMemory(name, at, resident)
        growth = memory.growth(began, ended)
        parts = [memory.between(since, until) for since, until in itertools.pairwise(edges)]
        mib = [None if each is None else each / 2**20 for each in parts]
        rows.append((name, *mib, float(resident.max()) / 2**20, None if growth is None else 100 * growth))
        flat &= growth is None or growth <= FLAT
    columns = ("process", "MiB, first third", "MiB, middle third", "MiB, last third", "most MiB", "growth %")
    note = f"Medians of resident memory; growth from the middle third to the last, at most {FLAT:.0%}."
    return Table("Memory by process", columns, rows, (note,)), flat

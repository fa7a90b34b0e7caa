"""The endpoint's bench on a small pool."""

from __future__ import annotations

import pytest

from experiments.bench.headlines import Headline, clustered_vectors
from experiments.bench.recall_endpoint import measure
from experiments.records import Table

NEWS = 600


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    news = [Headline("Paper", f"section{row % 5}", f"Headline number {row}", "") for row in range(NEWS)]
    return measure(news, clustered_vectors(NEWS, dimensions=64, clusters=20), requests=5)


def median_ms(table: Table, what: str) -> float:
    return next(float(row[1]) for row in table.rows if row[0] == what)  # type: ignore[arg-type]


def test_every_logged_server_stage_of_a_report_has_a_row(tables: list[Table]) -> None:
    named = [row[0] for row in tables[0].rows]
    assert [f"server: {stage}" for stage in ("decode", "aggregate", "search", "encode", "total")] == [
        name for name in named if str(name).startswith("server") and name != "server: merge"
    ]
    assert "bar 1.3" in tables[0].notes[1]


@pytest.mark.parametrize("size", [16, 64])
def test_cached_lists_are_served_at_least_three_times_faster_than_computed_ones(tables: list[Table], size: int) -> None:
    made = median_ms(tables[1], f"K={size}, first request: compose and search")
    kept = median_ms(tables[1], f"K={size}, cached lists: compose and search")
    assert 0 < kept < made / 3
    assert "Bar: compose and search" in tables[1].notes[1]

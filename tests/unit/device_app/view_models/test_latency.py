"""Waterfalls and percentiles. Oracle: numpy on the same totals, and bars laid out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.view_models.latency import latency_view, round_edges, waterfall
from tests.doubles.news import NOW


def test_latency_bars_are_consecutive_and_server_stages_lie_within_the_network_bar() -> None:
    times = waterfall(NOW, "feed", {"rank": 2.0, "store": 1.0, "network": 10.0}, {"decode": 1.0, "search": 3.0})
    assert times.total_ms == 13.0
    bars = [(bar.name, bar.place, bar.start_ms, bar.ms) for bar in times.stages]
    assert bars == [
        ("store", "device", 0.0, 1.0),
        ("network", "network", 1.0, 10.0),
        ("decode", "server", 4.0, 1.0),
        ("search", "server", 5.0, 3.0),
        ("rank", "device", 11.0, 2.0),
    ]


def test_percentiles_and_histogram_cover_every_request() -> None:
    totals = np.random.default_rng(2).gamma(2.0, 10.0, size=150)
    view = latency_view([waterfall(NOW, "feed", {"store": float(total)}, {}) for total in totals])
    assert (view.p50_ms, view.p95_ms, view.p99_ms) == pytest.approx(tuple(np.percentile(totals, [50, 95, 99])))
    assert sum(bar.count for bar in view.histogram) == view.count == 150
    assert len(view.requests) == 20
    (stage,) = view.stages
    assert (stage.name, stage.place, stage.count) == ("store", "device", 150)
    assert (stage.p50_ms, stage.p95_ms, stage.p99_ms) == pytest.approx(tuple(np.percentile(totals, [50, 95, 99])))


def test_stages_are_averaged_over_their_requests_in_order() -> None:
    device = {"store": 1.0, "rank": 2.0}
    view = latency_view(
        [waterfall(NOW, "feed", device, {})] * 3
        + [waterfall(NOW, "feed", device | {"network": 9.0}, {"search": 3.0, "decode": 1.0})]
    )
    assert [(stage.place, stage.name, stage.count) for stage in view.stages] == [
        ("device", "store", 4),
        ("network", "network", 1),
        ("server", "decode", 1),
        ("server", "search", 1),
        ("device", "rank", 4),
    ]


@pytest.mark.parametrize(
    ("low_ms", "high_ms", "edges"),
    [
        (6.0, 31.0, [5, 7, 10, 15, 20, 30, 50]),
        (10.0, 10.0, [10, 15]),
        (0.001, 0.012, [0, 0.015]),
        (900.0, 999.0, [700, 1_000]),
    ],
)
def test_edges_of_the_histogram_are_round_numbers_around_all_requests(
    low_ms: float, high_ms: float, edges: list[float]
) -> None:
    assert round_edges(low_ms, high_ms) == pytest.approx(edges)


def test_empty_history_has_no_percentile() -> None:
    view = latency_view([])
    assert (view.count, view.p50_ms, view.histogram) == (0, None, ())

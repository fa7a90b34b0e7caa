"""The capacity model compared with sums by hand, and with the committed records."""

from __future__ import annotations

import pytest

from experiments.bench.capacity import SAID, SOURCES, CapacityAssumptions, Costs, measured, need, tables

COSTS = Costs(
    feed_cs=0.002,
    poll_cs=0.001,
    scores_cs=0.01,
    feed_kb=100,
    front_kb=150,
    changes_kb=2,
    changes_kb_most=5,
    place_cs=0.1,
    place_kb=50,
    title_cs=0.005,
    rebuild_sec=8.0,
    worker_gb=1.5,
)


def test_scenario_matches_a_hand_computation() -> None:
    """864,000 devices, per second: 80 lists and texts, 1,200 default lists, 1,680 polls; three times the mean, half
    busy."""
    found = need(864_000, 2_592_000, COSTS, CapacityAssumptions())
    assert found.cores == pytest.approx(
        {"lists": 1.92, "default lists": 7.2, "polls": 10.08, "rounds": 0.2, "embedding": 0.03}
    )
    a_device_kb = 30 * (8 * (100 + 400) + 150 + 120 * 5 + 168) + 10 * 2_000 + 50
    assert found.terabytes == pytest.approx(864_000 * a_device_kb / 1e9)
    assert found.gbit == pytest.approx(864_000 * a_device_kb / 2_592_000 * 3 * 8 / 1e6)
    assert found.connections == 216_000
    assert found.memory_gb == pytest.approx(16 * 1.5 * 2.592)
    machines = found.machines(CapacityAssumptions())
    assert machines["cores"] == pytest.approx(sum(found.cores.values()) / 16)
    assert machines["line"] == pytest.approx(found.gbit / 5)
    assert machines["memory"] == pytest.approx(found.memory_gb / 32)  # type: ignore[operator]


def test_twice_the_devices_need_twice_the_cores_and_the_same_memory() -> None:
    one, two = (need(devices, 500_000, COSTS, CapacityAssumptions()) for devices in (100_000, 200_000))
    for name in ("lists", "default lists", "polls", "rounds"):
        assert two.cores[name] == pytest.approx(2 * one.cores[name])
    assert (two.cores["embedding"], two.memory_gb) == (one.cores["embedding"], one.memory_gb)
    assert two.terabytes == pytest.approx(2 * one.terabytes)


def test_unmeasured_values_are_left_empty() -> None:
    unknown = Costs(**{**vars(COSTS), "rebuild_sec": None, "worker_gb": None})
    known, _, capacity = tables(unknown)
    assert [row[1] for row in known.rows if row[1] is None] == [None, None]
    assert next(row for row in capacity.rows if str(row[0]).startswith("GB"))[1:] == (None,) * 4
    assert "memory" not in need(1, 1, unknown, CapacityAssumptions()).machines(CapacityAssumptions())


def test_every_cost_comes_from_a_record_and_every_assumption_is_listed() -> None:
    costs = vars(measured())
    assert costs.keys() == SOURCES.keys()
    assert all(value is None or value > 0 for value in costs.values())
    assert vars(CapacityAssumptions()).keys() == SAID.keys()

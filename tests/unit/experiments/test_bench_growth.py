"""How costs grow: exponents of known curves, and measurements at small sizes."""

from __future__ import annotations

import pytest

from experiments.bench.growth import GrowthCurve, cohorts, devices, pools, sums, tables
from experiments.bench.headlines import BASIS_SIZE

SQUARE = GrowthCurve("news", "pairs, s", ((10, 3 * 10.0**2), (100, 3 * 100.0**2), (1_000, 3 * 1_000.0**2)))
SHARE = GrowthCurve("cohort", "a share, ms", ((50, 0.1), (500, 0.1)))


def test_growth_exponent_and_cost_per_unit_match_the_curve() -> None:
    assert SQUARE.exponent == pytest.approx(2)
    assert SQUARE.unit_cost == pytest.approx(3_000)
    assert SHARE.exponent == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="two sizes"):
        _ = GrowthCurve("news", "one, s", ((10, 1.0),)).exponent


def test_one_table_has_a_row_per_curve_and_the_other_a_row_per_size() -> None:
    found, measured = tables([SQUARE, SHARE])
    assert [row[:5] for row in found.rows] == [
        ("news", "pairs, s", 10, 1_000, 2.0), ("cohort", "a share, ms", 50, 500, 0.0),
    ]  # fmt: skip
    assert [row[2] for row in measured.rows] == [10, 100, 1_000, 50, 500]


def test_each_part_of_the_growth_bench_runs_at_small_sizes() -> None:
    found = [*pools((1_200, 2_000)), *devices((10, 50)), *sums((4, 8), group=4)]
    assert {each.of for each in found} == {"articles", "devices"}
    assert all(len(each.costs) == 2 and min(cost for _, cost in each.costs) >= 0 for each in found)
    held = next(each for each in found if each.what == "the index, MB")
    (_, less), (_, more) = held.costs
    assert more - less == pytest.approx(800 * 4 * (BASIS_SIZE + 1) / 1e6), "so much for each of the news"


def test_http_requests_of_a_round_grow_with_its_cohort() -> None:
    requests = next(each for each in cohorts((4, 8), length=40) if each.what == "requests")
    assert [size for size, _ in requests.costs] == [4, 8]
    assert 10 <= requests.costs[0][1] / 4 <= 60, "ten messages and answers each, and looks at stages that aren't closed"

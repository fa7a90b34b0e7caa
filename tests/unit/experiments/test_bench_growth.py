"""How costs grow: exponents of known curves, measurements at small sizes, and the figure of a record."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from experiments import records
from experiments.bench import growth
from experiments.bench.growth import GrowthCurve, cohorts, devices, pools, sums, tables
from experiments.bench.headlines import BASIS_SIZE
from experiments.records import Record

SQUARE = GrowthCurve("news", "pairs, s", ((10, 3 * 10.0**2), (100, 3 * 100.0**2), (1_000, 3 * 1_000.0**2)))
SHARE = GrowthCurve("cohort", "a share, ms", ((50, 0.1), (500, 0.1)))
SVG = "{http://www.w3.org/2000/svg}"


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


def test_figure_has_a_panel_per_quantity_and_a_point_per_size() -> None:
    drawn = ElementTree.fromstring(growth.draw(Record.of_now("ownfeed bench growth", tables([SQUARE, SHARE]))))
    panels = drawn.findall(f"{SVG}g")
    assert [len(panel.findall(f"{SVG}circle")) for panel in panels] == [3, 2]
    points = [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in panels[0].findall(f"{SVG}circle")]
    slopes = {round((b[1] - a[1]) / (b[0] - a[0]), 2) for a, b in itertools.pairwise(points)}
    assert len(slopes) == 1, "a power is a line"
    assert "exponent 2" in growth.draw(Record.of_now("x", tables([SQUARE])))


def test_committed_figure_is_drawn_from_the_committed_record() -> None:
    recorded = (records.FOLDER / f"{growth.RECORD}.json").is_file()
    assert growth.PATH.is_file() is recorded, "python -m experiments.documents draws it"
    text = Path("docs/results/timings.md").read_text(encoding="utf-8")
    assert (f"](../images/{growth.PATH.name})" in text) is recorded
    if recorded:
        drawn = growth.draw(records.read(growth.RECORD))
        assert growth.PATH.read_text(encoding="utf-8") == drawn, "python -m experiments.documents draws it again"

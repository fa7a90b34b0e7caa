"""The frontier's file and its drawing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from backend.measurements.frontier import FRONTIER as FORMAT
from backend.measurements.frontier import apart, drawing
from tests.doubles.measured_frontier import FRONTIER


def test_a_frontier_comes_back_from_json_as_it_was_with_what_no_epsilon_bounds() -> None:
    assert FORMAT.validate_json(FORMAT.dump_json(FRONTIER)) == FRONTIER
    assert FRONTIER.row("exact vector", float("inf")).level


def test_only_rows_that_are_to_be_drawn_are() -> None:
    hidden = [replace(row, drawn=row.mode != "code K=16") for row in FRONTIER.rows]
    assert [line.name for line in drawing(hidden).lines] == ["basis_laplace, naive"]
    assert [line.name for line in drawing(FRONTIER.rows).lines] == ["code K=16", "basis_laplace, naive"]


def test_more_gain_is_drawn_higher_and_more_epsilon_further_right() -> None:
    picture = drawing(FRONTIER.rows)
    code = next(line for line in picture.lines if line.name == "code K=16")
    (x1, y1), (x4, y4) = code.points
    assert x4 > x1
    assert y4 < y1
    levels = {level.name: level.y for level in picture.levels}
    assert levels["exact vector"] < y4 < levels["popularity (none)"]


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_names_stand_in_their_lines_order_and_never_over_one_another(heights: list[float]) -> None:
    placed = apart(heights, 14.0)
    order = sorted(range(len(heights)), key=lambda at: heights[at])
    gaps = [placed[after] - placed[before] for before, after in pairwise(order)]
    assert all(gap >= 14.0 - 0.15 for gap in gaps)
    assert abs(sum(placed) - sum(heights)) <= 0.1 * len(heights), "moved no further than room needs"


def test_names_that_have_room_stay_where_they_are() -> None:
    assert apart([90.0, 10.0, 50.0], 14.0) == [90.0, 10.0, 50.0]
    assert apart([50.0, 50.0, 100.0], 14.0) == [43.0, 57.0, 100.0]

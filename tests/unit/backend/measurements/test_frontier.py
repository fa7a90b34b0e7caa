"""The frontier's file and its drawing."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.measurements.frontier import FRONTIER as FORMAT
from backend.measurements.frontier import PUBLISHED, DrawnGain, apart, drawing, measured_gains, published_gains
from backend.measurements.published import PublishedRecord, published
from tests.doubles.measured_frontier import FRONTIER


def test_frontier_survives_json() -> None:
    assert FORMAT.validate_json(FORMAT.dump_json(FRONTIER)) == FRONTIER
    assert FRONTIER.row("exact vector", float("inf")).level


def test_only_rows_marked_for_drawing_are_drawn() -> None:
    hidden = [replace(row, drawn=row.mode != "code K=16") for row in FRONTIER.rows]
    assert [line.name for line in drawing(measured_gains(hidden)).lines] == ["basis_laplace, naive"]
    assert [line.name for line in drawing(measured_gains(FRONTIER.rows)).lines] == ["code K=16", "basis_laplace, naive"]


def test_more_gain_is_drawn_higher_and_more_epsilon_further_right() -> None:
    picture = drawing(measured_gains(FRONTIER.rows))
    code = next(line for line in picture.lines if line.name == "code K=16")
    (x1, y1), (x4, y4) = code.points
    assert x4 > x1
    assert y4 < y1
    levels = {level.name: level.y for level in picture.levels}
    assert levels["exact vector"] < y4 < levels["popularity (none)"]
    assert {label: y for y, label in picture.gain_ticks}["+0"] == levels["popularity (none)"]


def test_published_record_is_drawn_as_written() -> None:
    record = published(PUBLISHED)
    assert record is not None
    gains = published_gains(record)
    written = {(row[0], row[1]): row[7] for row in record.tables[0].rows}
    for each in gains:
        epsilon = "none" if math.isinf(each.epsilon) else f"{each.epsilon:g}"
        assert str(written[each.mode, epsilon]).startswith(f"{each.gain:+.1f} (")
    picture = drawing(gains)
    lines = {line.name: len(line.points) for line in picture.lines}
    assert lines["code K=16"] == 5
    assert "code K=8" not in lines, "one epsilon says nothing of its effect"
    assert {"popularity (none)", "exact vector", "broadcast 16 B"} <= {level.name for level in picture.levels}
    assert min(lines.values()) >= 3


def test_record_without_the_table_is_named_in_the_error() -> None:
    record = PublishedRecord(command="ownfeed bench x", machine="m", measured_on=date(2026, 1, 2), tables=())
    with pytest.raises(ValueError, match=r"'ownfeed bench x'.*@400 against popularity"):
        published_gains(record)
    assert DrawnGain("code", 4.0, 1.0).level is False


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_labels_keep_their_lines_order_without_overlap(heights: list[float]) -> None:
    placed = apart(heights, 14.0)
    order = sorted(range(len(heights)), key=lambda at: heights[at])
    gaps = [placed[after] - placed[before] for before, after in pairwise(order)]
    assert all(gap >= 14.0 - 0.15 for gap in gaps)
    assert abs(sum(placed) - sum(heights)) <= 0.1 * len(heights), "moved no further than room needs"


def test_labels_with_enough_room_stay_in_place() -> None:
    assert apart([90.0, 10.0, 50.0], 14.0) == [90.0, 10.0, 50.0]
    assert apart([50.0, 50.0, 100.0], 14.0) == [43.0, 57.0, 100.0]

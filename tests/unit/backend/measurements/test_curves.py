"""The drawing of gains over releases."""

from __future__ import annotations

import pytest

from backend.measurements.curves import drawing


def test_positive_gain_is_drawn_above_the_zero_line() -> None:
    drawn = drawing("gain", [("0", 0.0, 0.0, 0.0), ("10", 0.02, 0.01, 0.03), ("20", -0.01, -0.02, 0.0)])
    first, up, down = drawn.marks
    assert first.y == drawn.level
    assert up.high < up.y < up.low < drawn.level < down.y
    assert [first.x, down.x] == [drawn.left, drawn.right]
    assert [label for _, label in drawn.y_ticks] == ["-0.02", "-0.01", "0", "+0.01", "+0.02", "+0.03"]


@pytest.mark.parametrize("gain", [0.0000003, 0.0004, 0.0021, 0.67, 0.6701, 3.0, 41.0])
@pytest.mark.parametrize("least", [0.0, -0.3])
def test_tick_labels_differ_and_match_their_lines(gain: float, least: float) -> None:
    drawn = drawing("gain", [("0", 0.0, 0.0, 0.0), ("10", gain, gain * least, gain * 1.01)])
    places, labels = zip(*drawn.y_ticks, strict=True)
    assert 3 <= len(set(labels)) == len(labels) <= 7
    assert max(map(len, labels)) <= 9, "so much room is left of the drawing"
    values = [float(label) for label in labels]
    first, last = drawn.marks
    per_gain = (first.y - last.y) / gain
    assert places == pytest.approx([drawn.level - per_gain * value for value in values], abs=0.3)


def test_single_release_without_spread_can_be_drawn() -> None:
    drawn = drawing("gain", [("0", 0.0, 0.0, 0.0)])
    assert drawn.marks[0].y == drawn.level

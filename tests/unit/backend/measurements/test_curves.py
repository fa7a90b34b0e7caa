"""The drawing of gains over releases."""

from __future__ import annotations

from backend.measurements.curves import drawing


def test_a_gain_lies_higher_in_the_drawing_and_no_gain_on_its_level() -> None:
    drawn = drawing("gain", [("0", 0.0, 0.0, 0.0), ("10", 0.02, 0.01, 0.03), ("20", -0.01, -0.02, 0.0)])
    first, up, down = drawn.marks
    assert first.y == drawn.level
    assert up.high < up.y < up.low < drawn.level < down.y
    assert [first.x, down.x] == [drawn.left, drawn.right]
    assert drawn.y_ticks[0][1] == "-0.020"


def test_one_release_without_any_spread_can_be_drawn() -> None:
    drawn = drawing("gain", [("0", 0.0, 0.0, 0.0)])
    assert drawn.marks[0].y == drawn.level

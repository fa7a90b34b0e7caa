"""How the progress of long steps is reported where no bar can be drawn, as in the logs of a service."""

from __future__ import annotations

import pytest

from backend.server.progress import LINE_EVERY_SEC, TerminalSteps


def test_long_step_reports_its_progress_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Oracle: the lines under a clock that the test moves; none comes sooner than LINE_EVERY_SEC after the last."""
    now = [0.0]
    with TerminalSteps(lambda: now[0]).step("Writing the newspaper") as advance:
        for second in range(4 * int(LINE_EVERY_SEC)):
            now[0] = float(second)
            advance(1_000 * second, 100_000)
    reported = capsys.readouterr().err.splitlines()
    assert reported[0] == "Writing the newspaper ..."
    assert reported[1:] == [f"Writing the newspaper: {each},000 of 100,000" for each in (15, 30, 45)]


def test_progress_of_unknown_length_reports_the_count_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with TerminalSteps(lambda: now[0]).step("Reading") as advance:
        now[0] = LINE_EVERY_SEC
        advance(7, None)
    assert capsys.readouterr().err.splitlines() == ["Reading ...", "Reading: 7"]

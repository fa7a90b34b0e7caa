"""Figures of a load test. Oracle: numbers by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.qa.load.figures import FleetAnswers, answers_table, memory_table, thirds_table


@pytest.fixture
def answers(tmp_path: Path) -> FleetAnswers:
    """Nine seconds of two kinds of requests; one of them gets ten times slower in the last third."""
    kept = {
        "at": [float(second) for second in range(10)] * 2,
        "asked": ["recall"] * 10 + ["rounds"] * 10,
        "ms": [1.0] * 10 + [2.0] * 6 + [20.0] * 4,
        "status": [200, 304, 429, 503, 503, 500, "ConnectionRefusedError", *[200] * 3, *[204] * 10],
    }
    (path := tmp_path / "answers.json").write_text(json.dumps(kept), encoding="utf-8")
    return FleetAnswers.read(path)


def test_retryable_answers_are_counted_separately_from_losses(answers: FleetAnswers) -> None:
    recall, rounds, everything = answers_table(answers, "all", ()).rows
    assert recall == ("recall", 10, 10 / 9, 1.0, 1.0, 1.0, 1, 2, "1 500, 1 ConnectionRefusedError")
    assert (rounds[0], *rounds[6:]) == ("rounds", 0, 0, "0")
    assert everything[:2] == ("all", 20)


def test_slowdown_of_a_request_kind_shows_in_the_table(answers: FleetAnswers) -> None:
    recall, rounds = thirds_table(answers, 0.0, 9.0).rows
    assert recall == ("recall", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert rounds[1:4] == (2.0, 2.0, 20.0)


def test_process_whose_memory_grows_over_two_percent_is_reported_as_growing() -> None:
    """Growth in the first third, during warm-up, doesn't count, nor does a process that started or ended."""
    steady = [(float(second), 100 if second < 300 else 200) for second in range(900)]
    grows = [(float(second), 200 if second < 600 else 205) for second in range(900)]
    came = [(float(second), second) for second in range(700, 900)]
    table, flat = memory_table({"steady": steady, "came": came}, 0.0, 900.0)
    assert flat
    assert [row[-1] for row in table.rows] == [None, 0.0]
    table, flat = memory_table({"steady": steady, "grows": grows}, 0.0, 900.0)
    assert not flat
    assert table.rows[0][-1] == pytest.approx(2.5)

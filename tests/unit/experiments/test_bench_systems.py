"""What `ownfeed bench systems` measures, and that it omits no system that an operator can start."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.federation.systems import COMPOSED
from experiments.bench.systems import TITLE, SystemRuns, beside_recorded, by_hand, systems_table
from experiments.records import Record, Table, machine, write
from ownfeed import app as cli


def test_bench_measures_every_system_that_an_operator_can_open() -> None:
    ordered = {"news_union", "news_union_secure", "news_union_marks", "release_gate", "basis_vote"}
    assert set(COMPOSED) - set(by_hand()) == ordered


def test_row_of_a_system_shows_applied_rounds_and_reasons_of_failures() -> None:
    ran = {
        "good": SystemRuns([2.0, 4.0, 3.0], load=0.5),
        "poor": SystemRuns([1.0] * 8, Counter({"poor: too few": 2}), load=2.0),
    }
    today, here = datetime.now(UTC).date().isoformat(), (version("ownfeed"), machine())
    assert systems_table(ran).rows == [
        ("good", "3 of 3", 3.0, "yes", "-", today, 0.5, *here),
        ("poor", "8 of 10", 1.0, "no", "2 times: poor: too few", today, 2.0, *here),
    ]


def test_record_keeps_the_rows_of_systems_not_measured_again(tmp_path: Path) -> None:
    first, second, third = by_hand()[:3]
    assert (
        beside_recorded(systems_table({second: SystemRuns([1.0])}), tmp_path).rows
        == systems_table({second: SystemRuns([1.0])}).rows
    )
    old = [(third, "1 of 1", 9.0, "yes", "-"), (first, "0 of 1", None, "no", "1 times: too few")]
    kept = Record("ownfeed bench systems", "a machine", date(2026, 1, 2), "0.2.0", 7.5, (Table(TITLE, (), old),))
    write("bench-systems", kept, tmp_path)
    new = systems_table({second: SystemRuns([1.0], load=0.25), first: SystemRuns([2.0], load=0.5)})
    rows = beside_recorded(new, tmp_path).rows
    assert rows == [
        new.rows[1],
        new.rows[0],
        (third, "1 of 1", 9.0, "yes", "-", "2026-01-02", 7.5, "0.2.0", "a machine"),
    ]
    write("bench-systems", Record.of_now("ownfeed bench systems", [beside_recorded(new, tmp_path)]), tmp_path)
    assert beside_recorded(systems_table({}), tmp_path).rows == rows, "a row keeps its own day and load"


@pytest.mark.parametrize("given", [["round", "--system", "nrms"], ["systems", "--system", "nowhere"]])
def test_unknown_system_names_are_refused_before_measuring(given: list[str]) -> None:
    refused = CliRunner().invoke(cli, ["bench", *given])
    assert refused.exit_code == 2
    assert "--system" in refused.output

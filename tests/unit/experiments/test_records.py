"""Records of measurements, and the documents made from them. Oracles: what was written, tables by hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from experiments.documents import rewritten, summary
from experiments.records import Record, Table, machine, read, write

TABLE = Table("Clicks", ("who", "clicks", "share"), [("anna", 1_200, 0.25), ("a|b", None, "+.1")], ("By day.",), (0, 1))
RECORD = Record("ownfeed bench clicks", "a machine, 2 cores", date(2026, 11, 20), "0.2.0", 1.5, (TABLE,))
MARKED = "# Clicks\n\n<!-- table: clicks: Clicks -->\nold\n<!-- end -->\nafter\n"


def reading(name: str) -> Record:
    assert name == "clicks"
    return RECORD


def test_record_survives_writing_and_reading(tmp_path: Path) -> None:
    path = write("clicks", RECORD, tmp_path / "far")
    assert path == tmp_path / "far" / "clicks.json"
    assert read("clicks", tmp_path / "far") == RECORD
    assert [each.name for each in (tmp_path / "far").iterdir()] == ["clicks.json"]


def test_new_record_states_its_machine_and_version() -> None:
    now = Record.of_now("ownfeed bench clicks", [TABLE])
    assert now.machine == machine()
    assert "cores, Python 3." in now.machine
    assert now.version


@pytest.mark.parametrize("content", ["half", "[]", '{"tables": []}', '{"tables": [{"title": "x"}], "command": "y"}'])
def test_invalid_record_is_named_in_the_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "clicks.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"clicks\.json is not a record"):
        read("clicks", tmp_path)


def test_document_gets_the_table_with_notes_and_source() -> None:
    text = rewritten(MARKED, reading)
    assert text.startswith(
        "# Clicks\n\n<!-- table: clicks: Clicks -->\n"
        "| who | clicks | share |\n|---|---|---|\n| anna | 1,200 | 0.25 |\n| a\\|b |  | +.1 |\n"
    )
    assert "`ownfeed bench clicks`, 2026-11-20, a machine, 2 cores; load 1.5; seeds 0, 1; version 0.2.0" in text
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert rewritten(text, reading) == text


def test_document_shows_only_the_named_columns_and_rows() -> None:
    chosen = "<!-- table: clicks: Clicks\ncolumns: clicks | who\nrows: anna & 1,200 -->"
    text = rewritten(MARKED.replace("<!-- table: clicks: Clicks -->", chosen), reading)
    assert "| clicks | who |\n|---|---|\n| 1,200 | anna |\n\n" in text
    assert rewritten(text, reading) == text
    with pytest.raises(KeyError, match="'bert' is not a row of 'Clicks'"):
        rewritten(text.replace("anna & 1,200 -->", "bert -->"), reading)
    with pytest.raises(KeyError, match="days"):
        rewritten(text.replace("columns: clicks", "columns: days"), reading)


def test_notes_shared_by_tables_of_one_record_appear_once() -> None:
    text = rewritten(MARKED + MARKED, reading)
    assert text.count("<sub>By day.</sub>") == text.count("load 1.5") == 1
    assert text.index("By day.") < text.index("load 1.5")


def test_missing_record_is_replaced_by_the_command_that_measures_it(tmp_path: Path) -> None:
    def missing(name: str) -> Record:
        return read(name, tmp_path)

    text = rewritten(MARKED.replace("table: clicks", "table: bench-clicks"), missing)
    assert "\nNot measured yet: `ownfeed bench clicks --record`.\n<!-- end -->\nafter\n" in text
    assert rewritten(text, missing) == text
    assert "`ownfeed evaluate clicks --record`" in rewritten(MARKED, missing)


ROWS = """
[[row]]
what = "clicks of anna"
figure = "{clicks}, {share:.1f} of all; at most {most:.0f}"
record = "clicks"
[row.cells]
clicks = { table = "Clicks", row = ["anna"], column = "clicks" }
share = { table = "Clicks", row = ["anna", 1200], column = "share" }
most = { table = "Clicks", row = ["anna"], column = "clicks", of = "greatest" }
"""


def test_summary_inserts_record_cells_with_command_day_and_load(tmp_path: Path) -> None:
    file = tmp_path / "summary.toml"
    file.write_text(ROWS, encoding="utf-8")
    lines = summary(reading, file).splitlines()
    assert lines[0] == "| what | figure | command | measured |"
    assert lines[2] == (
        "| clicks of anna | 1200, 0.2 of all; at most 1200 | `ownfeed bench clicks` | 2026-11-20, load 1.5 |"
    )
    assert lines[-1] == "<sub>a machine, 2 cores, version 0.2.0</sub>"
    unmeasured = summary(lambda name: read(name, tmp_path), file).splitlines()
    assert unmeasured[2] == "| clicks of anna | not measured yet | `ownfeed evaluate clicks` |  |"
    file.write_text(ROWS.replace('row = ["anna"]', 'row = ["bert"]'), encoding="utf-8")
    with pytest.raises(KeyError, match="0 rows of 'Clicks' begin with"):
        summary(reading, file)


def test_missing_table_and_unclosed_mark_are_reported() -> None:
    with pytest.raises(KeyError, match="'Shows' is not one of"):
        rewritten(MARKED.replace(": Clicks -->", ": Shows -->"), reading)
    with pytest.raises(ValueError, match="1 tables begin, 0 end"):
        rewritten(MARKED.replace("<!-- end -->", ""), reading)

"""MIND's files as readers. Oracle: rows written by hand after MIND's column list (Wu et al. 2020)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from device_app.fleet.replay import Impression, ReplayRefused, real_readers

ROWS = (
    "1\tU2\t11/13/2019 8:36:57 AM\tN1 N2\tN3-1 N4-0",
    "2\tU1\t11/15/2019 11:59:59 PM\tN5\tN6-0 N7-0",
    "3\tU2\t11/12/2019 12:00:00 AM\tN1\tN8-0 N9-1",
    "4\tU3\t11/12/2019 1:00:00 PM\t\tN8-1",
)


def mind(folder: Path, *rows: str) -> Path:
    (folder / "behaviors.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_mind_rows_of_one_user_are_merged_with_the_longest_history(tmp_path: Path) -> None:
    readers = real_readers(mind(tmp_path, *ROWS), 10)
    assert [reader.user for reader in readers] == ["U2", "U3", "U1"], "those who clicked come first"
    first = readers[0]
    assert first.history == ("N1", "N2")
    assert first.first_at == datetime(2019, 11, 12, tzinfo=UTC)
    assert first.impressions == (
        Impression("1", datetime(2019, 11, 13, 8, 36, 57, tzinfo=UTC), ("N3", "N4"), ("N3",)),
        Impression("3", datetime(2019, 11, 12, tzinfo=UTC), ("N8", "N9"), ("N9",)),
    )
    assert readers[1].history == ()
    assert readers[2].impressions[0].at == datetime(2019, 11, 15, 23, 59, 59, tzinfo=UTC)


def test_number_of_replayed_readers_stays_within_the_request(tmp_path: Path) -> None:
    assert [reader.user for reader in real_readers(mind(tmp_path, *ROWS), 2)] == ["U2", "U3"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("5\tU4\t11/12/2019 1:00:00 PM\tN1", "behaviors.tsv, line 2: 4 columns; 5 are needed"),
        (ROWS[0] + "\tmore", "behaviors.tsv, line 2: 6 columns; 5 are needed"),
        (ROWS[0].replace("11/13/2019", "2019-11-13"), "line 2: '2019-11-13 8:36:57 AM' is not a time in MIND's format"),
        ("", "line 2: 0 columns"),
    ],
)
def test_error_for_a_malformed_mind_row_names_its_line(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(ReplayRefused, match=words):
        real_readers(mind(tmp_path, ROWS[0], row, ROWS[1]), 10)


def test_folder_without_the_file_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(ReplayRefused, match=r"behaviors\.tsv is not there; --replay takes a folder with"):
        real_readers(tmp_path, 10)

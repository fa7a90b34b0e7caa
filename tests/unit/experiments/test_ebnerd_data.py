"""EB-NeRD as columns. Oracles: files written by hand, and the counts of the data's own README."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from experiments.datasets.ebnerd import FOLDER, load_ebnerd
from experiments.datasets.mind import MalformedRow
from experiments.records import DataMissing

FILES = {
    "train/behaviors.tsv": (
        "1\t7\t2023-05-18T07:00:03\t14\t\t2\t9\t101 102 103\t102\n"
        "2\t8\t2023-05-18T07:00:04\t14\t50\t1\t9\t103 101\t101 103\n"
    ),
    "train/history.tsv": "7\t104 101\t2023-05-01T00:00:00 2023-05-02T00:00:00\t1 2\t3 4\n",
    "validation/behaviors.tsv": "3\t9\t2023-05-25T07:00:00\t14\t\t2\t9\t101 105\t105\n",
    "validation/history.tsv": "9\t103\t2023-05-20T00:00:00\t1\t3\n",
}


def write_files(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_columns_of_the_data_match_its_files(tmp_path: Path) -> None:
    found = load_ebnerd(write_files(tmp_path))
    assert found.users == ("7", "8", "9")
    assert found.articles == ("101", "102", "103", "104", "105")
    assert [row.tolist() for row in found.train.candidates] == [[0, 1, 2], [2, 0]]
    assert found.train.clicked.tolist() == [0, 1, 0, 1, 1]
    assert found.train.times_sec.tolist() == [1684393203, 1684393204]
    assert found.train.history_articles.tolist() == [3, 0]
    assert found.validation.users.tolist() == [2]
    assert found.validation.history_users.tolist() == [2]
    assert found.validation.history_times_sec.tolist() == [1684540800]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("train/behaviors.tsv", "8\t2023", "2023", "train/behaviors.tsv, line 2: 8 columns, 9 expected"),
        ("train/behaviors.tsv", "\t8\t", "\tx\t", "line 2: user 'x': expected a number"),
        (
            "train/behaviors.tsv",
            "2023-05-18T07:00:04",
            "noon",
            "line 2: time 'noon': expected a time such as 2023-05-18T07:00:03",
        ),
        ("train/behaviors.tsv", "103 101\t", "\t", "line 2: articles in view: expected at least one"),
        ("train/behaviors.tsv", "103 101\t", "101 101\t", "line 2: articles in view: an article is named twice"),
        ("train/behaviors.tsv", "\t102\n", "\t999\n", "line 1: clicked article 999 is not among the articles in view"),
        ("train/behaviors.tsv", "101 102 103", "101 102 x", "line 1: article in view 'x': expected a number"),
        ("train/history.tsv", " 2023-05-02T00:00:00", "", "train/history.tsv, line 1: times: 1 for 2 articles"),
        ("validation/history.tsv", FILES["validation/history.tsv"], "", "line 1: the file is empty"),
    ],
)
def test_error_for_a_malformed_row_names_file_line_and_field(
    tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    broken = FILES[name].replace(old, new, 1)
    assert broken != FILES[name]
    with pytest.raises(MalformedRow) as refused:
        load_ebnerd(write_files(tmp_path, {**FILES, name: broken}))
    assert message in str(refused.value)


def test_missing_file_is_named_in_the_error_with_the_remedy(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "validation" / "history.tsv").unlink()
    with pytest.raises(DataMissing, match=r"history\.tsv does not exist; name the folder with --data"):
        load_ebnerd(tmp_path)


def test_demo_bundle_has_the_rows_of_its_readme(shared_data: Path) -> None:
    found = load_ebnerd(shared_data / FOLDER)
    assert (len(found.train), len(found.validation)) == (24_724, 20_037)
    assert len(set(found.train.history_users.tolist())) == 1_590
    assert len(set(found.validation.history_users.tolist())) == 1_262
    assert found.train.times_sec.max() < found.validation.times_sec.min()

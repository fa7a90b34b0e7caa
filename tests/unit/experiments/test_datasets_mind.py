"""MIND's files as columns. Oracles: files written by hand, and the counts the data's own README states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.datasets.mind import MalformedRow, RaggedArray, load_behaviors, load_mind, load_news
from experiments.datasets.samples import left_out, training_samples
from experiments.records import DataMissing

NEWS = 'N1\tsports\tgolf\tA "quoted" title\tAbstract\turl\t[]\t[]\nN2\tnews\tworld\tSecond\t\turl\t[]\t[]\n'
BEHAVIORS = "1\tU1\t11/15/2019 1:30:05 PM\tN1 N2 N1\tN2-1 N1-0\n2\tU2\t11/15/2019 12:00:00 AM\t\t\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "dev"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "news.tsv").write_text(NEWS)
        (tmp_path / split / "behaviors.tsv").write_text(BEHAVIORS)
    return tmp_path


def test_columns_of_the_data_match_its_files(folder: Path) -> None:
    mind = load_mind(folder)
    assert mind.news.titles == ('A "quoted" title', "Second")
    assert mind.train.users == ("U1", "U2")
    assert mind.train.histories[0].tolist() == [0, 1, 0]
    assert mind.train.candidates[0].tolist() == [1, 0]
    assert mind.train.clicked.tolist() == [1, 0]
    assert mind.train.histories.lengths.tolist() == [3, 0]
    assert mind.train.times_sec[0] - mind.train.times_sec[1] == 13.5 * 3600 + 5


def test_articles_found_only_in_dev_come_after_those_of_train(folder: Path) -> None:
    with (folder / "dev" / "news.tsv").open("a") as file:
        file.write("N3\tnews\tworld\tThird\t\turl\t[]\t[]\n")
    assert load_mind(folder).news.ids == ("N1", "N2", "N3")


def test_missing_file_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"news\.tsv does not exist"):
        load_mind(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("N3\tnews\tworld", "line 3: 3 columns, at least 5 expected"),
        ("\tnews\tworld\tTitle\t", "line 3: the news id is empty"),
        ("N1\tnews\tworld\tTitle\t", "line 3: news N1 already appears in line 1"),
        ("N3\tnews\tworld\t \t", "line 3: news N3 has no title"),
    ],
)
def test_error_for_a_bad_news_line_names_its_file(folder: Path, line: str, message: str) -> None:
    path = folder / "train" / "news.tsv"
    path.write_text(NEWS + line + "\n")
    with pytest.raises(MalformedRow, match=f"train/news.tsv, {message}"):
        load_news(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3\tU1\t11/15/2019 1:30:05 PM\tN1", "4 columns, 5 expected"),
        ("3\tU1\tyesterday\tN1\tN2-1", "time 'yesterday'"),
        ("3\tU1\t11/15/2019 1:30:05 PM\tN9\tN2-1", "history N9 is not in the catalogue"),
        ("3\tU1\t11/15/2019 1:30:05 PM\tN1\tN9-1", "candidate N9 is not in the catalogue"),
        ("3\tU1\t11/15/2019 1:30:05 PM\tN1\tN2", "expected a label of 0 or 1"),
        ("3\tU1\t11/15/2019 1:30:05 PM\tN1\tN2-2", "expected a label of 0 or 1"),
    ],
)
def test_error_for_a_bad_behaviour_line_names_its_file(folder: Path, line: str, message: str) -> None:
    path = folder / "dev" / "behaviors.tsv"
    path.write_text(BEHAVIORS + line + "\n")
    with pytest.raises(MalformedRow, match=r"dev/behaviors\.tsv, line 3: .*" + message):
        load_behaviors(path, load_news(folder / "train" / "news.tsv"))


def test_ragged_rows_pad_on_the_left_and_keep_the_newest() -> None:
    rows = RaggedArray.of([[1, 2, 3], [], [4]])
    assert rows.last(2, padding=9).tolist() == [[2, 3], [9, 9], [9, 4]]
    assert [row.tolist() for row in rows] == [[1, 2, 3], [], [4]]
    assert rows.owners.tolist() == [0, 0, 0, 2]
    assert RaggedArray.of([[], []]).last(2, padding=9).tolist() == [[9, 9], [9, 9]]
    with pytest.raises(ValueError, match="offsets must rise"):
        RaggedArray(np.arange(3), np.array([0, 2]))


def test_a_third_of_a_history_but_at_most_five_clicks_is_left_out() -> None:
    assert [left_out(length) for length in (0, 5, 6, 8, 9, 15, 50)] == [0, 0, 2, 2, 3, 5, 5]


@pytest.mark.data
def test_subset_gives_the_studys_training_samples(shared_data: Path) -> None:
    mind = load_mind(shared_data / "mind-subset")
    assert (len(mind.news), len(mind.train), len(mind.dev), mind.dev.clicked.sum()) == (12_312, 5_000, 800, 938)
    samples = training_samples(mind.train, len(mind.news))
    assert (len(samples), samples.readers) == (16_537, 3_805)
    assert (samples.shown.lengths > 0).sum() == 1_573

"""Training samples from impressions and histories, on readers written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from experiments.datasets.mind import Impressions, RaggedArray
from experiments.datasets.samples import TrainingSamples, training_samples
from models.shapes import CLICKS

NEWS = 20
Row = tuple[str, Sequence[int], Sequence[tuple[int, int]]]
TOM: Row = ("tom", [3], [(5, 1), (6, 0), (7, 0), (8, 1)])
ANN: Row = ("ann", [0, 1, 2, 3, 4, 5, 6], [])
EVE: Row = ("eve", [11, 12, 13], [])
KIM: Row = ("kim", [], [(9, 1), (10, 0)])


def impressions(*rows: Row) -> Impressions:
    return Impressions(
        ids=tuple(str(place) for place in range(len(rows))),
        users=tuple(user for user, _, _ in rows),
        times_sec=np.zeros(len(rows), np.int64),
        histories=RaggedArray.of([list(history) for _, history, _ in rows]),
        candidates=RaggedArray.of([[news for news, _ in shown] for _, _, shown in rows]),
        clicked=np.array([label for _, _, shown in rows for _, label in shown], dtype=np.int64),
    )


@pytest.fixture
def samples() -> TrainingSamples:
    return training_samples(impressions(TOM, ANN, EVE, KIM), NEWS)


def real(samples: TrainingSamples, row: int) -> list[int]:
    return [click for click in samples.clicks[row].tolist() if click != NEWS]


def test_click_becomes_a_training_sample_with_the_history_before_it(samples: TrainingSamples) -> None:
    assert samples.positive[samples.of_reader(0)].tolist() == [5, 8]
    assert real(samples, 0) == [3]
    assert samples.clicks.shape[1] == CLICKS


def test_samples_from_the_end_of_a_history_contain_no_later_clicks(samples: TrainingSamples) -> None:
    ann = samples.of_reader(1)
    assert samples.positive[ann].tolist() == [5, 6]
    assert [real(samples, int(row)) for row in ann] == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]]


def test_readers_with_a_short_history_give_no_sample(samples: TrainingSamples) -> None:
    assert samples.readers == 2


def test_negatives_of_a_click_are_the_skipped_stories_of_its_list(samples: TrainingSamples) -> None:
    drawn = samples.candidates(np.zeros(50, np.int64), 4, np.random.default_rng(0))
    assert set(drawn[:, 0]) == {5}
    assert set(drawn[:, 1:].ravel()) == {6, 7}


def test_read_articles_are_never_negatives() -> None:
    found = training_samples(impressions(TOM, ANN, EVE), NEWS)
    rows = np.repeat(found.of_reader(1), 50)
    drawn = found.candidates(rows, 4, np.random.default_rng(0))
    assert set(drawn[:, 1:].ravel()) == {11, 12, 13}


def test_negatives_of_histories_follow_the_popularity_of_articles() -> None:
    readers: list[Row] = [(f"r{number}", [11, 12] if number % 3 else [12], []) for number in range(30)]
    found = training_samples(impressions(ANN, *readers), NEWS)
    drawn = found.candidates(np.repeat(found.of_reader(0), 2_000), 4, np.random.default_rng(0))[:, 1:]
    share = (drawn == 11).mean()  # 20 clicks of 50; 16,000 draws: standard error .004
    assert abs(share - 0.4) < 0.02


def test_same_generator_draws_the_same_negatives(samples: TrainingSamples) -> None:
    rows = np.zeros(20, np.int64)
    first, again = (samples.candidates(rows, 4, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (samples.candidates(rows, 4, np.random.default_rng(4)) != first).any()


def test_data_without_a_usable_click_is_refused() -> None:
    with pytest.raises(ValueError, match="no click has an earlier click as its history"):
        training_samples(impressions(KIM), NEWS)
    with pytest.raises(ValueError, match="reader ann has read every article"):
        training_samples(impressions(ANN), NEWS)

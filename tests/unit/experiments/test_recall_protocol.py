"""The warm protocol and its measures compared with worked examples and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.recall.measure import PossibleLists, best, changed, final_page, held_out, paired, recall, splits


def rows(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_last_clicks_are_held_out_keeping_at_least_five() -> None:
    found = held_out([np.arange(6), np.arange(7), np.arange(8), np.arange(60)])
    assert [len(history) for history in found.histories] == [5, 5, 5, 50]
    assert [len(targets) for targets in found.targets] == [1, 2, 3, 3]
    np.testing.assert_array_equal(found.histories[3], np.arange(7, 57))
    np.testing.assert_array_equal(found.targets[3], [57, 58, 59])


def test_repeated_clicks_are_not_targets_and_readers_without_targets_dropped() -> None:
    found = held_out([rows(1, 2, 3, 4, 5, 9, 3, 9), rows(1, 2, 3, 4, 5, 5)])
    assert len(found) == 1
    np.testing.assert_array_equal(found.targets[0], [9])


def test_parts_are_disjoint_and_validation_comes_from_training_readers() -> None:
    readers = [np.full(6, 10) + np.arange(6) + 10 * place for place in range(100)] + [np.arange(5)]
    validation, test = splits(readers, 1_200)
    tested = {int(history[0]) for history in test.measured.histories}
    trained = {int(clicks[0]) for clicks in test.train}
    validated = {int(history[0]) for history in validation.measured.histories}
    inner = {int(clicks[0]) for clicks in validation.train}
    assert (len(tested), len(trained), len(validated), len(inner)) == (20, 80, 16, 64)
    assert not tested & trained
    assert validated | inner == trained
    assert not validated & inner
    again, _ = splits(readers, 1_200)
    np.testing.assert_array_equal(again.measured.histories[0], validation.measured.histories[0])


def test_popularity_counts_the_last_three_clicks_of_training_readers_only() -> None:
    _, test = splits([np.arange(6)] * 10, 6)
    np.testing.assert_array_equal(test.recent_clicks(), [0, 0, 0, 8, 8, 8])
    np.testing.assert_array_equal(test.all_clicks(), [8] * 6)


def test_recall_is_the_expectation_over_the_possible_lists() -> None:
    answers = PossibleLists(np.array([[0, 1, 2], [3, 4, 5]]), np.array([[0, 1]]), np.array([[0.75, 0.25]]))
    found = recall(answers, [rows(1, 5)], 6, (1, 2, 3))
    np.testing.assert_allclose(found, [[0.0, 0.75 * 0.5, 0.75 * 0.5 + 0.25 * 0.5]])


def test_recall_of_a_random_choice_of_two_lists_is_the_mean_of_their_recalls() -> None:
    draw = np.random.default_rng(1)
    one, other = (PossibleLists.own(np.stack([draw.permutation(20)[:6] for _ in range(4)])) for _ in range(2))
    targets = [draw.permutation(20)[:2] for _ in range(4)]
    both = recall(PossibleLists.either([one, other]), targets, 20, (3, 6))
    np.testing.assert_allclose(both, (recall(one, targets, 20, (3, 6)) + recall(other, targets, 20, (3, 6))) / 2)


def test_best_rows_match_a_stable_sort_with_ties() -> None:
    scores = np.random.default_rng(2).integers(0, 5, size=(30, 40)).astype(float)
    np.testing.assert_array_equal(best(scores, 12), np.argsort(-scores, axis=1, kind="stable")[:, :12])


def test_paired_interval_is_centred_on_the_mean_and_as_wide_as_its_standard_error_implies() -> None:
    draw = np.random.default_rng(3)
    found = draw.random((2_000, 2))
    [first, second] = paired(found, found - np.array([0.1, 0.0]) + 0.02 * draw.standard_normal((2_000, 2)))
    assert first.low < first.mean < first.high
    assert first.mean == pytest.approx(10, abs=0.2)
    assert second.low < 0 < second.high or abs(second.mean) < 0.2
    assert first.high - first.low == pytest.approx(2 * 1.96 * 2 / np.sqrt(2_000), rel=0.1)


def test_final_page_is_the_devices_own_order_of_each_list() -> None:
    lists = PossibleLists(np.array([[0, 1, 2, 3], [4, 5, 6, 7]]), np.array([[0, 1], [1, 0]]), np.full((2, 2), 0.5))
    ranking = np.array([[1, 9, 8, 0, 3, 7, 5, 6], [8, 7, 6, 5, 4, 3, 2, 1]], dtype=float)
    pages = final_page(lists, ranking, 2)
    np.testing.assert_array_equal(pages.lists[pages.choice[0]], [[1, 2], [5, 7]])
    np.testing.assert_array_equal(pages.lists[pages.choice[1]], [[4, 5], [0, 1]])
    popular = final_page(PossibleLists.common(np.array([0, 1, 2, 3]), 2), ranking, 2)
    assert changed(popular, popular) == 0.0
    assert changed(pages, popular) == 0.5  # of both readers' two lists one shares nothing with it, one everything

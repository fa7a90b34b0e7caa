"""The ranker against the softmax-weighted cosine written in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.ranking.history import left_padded
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession
from tests.doubles.graphs import cosine_score_graph

DIM, BETA = 6, 8.0


@pytest.fixture
def ranker() -> Ranker:
    return Ranker(GraphSession(cosine_score_graph(DIM), {"beta": np.array(BETA, np.float32)}), name="ranker.cosine")


def _oracle(clicks: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    clicks = clicks / np.linalg.norm(clicks, axis=1, keepdims=True)
    cosines = candidates / np.linalg.norm(candidates, axis=1, keepdims=True) @ clicks.T
    sharp = np.exp(BETA * cosines)
    return (sharp / sharp.sum(axis=1, keepdims=True) * cosines).sum(axis=1)


@pytest.mark.parametrize("clicks", [1, 3, 50])
def test_scores_are_the_softmax_weighted_cosine(ranker: Ranker, clicks: int) -> None:
    draw = np.random.default_rng(clicks)
    history, candidates = draw.normal(size=(clicks, DIM)), draw.normal(size=(40, DIM))
    found = ranker.score(history.astype(np.float32), candidates.astype(np.float32))
    np.testing.assert_allclose(found, _oracle(history, candidates), atol=1e-5)


def test_only_the_newest_fifty_clicks_count(ranker: Ranker) -> None:
    draw = np.random.default_rng(0)
    history, candidates = draw.normal(size=(70, DIM)), draw.normal(size=(5, DIM))
    found = ranker.score(history.astype(np.float32), candidates.astype(np.float32))
    np.testing.assert_allclose(found, _oracle(history[20:], candidates), atol=1e-5)


def test_without_clicks_or_candidates_scores_are_zeros(ranker: Ranker) -> None:
    none = np.zeros((0, DIM), np.float32)
    assert ranker.score(none, np.ones((3, DIM), np.float32)).tolist() == [0, 0, 0]
    assert ranker.score(np.ones((3, DIM), np.float32), none).tolist() == []


def test_clicks_are_padded_on_the_left_with_the_newest_last() -> None:
    padded, mask = left_padded(np.array([[1.0], [2.0]], np.float32))
    assert padded[0, -2:, 0].tolist() == [1, 2]
    assert padded[0, :48].sum() == 0
    assert mask[0].tolist() == [0.0] * 48 + [1.0, 1.0]

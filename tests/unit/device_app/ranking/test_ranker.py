"""The ranker compared with the softmax-weighted cosine in numpy."""

from __future__ import annotations

import time

import numpy as np
import pytest

from device_app.errors import GraphMismatch
from device_app.ranking.padding import left_padded
from device_app.ranking.ranker import FeatureContext, Ranker
from device_app.ranking.session import GraphSession
from tests.doubles.graphs import cosine_score_graph, feature_score_graph

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


def test_ranker_without_clicks_scores_zeros_and_without_candidates_nothing(ranker: Ranker) -> None:
    none = np.zeros((0, DIM), np.float32)
    assert ranker.score(none, np.ones((3, DIM), np.float32)).tolist() == [0, 0, 0]
    assert ranker.score(np.ones((3, DIM), np.float32), none).tolist() == []


def test_clicks_are_padded_on_the_left_with_the_newest_last() -> None:
    padded, mask = left_padded(np.array([[1.0], [2.0]], np.float32))
    assert padded[0, -2:, 0].tolist() == [1, 2]
    assert padded[0, :48].sum() == 0
    assert mask[0].tolist() == [0.0] * 48 + [1.0, 1.0]


NAMES = ("recency", "section_affinity")
WEIGHTS = np.array([0.5, 0.25], np.float32)


def feature_context(count: int, *, clicked: list[int]) -> FeatureContext:
    """Return `count` candidates of sections 0, 1, 2, ... of increasing age, for a reader of the clicked sections."""
    return FeatureContext(
        sections=np.arange(count, dtype=np.int64),
        topics=np.zeros(count, dtype=np.int64),
        clicked_sections=np.array(clicked, dtype=np.int64),
        clicked_topics=np.zeros(len(clicked), dtype=np.int64),
        recency=np.linspace(1, 0, count),
        popularity=np.zeros(count),
    )


def feature_ranker() -> Ranker:
    weights = {"beta": np.array(BETA, np.float32), "feature_weights": WEIGHTS}
    return Ranker(GraphSession(feature_score_graph(DIM, 2), weights), name="ranker.features", features=NAMES)


def test_ranker_adds_weighted_features_in_their_named_order() -> None:
    draw = np.random.default_rng(4)
    history, candidates = draw.normal(size=(4, DIM)), draw.normal(size=(3, DIM))
    found = feature_ranker().score(
        history.astype(np.float32), candidates.astype(np.float32), feature_context(3, clicked=[1, 1, 1, 9])
    )
    known = 0.5 * np.array([1, 0.5, 0]) + 0.25 * np.array([0, 0.75, 0])
    np.testing.assert_allclose(found, _oracle(history, candidates) + known, atol=1e-5)


def test_ranker_without_clicks_scores_by_its_features() -> None:
    found = feature_ranker().score(
        np.zeros((0, DIM), np.float32), np.ones((3, DIM), np.float32), feature_context(3, clicked=[])
    )
    np.testing.assert_allclose(found, [0.5, 0.25, 0], atol=1e-6)


def test_ranker_with_features_needs_their_context() -> None:
    with pytest.raises(ValueError, match=r"context: ranker\.features uses recency, section_affinity"):
        feature_ranker().score(np.ones((1, DIM), np.float32), np.ones((1, DIM), np.float32))


def test_mismatched_features_are_named_in_the_error() -> None:
    weights = {"beta": np.array(BETA, np.float32), "feature_weights": WEIGHTS}
    with_input = GraphSession(feature_score_graph(DIM, 2), weights)
    with pytest.raises(GraphMismatch, match="feature weather of r: this program does not compute it"):
        Ranker(with_input, name="r", features=("recency", "weather"))
    with pytest.raises(GraphMismatch, match="input features of r: the graph declares it; declared features: none"):
        Ranker(with_input, name="r")
    with pytest.raises(GraphMismatch, match="the graph does not declare it; declared features: recency"):
        Ranker(GraphSession(cosine_score_graph(DIM), weights), name="r", features=("recency",))


@pytest.mark.parametrize("bad", ["clicks", "candidates"])
def test_ranker_refuses_vectors_with_nan(ranker: Ranker, bad: str) -> None:
    given = {"clicks": np.ones((2, DIM), np.float32), "candidates": np.ones((3, DIM), np.float32)}
    given[bad][0, 0] = np.nan
    with pytest.raises(GraphMismatch, match=r"scores of ranker\.cosine: not finite"):
        ranker.score(given["clicks"], given["candidates"])


def test_ranking_400_candidates_with_features_takes_less_than_2_ms_of_cpu() -> None:
    draw = np.random.default_rng(0)
    weights = {"beta": np.array(BETA, np.float32), "feature_weights": WEIGHTS}
    ranker = Ranker(GraphSession(feature_score_graph(256, 2), weights), name="r", features=NAMES)
    clicks, candidates = (draw.normal(size=(rows, 256)).astype(np.float32) for rows in (50, 400))
    context_features, taken = feature_context(400, clicked=list(range(50))), []
    for _ in range(30):
        started = time.process_time()
        ranker.score(clicks, candidates, context_features)
        taken.append(time.process_time() - started)
    assert min(taken) < 0.002

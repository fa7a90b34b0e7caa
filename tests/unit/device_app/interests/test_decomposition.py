"""Decomposition through hand-made graphs; the oracle is the same algebra in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.ranking.session import GraphSession
from device_app.reading.click_clusters import counts, quotas
from device_app.reading.decomposition import RecallModel
from protocol.releases import RecallProtocol
from tests.doubles.graphs import context_graph, decompose_graph

DIM, BASIS = 8, 6
PROTOCOL = RecallProtocol(basis_size=BASIS, channels_limit=5, cluster_distance=0.5, score_clip=0.2, score_noise=1.2)


@pytest.fixture
def keys() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(BASIS, DIM)).astype(np.float32)


@pytest.fixture
def model(keys: np.ndarray) -> RecallModel:
    return RecallModel(
        GraphSession(context_graph(DIM), {}),
        GraphSession(decompose_graph(DIM, BASIS), {"basis_keys": keys}),
        PROTOCOL,
    )


def test_scores_are_inner_products_of_channel_means_with_the_keys(model: RecallModel, keys: np.ndarray) -> None:
    clicks = np.array([[1, 0, 0, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0, 0, 0], [1.2, 0, 0, 0, 0, 0, 0, 0]], np.float32)
    contexts = model.contexts(clicks)
    np.testing.assert_array_equal(contexts, clicks)
    labels = model.clusters(contexts)
    assert labels.tolist() == [0, 1, 0]
    interests = model.decompose(contexts, labels)
    wanted = np.stack([clicks[[0, 2]].mean(axis=0), clicks[1]]) @ keys.T
    np.testing.assert_allclose(interests.scores, wanted, rtol=1e-5)
    assert interests.counts == (2, 1)


def test_only_the_newest_fifty_clicks_count(model: RecallModel) -> None:
    clicks = np.arange(60 * DIM, dtype=np.float32).reshape(60, DIM)
    np.testing.assert_array_equal(model.contexts(clicks), clicks[10:])
    many = model.decompose(model.contexts(clicks), np.zeros(50, dtype=np.int64))
    assert many.counts == (50,)


def test_decomposing_the_interests_of_a_reader_without_clicks_raises_an_error(model: RecallModel) -> None:
    contexts = model.contexts(np.zeros((0, DIM), dtype=np.float32))
    assert contexts.shape == (0, DIM)
    with pytest.raises(ValueError, match="labels"):
        model.decompose(contexts, model.clusters(contexts))


def test_quotas_are_shares_of_clicks_and_sum_to_one() -> None:
    labels = np.array([0, 0, 1, 0])
    assert counts(labels) == (3, 1)
    assert quotas(labels, 5).tolist() == [0.75, 0.25, 0, 0, 0]
    assert counts(labels[:0]) == ()
    assert quotas(labels[:0], 5).sum() == 0

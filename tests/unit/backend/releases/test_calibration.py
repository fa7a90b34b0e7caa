from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from backend.releases.codebooks import MEAN_CHANNELS, calibrate, pseudo_readers, topic_centroids
from backend.releases.errors import ReleaseNotPublished


def planted_vectors(
    rng: np.random.Generator, *, topics: int = 30, each: int = 40, spread: float = 0.6
) -> NDArray[np.float32]:
    centres = rng.normal(size=(topics, 64))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = np.repeat(centres, each, axis=0) + rng.normal(size=(topics * each, 64)) * spread / 8
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def same(clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    return clicks


def test_calibrated_distance_gives_three_to_four_channels_as_in_scipy() -> None:
    vectors = planted_vectors(np.random.default_rng(1))
    _, topics = topic_centroids(vectors, basis_size=30, seed=7)
    readers = pseudo_readers(vectors, topics, np.random.default_rng(2), readers=120)
    found = calibrate(readers, same, channels_limit=5, seed=2)

    counts = [
        min(5, fcluster(linkage(reader, "average"), t=found.cluster_distance, criterion="distance").max())
        for reader in readers
    ]
    assert found.mean_channels == pytest.approx(np.mean(counts))
    assert 3.0 <= found.mean_channels <= 4.0
    assert found.mean_channels == pytest.approx(MEAN_CHANNELS, abs=0.15)
    assert found.channel_counts == tuple(np.bincount(counts, minlength=6)[1:])


def test_pseudo_readers_have_ten_to_fifty_clicks_over_two_to_five_topics() -> None:
    vectors = planted_vectors(np.random.default_rng(1), spread=0.0)
    readers = pseudo_readers(vectors, np.repeat(np.arange(30), 40), np.random.default_rng(2), readers=300)

    sizes = [len(reader) for reader in readers]
    assert (min(sizes), max(sizes)) == (10, 50)
    distinct = [len(np.unique(reader.round(4), axis=0)) for reader in readers]
    assert max(distinct) == 5
    assert np.mean(distinct) == pytest.approx(3.5, abs=0.3), "2 to 5 topics, few of them without a click"


def test_same_seed_gives_the_same_basis() -> None:
    vectors = planted_vectors(np.random.default_rng(1))
    first, topics = topic_centroids(vectors, basis_size=30, seed=7)
    second, again = topic_centroids(vectors, basis_size=30, seed=7)

    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(topics, again)
    assert not np.array_equal(first, topic_centroids(vectors, basis_size=30, seed=8)[0])
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0, atol=1e-5)


def test_pool_smaller_than_the_basis_is_refused() -> None:
    with pytest.raises(ReleaseNotPublished, match="29 articles"):
        topic_centroids(planted_vectors(np.random.default_rng(1), topics=29, each=1), basis_size=30, seed=7)


def test_calibration_needs_readers_with_different_clicks() -> None:
    with pytest.raises(ValueError, match="same context vector"):
        calibrate([np.ones((5, 4), np.float32)], same, channels_limit=5, seed=0)
    with pytest.raises(ValueError, match="at least one"):
        calibrate([], same, channels_limit=5, seed=0)


def test_given_cluster_distance_is_kept_and_its_mean_channels_measured() -> None:
    vectors = planted_vectors(np.random.default_rng(1))
    _, topics = topic_centroids(vectors, basis_size=30, seed=7)
    readers = pseudo_readers(vectors, topics, np.random.default_rng(2), readers=40)
    found = calibrate(readers, same, channels_limit=5, seed=2, distance=0.4)
    counts = [min(5, fcluster(linkage(reader, "average"), t=0.4, criterion="distance").max()) for reader in readers]
    assert found.cluster_distance == 0.4
    assert found.mean_channels == pytest.approx(np.mean(counts))

"""Lists of prototypes and their mixtures against brute force over the whole pool."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backend.popularity.estimate import log_popularity, utc_moments
from backend.recall.posterior import code_weights, log_probabilities
from backend.recall.prototype_lists import CodeLists, CodeListStore, PrototypeLists
from backend.recall.served_releases import ServedCodebook
from tests.doubles.recall_world import clustered_vectors

NOW = datetime(2026, 11, 21, tzinfo=UTC)
K = 16


def pool(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prototypes [K, D], vectors [n, D], log popularity [n]."""
    draw = np.random.default_rng(seed)
    return (
        clustered_vectors(K, clusters=K, seed=seed + 1),
        clustered_vectors(count, seed=seed),
        draw.normal(scale=2, size=count).astype(np.float32),
    )


def brute_force(
    weights: np.ndarray, parts: tuple[np.ndarray, np.ndarray, np.ndarray], sharpness: float, limit: int
) -> np.ndarray:
    """The mixture's scores of every piece of news in the pool, sorted."""
    scores = np.log(weights @ np.exp(log_probabilities(*parts, sharpness)))
    return np.argsort(-scores, kind="stable")[:limit]


def stand_in(count: int, seed: int = 1) -> Any:
    """What lists need of a catalogue."""
    draw = np.random.default_rng(seed)

    class Stand(SimpleNamespace):
        __eq__, __hash__ = object.__eq__, object.__hash__  # type: ignore[assignment]  # as a catalogue: itself alone

        def __len__(self) -> int:
            return count

    moments = utc_moments([NOW - timedelta(hours=float(hours)) for hours in draw.uniform(0, 300, size=count)])
    return Stand(
        vectors=clustered_vectors(count, seed=seed) if count else np.empty((0, 0), dtype=np.float32),
        published_at=moments,
        log_popularity=log_popularity(moments, draw.uniform(size=count).astype(np.float32), NOW),
        built_at=NOW,
    )


def codebook(name: str = "a", seed: int = 2, epsilon: float = 4.0) -> ServedCodebook:
    return ServedCodebook(name, epsilon, clustered_vectors(K, clusters=K, seed=seed), np.full(K, 1 / K))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0, np.inf])
@pytest.mark.parametrize("sharpness", [2.0, 8.0])
def test_code_lists_match_a_brute_force_search(epsilon: float, sharpness: float) -> None:
    parts = pool(3_000)
    lists = PrototypeLists(*parts, sharpness=sharpness, depth=100)
    for code in range(K):
        weights = code_weights(np.full(K, 1 / K), epsilon, code)
        np.testing.assert_array_equal(lists.mixed(weights, 400), brute_force(weights, parts, sharpness, 400))


def test_random_mixtures_match_a_brute_force_search() -> None:
    parts = pool(2_000)
    lists = PrototypeLists(*parts, sharpness=6.0, depth=60)
    for weights in np.random.default_rng(4).dirichlet(np.full(K, 0.3), size=20):
        np.testing.assert_array_equal(lists.mixed(weights, 250), brute_force(weights, parts, 6.0, 250))


def test_lists_are_deepened_only_until_the_bound_suffices() -> None:
    lists = PrototypeLists(*pool(5_000), sharpness=6.0, depth=50)
    lists.mixed(code_weights(np.full(K, 1 / K), np.inf, 3), 20)
    assert lists.depth == 50
    lists.mixed(np.full(K, 1 / K), 400)
    assert 50 < lists.depth <= 5_000


def test_infinite_epsilon_gives_the_codes_own_list() -> None:
    prototypes, vectors, popular = pool(1_500)
    lists = PrototypeLists(prototypes, vectors, popular, sharpness=5.0, depth=300)
    own = np.argsort(-(5.0 * vectors.astype(np.float64) @ prototypes[7] + popular), kind="stable")[:100]
    np.testing.assert_array_equal(lists.mixed(np.eye(K)[7], 100), own)


def test_zero_epsilon_gives_all_codes_one_list() -> None:
    lists = CodeLists(stand_in(800), codebook(epsilon=0.0), sharpness=6.0)
    assert len({tuple(lists.of_code(code, 400)) for code in range(K)}) == 1


def test_small_pool_is_listed_whole_and_an_empty_one_gives_nothing() -> None:
    lists = CodeLists(stand_in(37), codebook(), sharpness=6.0)
    assert sorted(lists.of_code(0, 400)) == list(range(37))
    empty = CodeLists(stand_in(0), codebook(), sharpness=6.0)
    assert empty.of_code(5, 400) == []
    assert empty.mixed(np.full(K, 1 / K), 400) == []


def test_new_catalogue_or_codebook_has_its_own_lists() -> None:
    store, old, new = CodeListStore(), stand_in(300, seed=1), stand_in(300, seed=9)
    first = store.of(old, codebook())
    assert store.of(old, codebook()) is first
    assert store.of(old, codebook(name="b", seed=7)).of_code(0, 50) != first.of_code(0, 50)
    assert store.of(new, codebook()) is not first
    assert store.of(old, codebook()) is first  # requests under way end on the catalogue they began with
    lists = weakref.ref(first)
    del first, old
    gc.collect()
    assert lists() is None  # but they go with it


def test_prepared_store_has_every_codes_list_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    store, catalogue, book = CodeListStore(), stand_in(2_000), codebook()
    store.prepare(catalogue, [book])
    monkeypatch.setattr(PrototypeLists, "mixed", None)
    for code in range(K):
        assert len(store.of(catalogue, book).of_code(code, 400)) == 400


def test_fresh_and_weighty_news_start_more_popular() -> None:
    moments = utc_moments([NOW, NOW - timedelta(hours=24), NOW - timedelta(days=20), NOW + timedelta(hours=5)])
    logs = log_popularity(moments, np.ones(4, dtype=np.float32), NOW)
    assert logs[0] - logs[1] == pytest.approx(np.log(2), abs=1e-6)
    assert logs[0] - logs[2] == pytest.approx(np.log(50), abs=1e-5)
    assert logs[3] == logs[0]
    heavy, light = log_popularity(utc_moments([NOW, NOW]), np.array([1, 0], dtype=np.float32), NOW)
    assert heavy - light == pytest.approx(np.log(5), abs=1e-6)


def test_counts_multiply_the_prior_from_age_and_weight() -> None:
    even = np.full(3, 0.5, dtype=np.float32)
    moments = utc_moments([NOW, NOW - timedelta(hours=24), NOW])
    logs = log_popularity(moments, even, NOW, lifts=np.array([0.0, 1.0, -1.0], dtype=np.float32))
    plain = log_popularity(moments, even, NOW)
    np.testing.assert_allclose(logs - plain, [0.0, 1.0, -1.0], atol=1e-6)


def test_reader_shares_move_the_mixture_towards_common_prototypes() -> None:
    parts = pool(1_000)
    even = PrototypeLists(*parts, sharpness=6.0)
    crowded = replace(codebook(), shares=np.eye(K)[2] * 0.9 + 0.1 / K)
    np.testing.assert_array_equal(
        even.mixed(code_weights(crowded.shares, 0.0, 0), 100), brute_force(crowded.shares, parts, 6.0, 100)
    )

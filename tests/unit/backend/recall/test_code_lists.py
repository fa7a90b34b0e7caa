"""Lists of reports by codebook against brute force over the whole pool."""

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
from backend.recall.code_lists import CodeListStore, aggregated
from backend.recall.indexes.basis import BasisScan, BasisScanStore
from backend.recall.posterior import code_weights
from backend.recall.served_releases import ServedCodebook
from tests.doubles.recall_world import clustered_vectors

NOW = datetime(2026, 11, 21, tzinfo=UTC)
K = 16


def brute_force(weights: np.ndarray, book: ServedCodebook, catalogue: Any, sharpness: float, limit: int) -> list[int]:
    """Return the scores s <r, d> + log pop(d) of every article in float64, sorted."""
    vector = weights @ book.prototypes.astype(np.float64)
    scores = sharpness * (catalogue.vectors.astype(np.float64) @ vector) + catalogue.log_popularity
    best: list[int] = np.argsort(-scores, kind="stable")[:limit].tolist()
    return best


def same_scores(found: list[int], expected: list[int], most_swapped: int = 2) -> bool:
    """Return whether lists are equal up to neighbours whose scores differ by a rounding of float32."""
    return (
        set(found[:-1]) <= set(expected) and sum(a != b for a, b in zip(found, expected, strict=True)) <= most_swapped
    )


def stand_in(count: int, seed: int = 1) -> Any:
    """The parts of a catalogue that lists need."""
    draw = np.random.default_rng(seed)

    class CatalogueStub(SimpleNamespace):
        __eq__, __hash__ = object.__eq__, object.__hash__  # type: ignore[assignment]  # as a catalogue: itself alone

        def __len__(self) -> int:
            return count

    moments = utc_moments([NOW - timedelta(hours=float(hours)) for hours in draw.uniform(0, 300, size=count)])
    return CatalogueStub(
        by_basis=True,
        vectors=clustered_vectors(count, seed=seed) if count else np.empty((0, 0), dtype=np.float32),
        published_at=moments,
        log_popularity=log_popularity(moments, draw.uniform(size=count).astype(np.float32), NOW),
        built_at=NOW,
    )


def fresh_rows(catalogue: Any) -> frozenset[int]:
    """Articles of the last six hours, which have places of their own (`merge.with_fresh`)."""
    return frozenset(np.flatnonzero(catalogue.published_at >= utc_moments([NOW - timedelta(hours=6)])).tolist())


def codebook(name: str = "a", seed: int = 2, epsilon: float = 4.0) -> ServedCodebook:
    return ServedCodebook(name, epsilon, clustered_vectors(K, clusters=K, seed=seed), np.full(K, 1 / K))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0, np.inf])
@pytest.mark.parametrize("sharpness", [2.0, 8.0])
def test_code_lists_match_a_brute_force_search(epsilon: float, sharpness: float) -> None:
    catalogue, book = stand_in(3_000), codebook(epsilon=epsilon)
    lists = CodeListStore(sharpness=sharpness).of(catalogue, book)
    for code in range(K):
        weights = code_weights(np.full(K, 1 / K), epsilon, code)
        found = [row for row in lists.of_code(code, 400) if row not in fresh_rows(catalogue)]
        expected = brute_force(weights, book, catalogue, sharpness, 400)
        assert same_scores(found, [row for row in expected if row not in fresh_rows(catalogue)][: len(found)])


def test_lists_for_random_weights_match_a_brute_force_search() -> None:
    catalogue, book = stand_in(2_000), codebook()
    lists, scan = CodeListStore(sharpness=6.0).of(catalogue, book), BasisScanStore().of(catalogue, book.prototypes)
    for weights in np.random.default_rng(4).dirichlet(np.full(K, 0.3), size=20):
        (vector,) = aggregated(weights[None], book.prototypes)
        found = [row for row in lists.of_vector(vector, 250, scan) if row not in fresh_rows(catalogue)]
        expected = brute_force(weights, book, catalogue, 6.0, 250)
        assert same_scores(found, [row for row in expected if row not in fresh_rows(catalogue)][: len(found)])


def test_infinite_epsilon_gives_the_codes_own_list() -> None:
    catalogue, book = stand_in(1_500), codebook(epsilon=np.inf)
    (vector,) = aggregated(np.eye(K)[7:8], book.prototypes)
    np.testing.assert_allclose(vector, book.prototypes[7])
    lists, scan = CodeListStore(sharpness=5.0).of(catalogue, book), BasisScanStore().of(catalogue, book.prototypes)
    assert lists.of_code(7, 100) == lists.of_vector(book.prototypes[7], 100, scan)


def test_codes_are_searched_in_the_catalogues_index_where_it_has_one() -> None:
    catalogue = stand_in(500)
    asked = []

    def popular_near(queries: np.ndarray, k: int, *, sharpness: float) -> list[list[int]]:
        asked.append((queries, k, sharpness))
        return [list(range(400))] * len(queries)

    catalogue.by_basis, catalogue.popular_near, book = False, popular_near, codebook()
    lists = CodeListStore(sharpness=3.0).of(catalogue, book)
    ((queries, _, sharpness),) = asked
    weights = np.stack([code_weights(book.shares, book.epsilon, code) for code in range(K)])
    np.testing.assert_allclose(queries, weights @ book.prototypes, rtol=1e-5)
    assert (sharpness, lists.of_code(2, 5)) == (3.0, list(range(5)))


def test_zero_epsilon_gives_all_codes_one_list() -> None:
    lists = CodeListStore(sharpness=6.0).of(stand_in(800), codebook(epsilon=0.0))
    assert len({tuple(lists.of_code(code, 400)) for code in range(K)}) == 1


def test_small_pool_is_listed_whole_and_an_empty_one_gives_nothing() -> None:
    small, empty, book = stand_in(37), stand_in(0), codebook()
    store, scans = CodeListStore(), BasisScanStore()
    assert sorted(store.of(small, book).of_code(0, 400)) == list(range(37))
    assert store.of(empty, book).of_code(5, 400) == []
    assert store.of(empty, book).of_vector(book.prototypes[0], 400, scans.of(empty, book.prototypes)) == []


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
    monkeypatch.setattr(BasisScan, "popular_near", None)
    for code in range(K):
        assert len(store.of(catalogue, book).of_code(code, 400)) == 400


def test_fresh_and_important_articles_start_more_popular() -> None:
    moments = utc_moments([NOW, NOW - timedelta(hours=24), NOW - timedelta(days=20), NOW + timedelta(hours=5)])
    logs = log_popularity(moments, np.ones(4, dtype=np.float32), NOW)
    assert logs[0] - logs[1] == pytest.approx(np.log(2), abs=1e-6)
    assert logs[0] - logs[2] == pytest.approx(np.log(50), abs=1e-5)
    assert logs[3] == logs[0]
    heavy, light = log_popularity(utc_moments([NOW, NOW]), np.array([1, 0], dtype=np.float32), NOW)
    assert heavy - light == pytest.approx(np.log(5), abs=1e-6)


def test_counts_multiply_the_popularity_prior_from_age_and_weight() -> None:
    even = np.full(3, 0.5, dtype=np.float32)
    moments = utc_moments([NOW, NOW - timedelta(hours=24), NOW])
    logs = log_popularity(moments, even, NOW, lifts=np.array([0.0, 1.0, -1.0], dtype=np.float32))
    plain = log_popularity(moments, even, NOW)
    np.testing.assert_allclose(logs - plain, [0.0, 1.0, -1.0], atol=1e-6)


def test_shares_of_readers_move_the_vector_towards_common_prototypes() -> None:
    catalogue, book = stand_in(1_000), codebook(epsilon=0.0)
    crowded = replace(book, name="crowded", shares=np.eye(K)[2] * 0.9 + 0.1 / K)
    found = CodeListStore(sharpness=6.0).of(catalogue, crowded).of_code(0, 100)
    expected = brute_force(crowded.shares, crowded, catalogue, 6.0, 100)
    assert same_scores(found[:80], expected[:80])

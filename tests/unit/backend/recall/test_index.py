"""One conformance suite for every index, and the gate. The oracle is a plain sort of all inner products."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest

from backend.errors import IndexBroken
from backend.recall.indexes import selection as index_selection
from backend.recall.indexes.faiss import FaissIndex, lists_for
from backend.recall.indexes.fastscan import ScanIndex
from backend.recall.indexes.index import NO_KEY, ExactIndex, Keys, VectorIndex, Vectors
from backend.recall.indexes.selection import (
    AUTO,
    BASIS,
    FEWEST_APPROXIMATE,
    INDEXES,
    IndexRecall,
    choose_index,
    held_out_queries,
    overlap,
    tune,
)
from backend.settings import BackendSettings
from tests.doubles.recall_world import clustered_vectors

Build = Callable[[Keys, Vectors], VectorIndex]
KEYS = np.arange(2_000, dtype=np.int64) * 3 + 1
VECTORS = clustered_vectors(2_000, dimensions=32)


def exact(keys: Keys, vectors: Vectors) -> VectorIndex:
    return ExactIndex.over(keys, vectors)


def flat(keys: Keys, vectors: Vectors) -> VectorIndex:
    return FaissIndex.flat(keys, vectors, threads=1)


def inverted(keys: Keys, vectors: Vectors) -> VectorIndex:
    index = FaissIndex.inverted(keys, vectors, storage="Flat", threads=1)
    index.effort = index.lists  # looks everywhere: then it must agree with the oracle
    return index


def scanned(keys: Keys, vectors: Vectors) -> VectorIndex:
    index = ScanIndex.over(keys, vectors, threads=1)
    index.effort = 40  # ranks everything exactly
    return index


@pytest.fixture(params=[exact, flat, inverted, scanned])
def build(request: pytest.FixtureRequest) -> Build:
    return request.param


def sorted_oracle(keys: Keys, vectors: Vectors, query: Vectors, k: int) -> list[int]:
    return keys[np.argsort(-(vectors @ query), kind="stable")[:k]].tolist()


def test_search_finds_the_nearest_in_order(build: Build) -> None:
    queries = clustered_vectors(5, dimensions=32, seed=9)
    scores, found = build(KEYS, VECTORS).search(queries, 50)
    for row, query in enumerate(queries):
        assert found[row].tolist() == sorted_oracle(KEYS, VECTORS, query, 50)
        assert (np.diff(scores[row]) <= 1e-6).all()


def test_search_for_more_results_than_the_index_holds_is_padded(build: Build) -> None:
    _, found = build(KEYS[:1_500], VECTORS[:1_500]).search(VECTORS[:2], 1_600)
    assert (np.sort(found[0][:1_500]) == KEYS[:1_500]).all()
    assert (found[:, 1_500:] == NO_KEY).all()


def test_added_keys_are_found_and_removed_ones_are_not(build: Build) -> None:
    index = build(KEYS[:1_500], VECTORS[:1_500])
    index.add(KEYS[1_500:], VECTORS[1_500:])
    assert index.remove(KEYS[:100]) == 100
    assert len(index) == 1_900
    query = VECTORS[1_700:1_701]
    assert index.search(query, 20)[1][0].tolist() == sorted_oracle(KEYS[100:], VECTORS[100:], query[0], 20)
    assert not np.isin(KEYS[:100], index.search(VECTORS[:3], 1_900)[1]).any()


def test_changing_a_copy_leaves_the_original(build: Build) -> None:
    index = build(KEYS, VECTORS)
    before = index.search(VECTORS[:4], 30)[1]
    twin = index.copy()
    twin.remove(before[0])
    assert (index.search(VECTORS[:4], 30)[1] == before).all()
    assert len(twin) == len(index) - 30


def test_exact_index_breaks_ties_by_the_lower_key() -> None:
    same = np.ones((6, 4), dtype=np.float32)
    _, found = ExactIndex.over(np.arange(6, dtype=np.int64), same).search(same[:1], 3)
    assert found[0].tolist() == [0, 1, 2]


def test_empty_index_finds_nothing() -> None:
    _, found = ExactIndex(4).search(np.ones((1, 4), dtype=np.float32), 3)
    assert found.tolist() == [[NO_KEY] * 3]


def test_dumped_index_is_restored_and_invalid_bytes_are_refused() -> None:
    index = FaissIndex.inverted(KEYS, VECTORS, storage="SQ8", threads=1)
    index.effort = 7
    restored = FaissIndex.restore(index.dump(), factory=index.factory, threads=1)
    assert restored.kind == index.kind
    assert (restored.search(VECTORS[:5], 40)[1] == index.search(VECTORS[:5], 40)[1]).all()
    scan = ScanIndex.over(KEYS[:1_900], VECTORS[:1_900], threads=1)
    scan.remove(KEYS[3:8])
    scan.add(KEYS[3:8], VECTORS[3:8])
    back = ScanIndex.restore(scan.dump(), KEYS[:1_900], VECTORS[:1_900], effort=scan.effort, threads=1)
    assert (back.search(VECTORS[:5], 40)[1] == scan.search(VECTORS[:5], 40)[1]).all()
    with pytest.raises(IndexBroken, match="different articles"):
        ScanIndex.restore(scan.dump(), KEYS[1:1_901], VECTORS[1:1_901], effort=2, threads=1)
    with pytest.raises(IndexBroken, match="can't be read"):
        ScanIndex.restore(b"rubbish" * 20, KEYS, VECTORS, effort=2, threads=1)
    with pytest.raises(IndexBroken, match="can't read"):
        FaissIndex.restore(b"rubbish" * 20, factory="exact", threads=1)


def test_index_of_100_000_vectors_has_1024_lists() -> None:
    assert lists_for(100_000) == 1024
    assert lists_for(2_000) == 128


def test_overlap_is_the_mean_share_of_true_results_found() -> None:
    truth = np.array([[1, 2, 3, 4], [5, 6, NO_KEY, NO_KEY]])
    found = np.array([[4, 3, 9, 9], [6, 5, 9, 9]])
    assert overlap(truth, found) == pytest.approx((0.5 + 1.0) / 2)


def test_held_out_queries_are_outside_the_pool_and_reproducible() -> None:
    queries = held_out_queries(VECTORS)
    for sort, drawn in queries.items():
        assert (held_out_queries(VECTORS)[sort] == drawn).all()
        distances = np.linalg.norm(drawn[:, None] - VECTORS[None, :500], axis=2)
        assert distances.min() > 0.05


def test_small_pools_are_searched_exactly() -> None:
    index, status = choose_index(KEYS, VECTORS, exact_limit=2_000, threads=1)
    assert index.exact
    assert (status.kind, status.recall_at_400, status.refused) == ("exact", None, ())


def test_index_beyond_the_limit_passes_the_gate_with_tuned_probes() -> None:
    index, status = choose_index(KEYS, VECTORS, exact_limit=1_000, threads=1)
    assert status.recall_at_400 is not None
    assert status.recall_at_400 >= 0.99
    assert IndexRecall(KEYS, VECTORS).recall(index) == status.recall_at_400
    assert status.kind == index.kind


def test_search_effort_is_raised_before_an_index_is_refused() -> None:
    index = ScanIndex.over(KEYS, VECTORS, threads=1)
    judge = IndexRecall(KEYS, VECTORS)
    index.effort = 1
    poor = judge.recall(index)
    assert poor < 0.95
    assert tune(index, judge) >= 0.99
    assert index.effort in index.efforts


def test_tuning_stops_at_the_largest_search_effort() -> None:
    index = FaissIndex.inverted(KEYS, VECTORS, storage="Flat", threads=1)
    index.effort = 1
    recall = tune(index, IndexRecall(KEYS, VECTORS))
    assert recall < 0.99
    assert index.effort == index.efforts[-1] == index.lists // 8


def test_pool_without_a_good_enough_index_is_searched_exactly_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(index_selection, "RECALL_REQUIRED", 1.01)
    with caplog.at_level(logging.WARNING):
        index, status = choose_index(KEYS, VECTORS, exact_limit=1_000, threads=1)
    assert index.exact
    assert [line.split(",")[1].split(" ")[0] for line in status.refused] == ["SQ8", "RFlat"]
    assert "no approximate index passed the gate" in caplog.text


@pytest.mark.parametrize(("name", "kind"), [("exact", "exact"), ("ivf", "IVF128,SQ8"), ("fastscan", "PQ16x4fs,RFlat")])
def test_index_chosen_by_name_serves_even_a_small_pool(name: str, kind: str) -> None:
    index, status = choose_index(KEYS, VECTORS, exact_limit=20_000, threads=1, name=name)
    assert index.name == name
    assert status.kind.startswith(kind)
    assert (status.recall_at_400 is None) == (name == "exact")
    assert status.refused == ()


def test_index_chosen_by_name_serves_below_the_required_recall_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(index_selection, "RECALL_REQUIRED", 1.01)
    with caplog.at_level(logging.WARNING):
        index, status = choose_index(KEYS, VECTORS, exact_limit=20_000, threads=1, name="ivf")
    assert index.name == "ivf"
    assert status.recall_at_400 == IndexRecall(KEYS, VECTORS).recall(index)
    assert "it serves since the settings name it" in caplog.text


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("news", [0, 1, FEWEST_APPROXIMATE - 1])
def test_pool_too_small_for_training_is_always_searched_exactly(name: str, news: int) -> None:
    index, status = choose_index(KEYS[:news], VECTORS[:news], exact_limit=0, threads=1, name=name)
    assert index.exact
    assert status.kind == "exact"


@pytest.mark.parametrize("name", ["ivf", "fastscan"])
def test_smallest_approximate_pool_can_be_searched(name: str) -> None:
    index, _ = choose_index(
        KEYS[:FEWEST_APPROXIMATE], VECTORS[:FEWEST_APPROXIMATE], exact_limit=0, threads=1, name=name
    )
    assert index.name == name
    assert index.search(VECTORS[:3], 5)[1].shape == (3, 5)


def test_setting_offers_exactly_the_available_indexes() -> None:
    assert get_args(BackendSettings.model_fields["index"].annotation) == (AUTO, BASIS, *INDEXES)

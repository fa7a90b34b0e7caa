"""The scan of a basis against NumPy over whole vectors; and the rules for which requests use it."""

from __future__ import annotations

import gc
import threading
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.db.engine import open_engine
from backend.news.pool import NewsPool
from backend.recall.catalogue import LiveCatalogue, build_catalogue
from backend.recall.indexes.basis import BASES_KEPT, ROWS_AT_ONCE, BasisScan, BasisScanStore
from backend.recall.indexes.selection import IndexRules
from backend.recall.served_releases import ServedReleases
from backend.recall.service import RANKINGS, RecallService, VectorRules
from backend.recall.stored_vectors import StoredVectors
from backend.releases.store import ReleaseStore
from protocol.ids import short_release
from protocol.recall import RecallAnswer, RecallRequest
from protocol.server_timing import Stopwatch
from tests.doubles.recall_world import (
    BASIS_SIZE,
    DIMENSIONS,
    ENCODER,
    clustered_vectors,
    fill,
    indexes_in,
    publish,
    report,
    settings_in,
)

SHARPNESS = 6.0


def pool(count: int, basis: int = 30, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values [B, D], vectors [n, D] and log popularity [n]."""
    popular = np.random.default_rng(seed).normal(scale=2, size=count).astype(np.float32)
    return clustered_vectors(basis, seed=seed + 1), clustered_vectors(count, seed=seed), popular


def mixtures(values: np.ndarray, channels: int = 5, seed: int = 3) -> np.ndarray:
    """Return interest vectors [C, D], as reports make them."""
    weights = np.random.default_rng(seed).dirichlet(np.full(len(values), 0.3), size=channels)
    return np.asarray(weights @ values, dtype=np.float32)


def assert_best(found: list[list[int]], scores: np.ndarray, k: int) -> None:
    """Check the k best, best first; scores that differ only by rounding may be in either order."""
    for rows, mine in zip(found, scores, strict=True):
        assert len(set(rows)) == k
        np.testing.assert_allclose(mine[rows], -np.sort(-mine)[:k], atol=2e-5)


@pytest.mark.parametrize("count", [1, 399, ROWS_AT_ONCE + 17])
def test_lists_of_the_scan_match_full_vectors_of_the_whole_pool(count: int) -> None:
    values, vectors, popular = pool(count)
    scan, queries = BasisScan.over(values, vectors, popular), mixtures(values)
    products = queries.astype(np.float64) @ vectors.T
    k = min(400, count)
    assert_best(scan.search(queries, 400), products, k)
    assert_best(scan.popular_near(queries, 400, sharpness=SHARPNESS), SHARPNESS * products + popular, k)


def test_scan_stays_exact_with_dependent_and_equal_basic_interests() -> None:
    values, vectors, popular = pool(3_000, basis=12)
    doubled = np.vstack([values, values[:4], 0.5 * values[4:8] + 0.5 * values[:4]]).astype(np.float32)
    queries = mixtures(doubled)
    scan = BasisScan.over(doubled, vectors, popular)
    assert_best(scan.search(queries, 100), queries.astype(np.float64) @ vectors.T, 100)
    assert scan.bytes_held == 4 * (13 * 3_000 + 12 * DIMENSIONS)


def test_scan_breaks_ties_by_the_lower_row_and_finds_nothing_in_an_empty_pool() -> None:
    values = clustered_vectors(4)
    same = np.repeat(clustered_vectors(1, seed=9), 50, axis=0)
    even = np.zeros(50, dtype=np.float32)
    assert BasisScan.over(values, same, even).popular_near(values[:2], 10, sharpness=SHARPNESS) == [[*range(10)]] * 2
    empty = BasisScan.over(values, np.empty((0, DIMENSIONS), np.float32), np.empty(0, np.float32))
    assert empty.search(values, 400) == [[]] * 4


def test_concurrent_threads_get_the_same_results_as_one() -> None:
    values, vectors, popular = pool(5_000)
    scan = BasisScan.over(values, vectors, popular)
    wanted = {seed: scan.search(mixtures(values, seed=seed), 200) for seed in range(4)}
    found: dict[int, list[list[list[int]]]] = {seed: [] for seed in wanted}

    def ask(seed: int) -> None:
        found[seed] += [scan.search(mixtures(values, seed=seed), 200) for _ in range(5)]

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[seed] == [wanted[seed]] * 5 for seed in wanted)


class ScannedNews:
    """The parts of a catalogue that a scan needs."""

    def __init__(self, vectors: Any, log_popularity: np.ndarray) -> None:
        self.vectors, self.log_popularity = vectors, log_popularity


def stand_in(seed: int, stored: StoredVectors | None = None, popularity: np.ndarray | None = None) -> Any:
    _, vectors, popular = pool(300, seed=seed)
    return ScannedNews(stored or StoredVectors.of(vectors), popular if popularity is None else popularity)


def test_scans_are_cached_by_catalogue_and_basis_and_freed_with_the_catalogue() -> None:
    store, catalogue = BasisScanStore(), stand_in(1)
    bases = [clustered_vectors(30, seed=seed) for seed in (5, 5, 6)]
    first = store.of(catalogue, bases[0])
    assert store.of(catalogue, bases[1]) is first  # another release of the same basis
    assert store.of(catalogue, bases[2]) is not first
    assert store.of(catalogue, bases[0]) is first
    for seed in range(BASES_KEPT):
        store.of(catalogue, clustered_vectors(30, seed=20 + seed))
    assert store.of(catalogue, bases[0]) is not first
    scan = weakref.ref(first)
    del first, catalogue
    gc.collect()
    assert scan() is None


def test_incremental_scan_equals_a_full_one_and_reads_only_new_vectors() -> None:
    values, vectors, popular = pool(900)
    before = stand_in(1, StoredVectors.of(vectors), popular)
    kept = np.random.default_rng(2).random(900) < 0.9
    before_rows = np.sort(np.random.default_rng(3).integers(int(kept.sum()) + 1, size=70))
    changed = before.vectors.changed(kept, before_rows, clustered_vectors(70, seed=8), None)
    later = np.random.default_rng(4).normal(size=len(changed)).astype(np.float32)
    store, looked_at = BasisScanStore(), []
    store.of(before, values)

    class Watched(StoredVectors):
        def __getitem__(self, rows: Any) -> np.ndarray:
            looked_at.extend(np.atleast_1d(rows).tolist())
            return super().__getitem__(rows)

    after = stand_in(1, Watched(changed._file, changed._places), later)
    grown = store.of(after, values)
    assert sorted(looked_at) == np.flatnonzero(changed.found_in(before.vectors) == -1).tolist()
    assert len(looked_at) == 70
    whole = BasisScan.over(values, changed[:], later)
    queries = mixtures(values)
    assert grown.search(queries, 200) == whole.search(queries, 200)
    assert grown.popular_near(queries, 200, sharpness=SHARPNESS) == whole.popular_near(
        queries, 200, sharpness=SHARPNESS
    )


@pytest.mark.parametrize(
    ("name", "basis_size", "expected"),
    [("auto", 30, "basis"), ("auto", 128, "basis"), ("auto", 129, "auto"), ("basis", 200, "basis"), ("ivf", 30, "ivf")],
)
def test_basis_scan_is_used_when_the_basis_is_small_or_the_setting_names_it(
    name: str, basis_size: int, expected: str
) -> None:
    assert IndexRules(name=name).under(basis_size, DIMENSIONS).name == expected


@pytest.mark.parametrize("ranking", list(RANKINGS))
def test_basis_answer_matches_the_exact_index(tmp_path: Path, ranking: str) -> None:
    settings = settings_in(tmp_path)
    fill(settings, 300)
    publish(settings)
    engine = open_engine(settings.database_url)
    served = ServedReleases(ReleaseStore.open(engine, settings), answered=1)
    served.refresh()
    asked = RecallRequest.model_validate({"release": short_release("r1"), "limit": 100, "report": report()})
    answers = []
    now = datetime.now(UTC)
    for rules in (IndexRules(name="exact"), IndexRules().under(BASIS_SIZE, DIMENSIONS)):
        catalogue = build_catalogue(NewsPool(engine), ENCODER, now, indexes_in(settings), rules=rules)
        service = RecallService(served, LiveCatalogue(catalogue), rules=VectorRules(ranking=ranking))
        service.prepare(catalogue)
        answers.append(RecallAnswer.model_validate_json(service.answer(asked, Stopwatch())))
        assert catalogue.by_basis == (rules.name == "basis")
    assert answers[0].candidates == answers[1].candidates
    assert not list(settings.index_dir.glob("*basis*"))
    engine.dispose()
